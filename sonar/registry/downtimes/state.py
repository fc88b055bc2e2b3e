"""How old what is known of each source of downtimes is, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from sonar.models import Downtime, DowntimeSource
from sonar.models.downtimes import Origin

STALE_AFTER = timedelta(hours=1)


@dataclass(frozen=True)
class SourceState:
    """A source that is asked, or whose downtimes are not over yet.

    ``is_set`` says that it is asked every few minutes; ``answered_at`` is when it was asked for the
    last answer that was good, and ``error`` why there is no younger one.
    """

    source: str
    name: str
    is_set: bool
    asked_at: datetime | None
    answered_at: datetime | None
    stale: bool
    error: str
    downtimes: int
    of_endpoints: int


def addresses() -> dict[str, str]:
    """Return by origin where downtimes are asked for: those that are set."""
    both = {Origin.GOCDB: settings.SONAR_GOCDB_URL, Origin.OSG: settings.SONAR_OSG_DOWNTIMES_URL}
    return {origin.value: address for origin, address in both.items() if address}


def states(now: datetime) -> tuple[SourceState, ...]:
    """Return the sources there are. At most two SQL queries, one as long as none was ever asked."""
    rows = {row.origin: row for row in DowntimeSource.objects.all()}
    asked_here = addresses()
    others = rows.keys() - asked_here.keys()
    if others:
        lasting = Downtime.objects.filter(origin__in=others, ends_at__gt=now)
        others = set(lasting.order_by().values_list("origin", flat=True).distinct())
    origins = [origin for origin in Origin if origin in asked_here or origin in others]
    return tuple(
        state_of(origin, rows.get(origin), now, is_set=origin in asked_here) for origin in origins
    )


def state_of(
    origin: Origin, row: DowntimeSource | None, now: datetime, *, is_set: bool
) -> SourceState:
    asked_at, answered_at = (row.asked_at, row.answered_at) if row else (None, None)
    return SourceState(
        source=origin.value,
        name=origin.label,
        is_set=is_set,
        asked_at=asked_at,
        answered_at=answered_at,
        stale=answered_at is None or now - answered_at > STALE_AFTER,
        error=row.error if row else "",
        downtimes=row.downtimes if row else 0,
        of_endpoints=row.of_endpoints if row else 0,
    )
