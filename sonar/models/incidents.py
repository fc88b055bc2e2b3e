"""Targets for the rates and failures of links, and the incidents of links that miss them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from sonar.models.fields import NAME, check_name, if_given, name_field, reference, refuse_name
from sonar.models.member_filters import MemberFilters
from sonar.models.mesh import Mesh
from sonar.models.registry import Endpoint, Site, SizeClass
from sonar.notation.units import FASTEST, MB

DEFAULT_BELOW, DEFAULT_ABOVE = 2 / 3, 0.8
SLOWEST_MB_S = 0.001


class Target(MemberFilters):
    """A rate target for the links that it matches, and limits for failures and missing results.

    If several targets match a link, the one with the highest priority applies. Of those with the
    same priority, the first by name applies. A link without a target is compared with its baseline.
    """

    name = name_field()
    priority = models.PositiveSmallIntegerField(
        default=5,
        help_text="If several targets match a link, the one with the highest priority applies.",
    )
    enabled = models.BooleanField(default=True)
    size_class = models.ForeignKey(
        SizeClass, null=True, blank=True, on_delete=models.CASCADE, related_name="+",
        help_text="Size class that the target applies to. Empty means all size classes.",
    )  # fmt: skip
    mesh = models.ForeignKey(
        Mesh, null=True, blank=True, on_delete=models.CASCADE, related_name="+",
        help_text="Mesh whose links the target applies to. Empty means all links, whether or "
        "not they are in a mesh.",
    )  # fmt: skip
    site = models.ForeignKey(
        Site, null=True, blank=True, on_delete=models.CASCADE, related_name="+",
        help_text="The target applies to links from and to this site. Empty means all sites.",
    )  # fmt: skip
    floor_mb_s = models.FloatField(
        "minimum rate (MB/s)", null=True, blank=True,
        validators=[MinValueValidator(SLOWEST_MB_S), MaxValueValidator(FASTEST / MB)],
        help_text="Minimum rate in MB/s. Empty means that the baseline of each link is used.",
    )  # fmt: skip
    below = models.FloatField(
        default=DEFAULT_BELOW,
        validators=[MinValueValidator(0.05), MaxValueValidator(1)],
        help_text="A link is slow if its rate is below this fraction of its minimum rate or "
        "baseline.",
    )
    above = models.FloatField(
        default=DEFAULT_ABOVE,
        validators=[MinValueValidator(0.05), MaxValueValidator(2)],
        help_text="Upper limit of the rates that count as near target, as a fraction of the "
        "target. Only the statistic “rate / target” uses this limit; incidents do not depend on "
        "it.",
    )
    failures = models.PositiveSmallIntegerField(
        default=3,
        validators=[MinValueValidator(2), MaxValueValidator(100)],
        help_text="Number of consecutive failed tests after which a link is failing.",
    )
    silent_after = models.FloatField(
        default=3.0,
        validators=[MinValueValidator(1.5), MaxValueValidator(1000)],
        help_text="Number of test intervals without a result after which a link is silent.",
    )

    class Meta:
        ordering = ["-priority", "name"]
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="target_name_is_plain"),
            if_given("target_floor_is_positive", floor_mb_s__gt=0),
            models.CheckConstraint(
                condition=Q(below__gt=0, above__gte=F("below")),
                name="target_above_is_not_below",
                violation_error_message="`above` must not be less than `below`.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def floor(self) -> float | None:
        """Return the minimum rate in bytes/s, None for the baseline."""
        return None if self.floor_mb_s is None else float(Decimal(repr(self.floor_mb_s)) * MB)

    def clean(self) -> None:
        """Check rules about two fields; put the error at one of them."""
        check_name(self)
        refuse_name(self, "add", "/targets/add/")
        # The field itself refuses a value that is missing or not a number.
        if self.below is not None and self.above is not None and self.below > self.above:
            sentence = (
                f"“above” ({self.above:g}) must not be less than “below”, which is {self.below:g}."
            )
            raise ValidationError({"above": sentence})


class HeldLevel(models.Model):
    """What is taken for the usual rate of a link, whatever its newest weeks were like.

    It is held from before an incident, so that a fault is not learned, or ``by`` has accepted it as
    the new baseline.
    """

    source = reference(Endpoint, models.CASCADE)
    destination = reference(Endpoint, models.CASCADE)
    size_class = reference(SizeClass, models.CASCADE)
    rate = models.FloatField(help_text="Baseline rate of the link, in bytes per second.")
    since = models.DateTimeField()
    until = models.DateTimeField(
        null=True,
        help_text="Time until which the baseline is frozen. Empty if it is frozen until its "
        "incident is closed.",
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    note = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source", "destination", "size_class"], name="heldlevel_once_for_a_link"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} {self.destination_id} {self.size_class_id}: {self.rate:.3g}"


class Incident(models.Model):
    """A confirmed condition with its assignee and the decisions about it; one incident for each.

    Its figures are those of ``cause``, the condition, as of the last assessment.
    ``scope`` says of what it is: of a link with both ends, of an endpoint as a source or as a
    destination, of an endpoint with both (``source`` and ``destination`` are the same), of a
    site, or of the whole grid, which is Sonar itself or its own network.
    """

    class Scope(models.TextChoices):
        LINK = "link"
        SOURCE = "source"
        DESTINATION = "destination"
        ENDPOINT = "endpoint"
        SITE = "site"
        GRID = "grid"

    class Type(models.TextChoices):
        """What is wrong, the worst last."""

        SLOW = "slow"
        SILENT = "silent"
        FAILING = "failing"

    scope = models.CharField(max_length=11, choices=Scope)
    source = reference(Endpoint, models.CASCADE, null=True)
    destination = reference(Endpoint, models.CASCADE, null=True)
    site = models.ForeignKey(Site, null=True, on_delete=models.CASCADE, related_name="+")
    type = models.CharField(max_length=7, choices=Type)
    cause = models.ForeignKey(
        "Condition", null=True, on_delete=models.SET_NULL, related_name="incidents",
        help_text="Condition that the incident is based on. Empty if no condition is "
        "recorded.",
    )  # fmt: skip
    began_at = models.DateTimeField(help_text="Time when the problem most likely began.")
    opened_at = models.DateTimeField(help_text="Time when Sonar opened the incident.")
    clear_since = models.DateTimeField(
        null=True,
        help_text="Time at which the problem stopped occurring. Empty while it lasts.",
    )
    closed_at = models.DateTimeField(null=True)
    merged_into = models.ForeignKey("self", null=True, on_delete=models.CASCADE)
    factor = models.FloatField(
        null=True,
        help_text="Rate since the problem began divided by the baseline. Empty if no rate is "
        "known.",
    )
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    links = models.PositiveIntegerField(help_text="Number of links that show the problem.")
    of_links = models.PositiveIntegerField(
        help_text="Number of links of the affected object that have been tested since the problem "
        "began."
    )
    sizes = ArrayField(
        models.CharField(max_length=80), help_text="Names of the affected size classes."
    )
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    muted_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(scope="link", source__isnull=False, destination__isnull=False)
                | Q(scope="source", source__isnull=False, destination__isnull=True)
                | Q(scope="destination", source__isnull=True, destination__isnull=False)
                | Q(scope="endpoint", source=F("destination"))
                | Q(scope__in=["site", "grid"], source__isnull=True, destination__isnull=True),
                name="incident_has_the_ends_of_its_scope",
            ),
            models.CheckConstraint(
                condition=Q(site__isnull=False) ^ ~Q(scope="site"),
                name="incident_has_a_site_if_of_one",
            ),
            models.UniqueConstraint(
                fields=["scope", "source", "destination", "site", "type"],
                condition=Q(closed_at=None),
                nulls_distinct=False,
                name="incident_open_once_for_a_subject",
            ),
        ]
        indexes = [models.Index(fields=["-opened_at", "-id"], name="incident_newest_first")]

    def __str__(self) -> str:
        return (
            f"{self.scope} {self.source_id} {self.destination_id} {self.site_id} since "
            f"{self.began_at:%Y-%m-%d %H:%M}"
        )

    @property
    def is_open(self) -> bool:
        return self.closed_at is None

    def is_muted(self, now: datetime) -> bool:
        return self.muted_until is not None and self.muted_until > now


class IncidentLink(models.Model):
    """A link of an incident from before there were conditions: those have links of their own."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="members")
    source = reference(Endpoint, models.CASCADE)
    destination = reference(Endpoint, models.CASCADE)
    size_class = reference(SizeClass, models.CASCADE)
    type = models.CharField(max_length=7, choices=Incident.Type)
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)
    baseline = models.FloatField(
        null=True, help_text="Baseline rate in bytes per second. Empty if unknown."
    )
    rate = models.FloatField(
        null=True,
        help_text="Rate of the newest tests when the link was added to the incident, in bytes "
        "per second.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["incident", "source", "destination", "size_class"],
                condition=Q(until=None),
                name="incidentlink_once",
            ),
        ]
        indexes = [
            # The history of a link: the newest first.
            models.Index(fields=["source", "destination", "-since"], name="incidentlink_of_a_link"),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} {self.destination_id} in {self.incident_id}"


class IncidentEvent(models.Model):
    """What happened to an incident, and who did it; ids are in the order of their commits.

    ``values`` has the figures of the incident then (`scope`, `type`, `factor`, `links`, `of_links`)
    and those that only an event of its type has, like `until`.
    """

    class Type(models.TextChoices):
        OPENED = "opened"
        GREW = "grew"
        SHRANK = "shrank"
        WORSE = "worse"
        BETTER = "better"
        CAUSE = "cause", "cause changed"
        MERGED = "merged"
        CLOSED = "closed"
        REOPENED = "reopened"
        ACKNOWLEDGED = "acknowledged"
        ASSIGNED = "assigned"
        MUTED = "muted"
        UNMUTED = "unmuted"
        NOTE = "note"
        ACCEPTED = "accepted"

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    type = models.CharField(max_length=12, choices=Type)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    text = models.CharField(max_length=1000, blank=True)
    values = models.JSONField(default=dict)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.type} at {self.at:%Y-%m-%d %H:%M}"
