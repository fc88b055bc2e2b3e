"""Commissioning: what links have to reach, which links have reached it, and when they lost it."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from sonar.models.fields import NAME, check_name, if_given, name_field, reference
from sonar.models.member_filters import MemberFilters
from sonar.models.registry import Endpoint, SizeClass

LONGEST_PERIOD = 30 * 24  # hours
MOST_TESTS = 1_000_000
MOST_MB_S = 1_000_000
MOST_VOLUME = 10**18
CRITERIA = ("period_hours", "least_tests", "least_mb_s", "least_success_percent", "least_bytes")
NO_CRITERION = "Enter a minimum rate or a minimum success rate."


class CriteriaSet(MemberFilters):
    """What each link between some endpoints has to reach over a period, in one size class."""

    name = name_field()
    size_class = models.ForeignKey(SizeClass, on_delete=models.PROTECT, related_name="+")
    period_hours = models.PositiveSmallIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(LONGEST_PERIOD)],
        help_text="Length of the evaluated period in hours: 24 for a day, 168 for a week.",
    )
    least_tests = models.PositiveIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(MOST_TESTS)],
        help_text="Minimum number of tests in the period. A link with fewer tests is not "
        "evaluated.",
    )
    least_mb_s = models.FloatField(
        "minimum rate (MB/s)",
        null=True,
        blank=True,
        validators=[MinValueValidator(0.001), MaxValueValidator(MOST_MB_S)],
        help_text="Minimum throughput: total bytes of successful tests divided by their total "
        "duration. Empty means any rate.",
    )
    least_success_percent = models.FloatField(
        "minimum success rate (%)",
        null=True,
        blank=True,
        validators=[MinValueValidator(0.001), MaxValueValidator(100)],
        help_text="Minimum percentage of tests that succeed. Empty means any percentage.",
    )
    least_bytes = models.BigIntegerField(
        "minimum volume (bytes)",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_VOLUME)],
        help_text="Minimum number of bytes that successful tests move in the period. A link must "
        "reach this volume to pass, but not to keep its passed status. Empty means any volume.",
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="criteriaset_name_is_plain"),
            models.CheckConstraint(
                condition=Q(period_hours__range=(1, LONGEST_PERIOD), least_tests__gte=1),
                name="criteriaset_is_over_a_period",
            ),
            if_given("criteriaset_rate_is_positive", least_mb_s__gt=0),
            models.CheckConstraint(
                condition=Q(least_success_percent__isnull=True)
                | Q(least_success_percent__gt=0, least_success_percent__lte=100),
                name="criteriaset_success_is_a_share",
            ),
            if_given("criteriaset_bytes_are_positive", least_bytes__gte=1),
            models.CheckConstraint(
                condition=Q(least_mb_s__isnull=False) | Q(least_success_percent__isnull=False),
                name="criteriaset_asks_for_something",
                violation_error_message=NO_CRITERION,
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        check_name(self)
        if self.name == "add":  # as /commissioning/add/ is a page
            raise ValidationError(
                {"name": "A criteria set cannot be named “add”: /commissioning/add/ is a page."}
            )

    @property
    def required(self) -> dict[str, Any]:
        """Return what a link has to reach, as records keep it."""
        return {"size": self.size_class.name, **{name: getattr(self, name) for name in CRITERIA}}


class CommissioningRecord(models.Model):
    """That a link passed a set of criteria, with what was measured over the period before.

    It stays when the results are dropped. ``required`` is what the set asked for then.
    """

    criteria_set = models.ForeignKey(CriteriaSet, on_delete=models.CASCADE, related_name="records")
    source = reference(Endpoint, models.CASCADE)
    destination = reference(Endpoint, models.CASCADE)
    passed_at = models.DateTimeField(
        help_text="Time, on the hour, at which the link passed because it met all criteria."
    )
    lost_at = models.DateTimeField(
        null=True,
        help_text="Time, on the hour, at which the link stopped meeting the criteria. Empty while "
        "the link meets them.",
    )
    required = models.JSONField()
    tests = models.PositiveIntegerField(
        help_text="Number of tests in the period that were evaluated."
    )
    ok = models.PositiveIntegerField(help_text="Number of evaluated tests that succeeded.")
    bytes = models.BigIntegerField(help_text="Total bytes that the successful tests moved.")
    seconds = models.FloatField(help_text="Total duration of the successful tests, in seconds.")
    found_at = models.DateTimeField(help_text="Time when Sonar found that the link had passed.")

    class Meta:
        ordering = ["-passed_at", "id"]
        constraints = [
            # A link has at most one that is not lost; its lists go by set and link.
            models.UniqueConstraint(
                fields=["criteria_set", "source", "destination", "passed_at"],
                name="commissioningrecord_once",
            ),
            models.UniqueConstraint(
                fields=["criteria_set", "source", "destination"],
                condition=Q(lost_at=None),
                name="commissioningrecord_one_that_lasts",
            ),
            models.CheckConstraint(
                condition=Q(lost_at__isnull=True) | Q(lost_at__gt=F("passed_at")),
                name="commissioningrecord_is_lost_after_it_passed",
            ),
        ]
        indexes = [
            # The page of a link.
            models.Index(fields=["source", "destination"], name="commissioningrecord_of_a_link")
        ]

    def __str__(self) -> str:
        link = f"{self.source_id} {self.destination_id}"
        return f"{self.criteria_set} {link} {self.passed_at:%Y-%m-%d %H:%M}"


class CommissioningSearch(models.Model):
    """Up to when the links of a set were judged, by what, and how they stood then.

    ``days`` has by day what its results and downtimes were like; ``basis`` is what was asked for
    of which links.
    """

    criteria_set = models.OneToOneField(
        CriteriaSet, on_delete=models.CASCADE, related_name="search"
    )
    searched_at = models.DateTimeField()
    end = models.DateTimeField()
    days = models.JSONField(default=dict)
    basis = models.CharField(max_length=64)
    counts = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.criteria_set} up to {self.end:%Y-%m-%d %H:%M}"
