"""Meshes: which links are tested, how, and how often; and the schedule that follows."""

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q

from sonar.credentials import rules
from sonar.models.credential import Credential
from sonar.models.endpoint import Endpoint
from sonar.models.fields import NAME, check_name, is_new, name_field, reference
from sonar.models.size_class import SizeClass
from sonar.models.testing_times import QuietHours, two_ends
from sonar.movers import catalogue
from sonar.notation import scitags


class Mode(models.TextChoices):
    PULL = "pull", "pull: the destination fetches"
    PUSH = "push", "push: the source sends"


def mover_choices() -> list[tuple[str, str]]:
    return [(name, name) for name in catalogue.names()]


LIMITS = ("bytes_per_hour",)
"""Columns of limits at which an obstacle holds tests back: each door of the registry has them."""


class Mesh(QuietHours):
    """Which links are tested, how often per size class, with what, and in which hours."""

    name = name_field()
    enabled = models.BooleanField(default=True)
    mover = models.CharField(max_length=20, default=catalogue.DEFAULT, choices=mover_choices)
    mode = models.CharField(max_length=4, choices=Mode, default=Mode.PULL)
    streams = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1)])
    tcp_buffer_bytes = models.PositiveIntegerField(
        "TCP buffer (bytes)",
        null=True,
        blank=True,
        help_text="Only for movers that can set it; empty: the servers choose.",
    )
    scitag = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(scitags.LEAST), MaxValueValidator(scitags.MOST)],
        help_text="Flow label of its transfers, as experiment/activity (scitags.org): 2/11. Only "
        "for movers that can send one; empty: none is sent.",
    )
    service = models.CharField(
        max_length=400,
        blank=True,
        default="",
        db_default="",
        validators=[RegexValidator(rules.SERVICE_URL, rules.SERVICE_SENTENCE)],
        help_text="URL of the service that moves the files, for movers that ask one. It is given "
        "what both endpoints lend.",
    )
    service_credential = models.ForeignKey(
        Credential,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="meshes",
        help_text="What the service knows Sonar by; sent only to it.",
    )
    priority = models.PositiveSmallIntegerField(
        default=5,
        help_text="Where caps do not allow all tests that are due, the higher goes first.",
    )
    bytes_per_hour = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Test bytes that its tests may move within an hour; empty for no limit.",
    )
    sources = models.ManyToManyField(
        Endpoint, blank=True, related_name="+", help_text="None chosen means every endpoint."
    )
    destinations = models.ManyToManyField(
        Endpoint, blank=True, related_name="+", help_text="None chosen means every endpoint."
    )

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "meshes"
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="mesh_name_is_plain"),
            models.CheckConstraint(condition=Q(mode__in=Mode.values), name="mesh_mode_is_known"),
            models.CheckConstraint(condition=Q(streams__gte=1), name="mesh_streams_are_positive"),
            models.CheckConstraint(
                condition=Q(bytes_per_hour__isnull=True) | Q(bytes_per_hour__gte=1),
                name="mesh_bytes_per_hour_are_positive",
            ),
            two_ends("mesh_quiet_hours_have_two_ends"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def mover_description(self) -> catalogue.MoverDescription:
        return catalogue.kept(self.mover)

    def clean(self) -> None:
        check_name(self)
        if self.mover in catalogue.names():
            self._refuse_what_its_mover_does_not_obey()
            wrong = rules.service_problems(
                self.mover_description, self.service, self.service_credential
            )
            if wrong:
                raise ValidationError(wrong)

    def _refuse_what_its_mover_does_not_obey(self) -> None:
        """Raise ValidationError by field; what was kept before its mover was described stays."""
        parameters = {name: getattr(self, name) for name in catalogue.PARAMETERS}
        refusals = self.mover_description.refusals(self.mode, **parameters)
        if new := [field for field in refusals if is_new(self, "mover") or is_new(self, field)]:
            raise ValidationError({field: refusals[field] for field in new})


class MeshInterval(models.Model):
    """How often a mesh tests each of its links with one size class."""

    mesh = models.ForeignKey(Mesh, on_delete=models.CASCADE, related_name="intervals")
    size_class = models.ForeignKey(SizeClass, on_delete=models.PROTECT)
    every_seconds = models.PositiveIntegerField(validators=[MinValueValidator(1)])

    class Meta:
        ordering = ["mesh", "size_class__from_bytes"]
        constraints = [
            models.UniqueConstraint(
                fields=["mesh", "size_class"], name="meshinterval_once_per_size_class"
            ),
            models.CheckConstraint(
                condition=Q(every_seconds__gte=1), name="meshinterval_is_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mesh} {self.size_class} every {self.every_seconds} s"


class Schedule(models.Model):
    """When one link of a mesh is due for a test of one size class, and why it had to wait.

    Rows are made and removed by scheduler.follow_registry, never by hand.
    """

    mesh = reference(Mesh, models.CASCADE)
    source = reference(Endpoint, models.CASCADE)
    destination = reference(Endpoint, models.CASCADE)
    size_class = reference(SizeClass, models.CASCADE)
    every_seconds = models.PositiveIntegerField()
    next_due = models.DateTimeField()
    skipped_because = models.CharField(
        max_length=12, blank=True, help_text="The name of an obstacle (sonar.obstacles.catalogue)."
    )
    skipped_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["mesh", "source", "destination", "size_class"], name="schedule_once"
            ),
            models.CheckConstraint(
                condition=~Q(source=F("destination")), name="schedule_is_between_two_endpoints"
            ),
        ]
        indexes = [
            # scheduler.claim_due: what is due, oldest first.
            models.Index(fields=["next_due"], name="schedule_next_due"),
        ]

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} {self.size_class}"
