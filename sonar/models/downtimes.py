"""Times in which sites or endpoints are declared not to work, or to be at risk.

Declared here by hand, or read from where sites announce them for all (sonar.registry.downtimes).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from sonar.database.cursors import planned_rows
from sonar.models.registry import Endpoint, Site
from sonar.notation.windows import format_day, format_typed

WEB_ADDRESS = "^https?://"
# Nobody plans further ahead. Whoever does not know the end has to give one, and gives 2050.
FORESEEABLE = timedelta(days=5 * 365)


class Origin(models.TextChoices):
    """Where a downtime was declared."""

    HAND = "hand", "Sonar"
    GOCDB = "gocdb", "GOCDB"
    OSG = "osg", "OSG Topology"


ELSEWHERE = tuple(origin for origin in Origin if origin != Origin.HAND)


class Downtime(models.Model):
    """A time in which a site, or one endpoint of it, is declared not to work, or at risk.

    One that was read elsewhere has a row for each site or endpoint that it concerns, all with the
    same ``key``. Such rows follow their origin and are changed by nobody else.
    """

    class Severity(models.TextChoices):
        OUTAGE = "outage", "outage: no test starts"
        WARNING = "warning", "warning: tests continue"

    site = models.ForeignKey(Site, null=True, blank=True, on_delete=models.CASCADE)
    endpoint = models.ForeignKey(Endpoint, null=True, blank=True, on_delete=models.CASCADE)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.CharField(max_length=200)
    severity = models.CharField(
        max_length=7,
        choices=Severity,
        default=Severity.OUTAGE,
        db_default=Severity.OUTAGE,
        help_text="During an outage no test starts. A warning does not stop tests.",
    )
    origin = models.CharField(
        max_length=5,
        choices=Origin,
        default=Origin.HAND,
        db_default=Origin.HAND,
        editable=False,
        help_text="Where the downtime was declared: in Sonar, GOCDB or OSG Topology.",
    )
    key = models.CharField(
        max_length=100,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Primary key of the downtime in the system that it was imported from. Empty if "
        "the downtime was declared in Sonar.",
    )
    url = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="URL of the page about the downtime in the system that it was imported from. "
        "Empty if there is no page.",
    )

    class Meta:
        ordering = ["-starts_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(site__isnull=True) ^ Q(endpoint__isnull=True),
                name="downtime_of_one_site_or_endpoint",
                violation_error_message="A downtime affects either a site or an endpoint: choose "
                "exactly one.",
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")),
                name="downtime_ends_after_it_starts",
                violation_error_message="A downtime must end after it starts.",
            ),
            models.CheckConstraint(
                condition=Q(origin="hand", key="") | ~Q(origin="hand") & ~Q(key=""),
                name="downtime_from_elsewhere_has_a_key",
            ),
            models.CheckConstraint(
                condition=Q(url="") | Q(url__regex=WEB_ADDRESS), name="downtime_url_is_of_the_web"
            ),
            models.UniqueConstraint(
                fields=["origin", "key", "site"],
                condition=~Q(origin="hand"),
                name="downtime_once_for_a_site",
            ),
            models.UniqueConstraint(
                fields=["origin", "key", "endpoint"],
                condition=~Q(origin="hand"),
                name="downtime_once_for_an_endpoint",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"

    @property
    def subject(self) -> str:
        """Return the name of the site or endpoint."""
        return str(self.site or self.endpoint)

    @property
    def stops_tests(self) -> bool:
        return self.severity == self.Severity.OUTAGE

    @property
    def is_by_hand(self) -> bool:
        return self.origin == Origin.HAND

    @property
    def source(self) -> str:
        """Name where it was declared; empty if that was here."""
        return "" if self.is_by_hand else self.get_origin_display()

    @property
    def is_open_ended(self) -> bool:
        """Say whether its end is so many years ahead that it means no time at all."""
        return self.ends_at - timezone.now() > FORESEEABLE

    @property
    def until_words(self) -> str:
        """Say how long: `until 20 Nov 14:00 UTC`, or `until further notice`, with its end."""
        if self.is_open_ended:
            return f"until further notice (declared end: {format_day(self.ends_at, 0)} UTC)"
        return f"until {format_typed(self.ends_at)}"

    @property
    def times_words(self) -> str:
        """Say from when until when: `from 20 Nov 12:00 UTC to 20 Nov 14:00 UTC`."""
        until = self.until_words if self.is_open_ended else f"to {format_typed(self.ends_at)}"
        return f"from {format_typed(self.starts_at)} {until}"

    @property
    def group(self) -> tuple[object, ...]:
        """Return what all rows of one declared downtime share, and no others."""
        return (self.pk,) if self.is_by_hand else (self.origin, self.key, self.severity)

    @classmethod
    def endpoints_down(cls, moment: datetime) -> set[int]:
        """Return the ids of the endpoints that are declared down at this moment.

        Each matrix asks: the statement is written once, and planned once for each connection.
        """
        statement, parameters = _of_endpoints_down()
        values = [moment if value == LAST else value for value in parameters]
        return {row[0] for row in planned_rows(statement, values)}

    @classmethod
    def of_endpoints(
        cls, moment: datetime, severity: Severity = Severity.OUTAGE
    ) -> models.QuerySet[Endpoint]:
        """Return the endpoints that are declared down, or at risk, at this moment."""
        current = cls.objects.filter(
            starts_at__lte=moment, ends_at__gt=moment, severity=severity.value
        )
        return Endpoint.objects.filter(Q(downtime__in=current) | Q(site__downtime__in=current))


LAST = datetime.max.replace(tzinfo=UTC)
"""Stands for the moment in a statement that is written once."""


@cache
def _of_endpoints_down() -> tuple[str, tuple[Any, ...]]:
    """Return the statement of Downtime.of_endpoints, with LAST where it has the moment."""
    return Downtime.of_endpoints(LAST).order_by().values("id").query.sql_with_params()


class DowntimeSource(models.Model):
    """How the last questions to one source of downtimes went."""

    origin = models.CharField(max_length=5, choices=Origin, primary_key=True)
    asked_at = models.DateTimeField(help_text="Time of the last request to the source.")
    answered_at = models.DateTimeField(
        null=True,
        help_text="Time of the last request to which the source returned a valid response. Empty "
        "if there was none.",
    )
    error = models.CharField(
        max_length=500,
        blank=True,
        help_text="Error from the last request to the source. Empty if the request succeeded.",
    )
    downtimes = models.PositiveIntegerField(
        default=0, help_text="Number of downtimes in the last valid response."
    )
    of_endpoints = models.PositiveIntegerField(
        default=0,
        help_text="Number of downtimes in the last valid response that affect endpoints in use.",
    )

    class Meta:
        ordering = ["origin"]

    def __str__(self) -> str:
        return self.get_origin_display()
