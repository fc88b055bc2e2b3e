"""What holds tests back at whole endpoints: declared downtimes, pauses and quiet hours of sites."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from sonar.models import Downtime, Endpoint

COLUMNS = [
    f"site__{name}"
    for name in ("name", "quiet_from", "quiet_until", "paused_since", "paused_until")
]


@dataclass(frozen=True)
class Restrictions:
    """The endpoints (ids) at which no test starts at a moment.

    ``paused`` has the sentence why. ``quiet`` are those whose site has its quiet hours: they hold
    back what is scheduled, not what people order.
    """

    down: Set[int]
    paused: Mapping[int, str]
    quiet: Set[int]

    @classmethod
    def at(cls, now: datetime) -> Restrictions:
        """Read them. One SQL query."""
        down: set[int] = set()
        paused: dict[int, str] = {}
        quiet: set[int] = set()
        for endpoint in _concerned(now):
            site = endpoint.site
            if endpoint.is_down:  # type: ignore[attr-defined]  # annotated
                down.add(endpoint.id)
            if site.is_paused(now):
                paused[endpoint.id] = f"{site.name} has paused its tests {site.pause_end()}."
            if site.is_quiet(now):
                quiet.add(endpoint.id)
        return cls(down, paused, quiet)


def _concerned(now: datetime) -> QuerySet[Endpoint]:
    """Return the endpoints that are down, and those of sites with quiet hours or a pause."""
    down = ExpressionWrapper(
        Q(id__in=Downtime.of_endpoints(now).order_by().values("id")), BooleanField()
    )
    of_sites = Q(site__quiet_from__isnull=False) | Q(site__paused_since__isnull=False)
    rows = Endpoint.objects.annotate(is_down=down).filter(Q(is_down=True) | of_sites).order_by()
    return rows.select_related("site").only(*COLUMNS)
