"""Downtimes: when sites and endpoints are declared not to work."""

from datetime import UTC, datetime
from functools import cache

from django.db import models
from django.db.models import F, Q

from sonar.database.cursors import planned_cursor
from sonar.models.endpoint import Endpoint
from sonar.models.site import Site


class Downtime(models.Model):
    """A time in which a site, or one endpoint of it, is declared not to work."""

    site = models.ForeignKey(Site, null=True, blank=True, on_delete=models.CASCADE)
    endpoint = models.ForeignKey(Endpoint, null=True, blank=True, on_delete=models.CASCADE)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.CharField(max_length=200)

    class Meta:
        ordering = ["-starts_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(site__isnull=True) ^ Q(endpoint__isnull=True),
                name="downtime_of_one_site_or_endpoint",
                violation_error_message="Name either a site or an endpoint.",
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")),
                name="downtime_ends_after_it_starts",
                violation_error_message="A downtime must end after it starts.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.site or self.endpoint}: {self.reason}"

    @classmethod
    def endpoints_down(cls, moment: datetime) -> set[int]:
        """Return the ids of the endpoints that are declared down at this moment.

        Each matrix asks: the statement is written once, and planned once for each connection.
        """
        statement, places = _of_endpoints_down()
        with planned_cursor() as cursor:
            cursor.execute(statement, [moment] * places)
            return {row[0] for row in cursor.fetchall()}

    @classmethod
    def of_endpoints(cls, moment: datetime) -> models.QuerySet[Endpoint]:
        """Return the endpoints that are declared down at this moment."""
        current = cls.objects.filter(starts_at__lte=moment, ends_at__gt=moment)
        return Endpoint.objects.filter(Q(downtime__in=current) | Q(site__downtime__in=current))


@cache
def _of_endpoints_down() -> tuple[str, int]:
    """Return the statement of Downtime.of_endpoints, and in how many places it has the moment."""
    query = Downtime.of_endpoints(datetime.max.replace(tzinfo=UTC)).order_by().values("id").query
    statement, parameters = query.sql_with_params()
    return statement, len(parameters)
