"""Conditions: what is or was wrong with a part of the grid, from when until when, and the evidence.

`matrix.assessment` judges the results of each size class day by day; `sonar.results.conditions`
stores what it found.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from sonar.models.fields import if_given, reference
from sonar.models.registry import Endpoint, Site, SizeClass


class Figures(models.Model):
    """From when until when something was wrong, and by how much; shared by conditions and parts.

    It began between ``since_low`` and ``since_high``, most likely at ``since``. ``factor`` is the
    rate since over the baseline, with an interval of 95 %; empty for what is failing or silent.
    """

    since = models.DateTimeField()
    since_low = models.DateTimeField()
    since_high = models.DateTimeField()
    confirmed_at = models.DateTimeField(
        null=True,
        help_text="Start of the test that confirmed the condition. Empty while it is unconfirmed.",
    )
    ended_at = models.DateTimeField(
        null=True, help_text="Time when the condition ended. Empty while it lasts."
    )
    factor = models.FloatField(null=True)
    factor_low = models.FloatField(null=True)
    factor_high = models.FloatField(null=True)
    links = models.PositiveIntegerField(help_text="Number of links that show the condition.")
    of_links = models.PositiveIntegerField(
        help_text="Number of links of the affected object that have been tested since the "
        "condition began."
    )

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(
                condition=Q(since_low__lte=F("since"), since_high__gte=F("since")),
                name="%(class)s_begins_within_its_bounds",
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True) | Q(ended_at__gte=F("since")),
                name="%(class)s_ends_after_it_begins",
            ),
            models.CheckConstraint(
                condition=Q(factor=None, factor_low=None, factor_high=None)
                | Q(
                    # Where one of them is empty, what compares them is neither true nor false.
                    factor__isnull=False,
                    factor_low__isnull=False,
                    factor_high__isnull=False,
                    factor__gt=0,
                    factor_low__gte=0,
                    factor_low__lte=F("factor"),
                    factor_high__gte=F("factor"),
                ),
                name="%(class)s_factor_is_within_its_interval",
            ),
            models.CheckConstraint(
                condition=Q(links__lte=F("of_links")), name="%(class)s_links_are_of_its_subject"
            ),
        ]


class Condition(Figures):
    """Something that is or was wrong, or unusually fast, with one subject, in all size classes.

    ``scope`` says what its subject is: a link has both ends, an endpoint has itself as both, a
    site has neither, and the grid is Sonar itself. The factor is rounded to two digits, as shown:
    a change of it makes all answers new. Counts of tests are in its parts for the same reason.
    """

    class Scope(models.TextChoices):
        LINK = "link"
        SOURCE = "source"
        DESTINATION = "destination"
        ENDPOINT = "endpoint"
        SITE = "site"
        GRID = "grid"

    class Type(models.TextChoices):
        """What is the matter, the worst last."""

        FAST = "fast"
        SLOW = "slow"
        SILENT = "silent"
        FAILING = "failing"

    scope = models.CharField(max_length=11, choices=Scope)
    source = reference(Endpoint, models.CASCADE, null=True)
    destination = reference(Endpoint, models.CASCADE, null=True)
    site = models.ForeignKey(Site, null=True, on_delete=models.CASCADE, related_name="+")
    type = models.CharField(max_length=7, choices=Type)
    size_classes = ArrayField(
        models.CharField(max_length=80),
        help_text="Names of the affected size classes, smallest first.",
    )
    seen_at = models.DateTimeField(help_text="Time when Sonar first stored the condition.")

    class Meta(Figures.Meta):
        constraints = [
            *Figures.Meta.constraints,
            models.CheckConstraint(
                condition=Q(scope="link", source__isnull=False, destination__isnull=False)
                & ~Q(source=F("destination"))
                | Q(scope="source", source__isnull=False, destination__isnull=True)
                | Q(scope="destination", source__isnull=True, destination__isnull=False)
                | Q(scope="endpoint", source=F("destination"))
                | Q(scope__in=["site", "grid"], source__isnull=True, destination__isnull=True),
                name="condition_has_the_ends_of_its_scope",
            ),
            models.CheckConstraint(
                condition=Q(site__isnull=False) ^ ~Q(scope="site"),
                name="condition_has_a_site_if_of_one",
            ),
            models.CheckConstraint(
                condition=Q(type__in=["fast", "slow", "silent", "failing"]),
                name="condition_type_is_known",
            ),
            models.UniqueConstraint(
                fields=["scope", "source", "destination", "site", "type"],
                condition=Q(ended_at=None),
                nulls_distinct=False,
                name="condition_open_once_for_a_subject",
            ),
        ]
        indexes = [
            models.Index(
                fields=["-since", "-id"], condition=Q(ended_at=None), name="condition_open"
            ),
            # Those that overlap a time range, nearly always a recent one.
            models.Index(fields=["ended_at", "since"], name="condition_ended"),
            models.Index(fields=["source", "destination"], name="condition_of_a_source"),
            models.Index(fields=["destination"], name="condition_of_a_destination"),
        ]

    def __str__(self) -> str:
        return (
            f"{self.scope} {self.source_id} {self.destination_id} {self.site_id} {self.type} since "
            f"{self.since:%Y-%m-%d %H:%M}"
        )


class ConditionPart(Figures):
    """What one size class says of a condition; figures as they were found, not rounded."""

    condition = models.ForeignKey(Condition, on_delete=models.CASCADE, related_name="parts")
    size_class = models.ForeignKey(SizeClass, on_delete=models.CASCADE, related_name="+")
    shown_at = models.DateTimeField(help_text="Start of the test that first showed the condition.")
    tests = models.PositiveIntegerField(
        help_text="Number of tests of the affected object since the condition began."
    )
    failed = models.PositiveIntegerField(
        help_text="Number of failed tests of the affected object since the condition began."
    )
    members_digest = models.CharField(
        max_length=32,
        help_text="Digest by which Sonar detects changes in the affected links or their baselines.",
    )

    class Meta(Figures.Meta):
        constraints = [
            *Figures.Meta.constraints,
            models.CheckConstraint(
                condition=Q(failed__lte=F("tests")), name="conditionpart_failed_tests_are_tests"
            ),
        ]
        indexes = [models.Index(fields=["ended_at"], name="conditionpart_ended")]

    def __str__(self) -> str:
        return f"{self.size_class_id} of {self.condition_id}"


class ConditionLink(models.Model):
    """A link that shows a part of a condition; those of one of the grid are only counted."""

    part = models.ForeignKey(ConditionPart, on_delete=models.CASCADE, related_name="members")
    source = reference(Endpoint, models.CASCADE)
    destination = reference(Endpoint, models.CASCADE)
    baseline = models.FloatField(
        null=True,
        help_text="Rate in bytes per second before the condition began. Empty if there were too "
        "few tests.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["part", "source", "destination"], name="conditionlink_once"
            ),
            if_given("conditionlink_baseline_is_positive", baseline__gt=0),
        ]
        indexes = [
            models.Index(fields=["source", "destination"], name="conditionlink_of_a_link"),
            models.Index(fields=["destination"], name="conditionlink_destination"),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} {self.destination_id} in {self.part_id}"


class AssessedDay(models.Model):
    """What the tests of one size class said up to the end of a UTC day.

    ``kept`` are the conditions that were open then or ended in the 28 days before, from which the
    next day is judged; ``left`` those that ended longer ago and are judged no more. The day is
    judged again when its results change: ``version`` says cheaply whether they may have, and
    ``digest`` whether they have.
    """

    size_class = models.ForeignKey(SizeClass, on_delete=models.CASCADE, related_name="+")
    day = models.DateField()
    until = models.DateTimeField(help_text="Time up to which tests were evaluated.")
    version = models.CharField(max_length=200)
    digest = models.CharField(max_length=80)
    kept = models.JSONField(default=list)
    left = models.JSONField(default=list)
    is_recorded = models.BooleanField(
        default=False,
        help_text="Whether the conditions of this day have been stored since the day was last "
        "evaluated.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["size_class", "day"], name="assessedday_once"),
        ]

    def __str__(self) -> str:
        return f"{self.size_class_id} {self.day}"


class Assessment(models.Model):
    """When the results of a size class were last assessed, and what kept tests from it lately."""

    size_class = models.OneToOneField(SizeClass, on_delete=models.CASCADE, related_name="+")
    assessed_at = models.DateTimeField()
    awake_since = models.DateTimeField(
        null=True, help_text="Start of the period in which assessments have run without a gap."
    )
    free_since = models.JSONField(
        default=dict,
        help_text="For each endpoint whose tests were recently blocked, the end of the block in "
        "Unix milliseconds, by endpoint id.",
    )
    intervals = models.JSONField(
        default=dict,
        help_text="Test interval of each mesh, in seconds, for the size class, by mesh id.",
    )

    def __str__(self) -> str:
        return f"{self.size_class_id} at {self.assessed_at:%Y-%m-%d %H:%M}"
