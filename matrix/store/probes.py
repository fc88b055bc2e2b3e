"""The tests that have not ended: how far they are, what comes before, and which wait longest."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from matrix.store import keyset
from matrix.store.keyset import Cursor
from sonar.models import Probe, Schedule
from sonar.notation.units import MB
from sonar.ordering import queue_positions

# Oldest first: as they were asked for, which is how the queue gives them out.
ORDER = ("requested_at", "id")
# Due since the last tick: the planner has not looked at them yet.
NEXT_TICK = "next tick"
# So many of the oldest are looked at: a budget may hold back millions.
OLDEST_DUE = 1000
MOST_EXAMPLES = 3


@dataclass(frozen=True)
class ProbeProgress:
    """A test at a moment. ``place`` is 1 for the next, None for one that runs.

    A queued test stands among all that are queued for a worker, one that waits for room among
    those that wait to leave its source or to reach its destination.
    """

    probe: Probe
    place: int | None
    moment: datetime

    @property
    def seconds(self) -> float | None:
        """Return for how long a worker has had it; that includes making its source file."""
        started = self.probe.started_at
        return max((self.moment - started).total_seconds(), 0.0) if started else None

    @property
    def share(self) -> float:
        """Return how much of the file has arrived, from 0 to 1."""
        return min(self.probe.progress_bytes / self.probe.bytes, 1.0)

    @property
    def rate_mb_s(self) -> float | None:
        """Return the rate so far, of what has arrived over all its seconds."""
        return self.probe.progress_bytes / self.seconds / MB if self.seconds else None


@dataclass(frozen=True)
class ProbeList:
    """Some of them, oldest first; ``next`` says where the next page begins, if there is one."""

    tests: list[ProbeProgress]
    next: Cursor | None


def rows() -> QuerySet[Probe]:
    return Probe.objects.select_related("source", "destination", "size_class", "mesh")


def listing(chosen: QuerySet[Probe], now: datetime, count: int, after: Cursor | None) -> ProbeList:
    """Return a page of tests. Two SQL queries over a table that has few rows."""
    probes, last = keyset.page_by_time(chosen, ORDER, count, after)
    return ProbeList(progress_of(probes, now), last)


def progress_of(probes: list[Probe], now: datetime) -> list[ProbeProgress]:
    places = queue_positions.places()
    return [ProbeProgress(probe, places.get(probe.id), now) for probe in probes]


def by_id(sought: UUID, now: datetime) -> ProbeProgress | None:
    probe = rows().filter(id=sought).first()
    return progress_of([probe], now)[0] if probe else None


@dataclass(frozen=True)
class Held:
    """A scheduled test (``schedule``) that is due since ``due``; all of it but its size are ids."""

    schedule: int
    source: int
    destination: int
    size: str
    due: datetime


def longest_waiting(now: datetime) -> Mapping[str, list[Held]]:
    """Return the longest waiting by reason, of those that are due longest. One SQL query."""
    due = Schedule.objects.filter(next_due__lte=now).order_by("next_due", "id")
    by_reason: dict[str, list[Held]] = {}
    for row in due.select_related("size_class")[:OLDEST_DUE]:
        longest_waiting = by_reason.setdefault(row.skipped_because or NEXT_TICK, [])
        if len(longest_waiting) < MOST_EXAMPLES:
            ends = (row.source_id, row.destination_id)
            longest_waiting.append(Held(row.id, *ends, row.size_class.name, row.next_due))
    return by_reason
