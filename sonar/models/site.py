"""Sites: whose endpoints stand together, and who looks after them."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from sonar.models.fields import NAME, check_name, name_field, tags_field, tidy
from sonar.models.testing_times import PAUSE_RULES, Pause, QuietHours, two_ends


class Site(QuietHours, Pause):
    """An organisation's place."""

    name = name_field()
    cloud = models.CharField(max_length=40, blank=True, help_text="Region, like UK or DE.")
    tier = models.PositiveSmallIntegerField(
        default=2, validators=[MaxValueValidator(3)], help_text="0 to 3."
    )
    country = models.CharField(
        max_length=2,
        blank=True,
        validators=[RegexValidator(r"^[A-Z]{2}$", "A country is two capital letters (ISO 3166).")],
    )
    latitude = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(-90), MaxValueValidator(90)]
    )
    longitude = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(-180), MaxValueValidator(180)]
    )
    wan_gbit_s = models.FloatField(
        "nominal WAN capacity (Gbit/s)",
        null=True,
        blank=True,
        validators=[MinValueValidator(0.001)],
    )
    tags = tags_field("for all endpoints of the site")
    admins = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="administered_sites",
        help_text="Accounts that may order and pause tests, and write downtimes and notes, for "
        "this site.",
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="site_name_is_plain"),
            models.CheckConstraint(condition=Q(tier__lte=3), name="site_tier_is_0_to_3"),
            models.CheckConstraint(
                condition=Q(latitude__isnull=True) | Q(latitude__range=(-90, 90)),
                name="site_latitude_on_earth",
            ),
            models.CheckConstraint(
                condition=Q(longitude__isnull=True) | Q(longitude__range=(-180, 180)),
                name="site_longitude_on_earth",
            ),
            models.CheckConstraint(
                condition=Q(wan_gbit_s__isnull=True) | Q(wan_gbit_s__gt=0),
                name="site_wan_is_positive",
            ),
            two_ends("site_quiet_hours_have_two_ends"),
            *PAUSE_RULES,
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        self.tags = tidy(self.tags)
        check_name(self)
