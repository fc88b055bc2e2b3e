"""Concurrent tests: other Sonar tests at the source or destination of a test while bytes moved.

Tests that read from an endpoint and tests that write to it share its disks and its network, so
both count there. A test counts from its claim until its end is recorded, including preparation
and clean-up. A test whose worker has died counts until its deadline, because the end of its
transfer is unknown.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

from django.db.models import Min
from psycopg.types.numeric import Int8

from sonar.database.cursors import planned_rows
from sonar.models import Probe, RecentRun

# Clocks of workers may differ by this much before one misses another's run.
CLOCKS_DIFFER = timedelta(minutes=5)


class Span(NamedTuple):
    """From a moment on until before another."""

    began: datetime
    ended: datetime


class ConcurrentTests(NamedTuple):
    """The number of concurrent tests: the mean over the time of a move, and the maximum.

    All None where not recorded. Named like the fields of Transfer.
    """

    concurrent_at_source_mean: float | None = None
    concurrent_at_source_max: int | None = None
    concurrent_at_destination_mean: float | None = None
    concurrent_at_destination_max: int | None = None

    @property
    def concurrent(self) -> int | None:
        """0 without concurrent tests, 1 with some: the field of Profile."""
        if self.concurrent_at_source_max is None or self.concurrent_at_destination_max is None:
            return None
        return int(self.concurrent_at_source_max > 0 or self.concurrent_at_destination_max > 0)


def count(own: Span, others: Iterable[Span]) -> tuple[float, int]:
    """Return how many others there were in a span: their mean over its time, and the most.

    Whoever ends when another begins was never there with it. A span without length is a moment.
    """
    if own.ended <= own.began:
        there = sum(other.began <= own.began < other.ended for other in others)
        return float(there), there
    shared = [cut for other in others if (cut := _shared(own, other))]
    seconds = sum((cut.ended - cut.began).total_seconds() for cut in shared)
    # At one moment those that end come first: -1 is less than 1.
    steps = sorted(step for cut in shared for step in ((cut.began, 1), (cut.ended, -1)))
    most = max(accumulate((change for _, change in steps), initial=0))
    return seconds / (own.ended - own.began).total_seconds(), most


def _shared(own: Span, other: Span) -> Span | None:
    cut = Span(max(own.began, other.began), min(own.ended, other.ended))
    return cut if cut.began < cut.ended else None


# The snapshot of this statement still has the row that it deletes, and not yet the run that it
# notes.
END_RUN = """
    WITH ended AS (
        DELETE FROM sonar_probe
        WHERE id = %(probe)s AND state = 'running' AND started_at = %(began)s
        RETURNING id
    ), noted AS (
        INSERT INTO sonar_recentrun (source_id, destination_id, began_at, ended_at)
        SELECT %(source)s, %(destination)s, %(began)s, %(until)s FROM ended
    )
    SELECT 0, 0, NULL::timestamptz, NULL::timestamptz FROM ended
    UNION ALL
    SELECT source_id, destination_id, started_at, deadline FROM sonar_probe
    WHERE (source_id IN (%(source)s, %(destination)s)
           OR destination_id IN (%(source)s, %(destination)s))
      AND state = 'running' AND started_at < %(move_ended)s AND id <> %(probe)s
    UNION ALL
    SELECT source_id, destination_id, began_at, ended_at FROM sonar_recentrun
    WHERE (source_id IN (%(source)s, %(destination)s)
           OR destination_id IN (%(source)s, %(destination)s))
      AND began_at < %(move_ended)s AND ended_at > %(move_began)s
"""


# The row that says that it was this run that ended.
MINE = (0, 0, None, None)


def end_run(probe: Probe, move: Span | None, now: datetime) -> ConcurrentTests | None:
    """Delete the row of a probe's run, keep when it ran, and count its concurrent tests.

    None if another process has ended or taken back this run; counts of None for a move that never
    began. One statement, hence one snapshot: a test that ends at this very moment is still a
    running probe in it or a recent run already, never both and never neither. What is claimed
    after it moves no byte before it.
    """
    values: dict[str, Any] = {
        "probe": probe.id,
        "source": Int8(probe.source_id),
        "destination": Int8(probe.destination_id),
        "began": probe.started_at,
        "until": _until(probe, now),
        "move_began": move and move.began,
        "move_ended": move and move.ended,
    }
    rows = planned_rows(END_RUN, values)
    others = [row for row in rows if row != MINE]
    if len(others) == len(rows):
        return None
    return _concurrent(probe, move, others) if move else ConcurrentTests()


Run = tuple[int, int, datetime, datetime]
"""Both ends of a test, when it began and when it ended or will have ended."""


def _concurrent(probe: Probe, move: Span, runs: Iterable[Run]) -> ConcurrentTests:
    """Count the runs that were at either end of a probe while its bytes moved."""
    at_source, at_destination = (
        count(move, [Span(began, ended) for *ends, began, ended in runs if end in ends])
        for end in (probe.source_id, probe.destination_id)
    )
    return ConcurrentTests(*at_source, *at_destination)


def note(probes: Iterable[Probe], now: datetime) -> None:
    """Keep when probes ran, in the transaction that ends their runs; others may still want it."""
    RecentRun.objects.bulk_create(
        RecentRun(
            source_id=probe.source_id,
            destination_id=probe.destination_id,
            began_at=probe.started_at,
            ended_at=_until(probe, now),
        )
        for probe in probes
        if probe.started_at and probe.deadline
    )


def _until(probe: Probe, now: datetime) -> datetime:
    """Return until when others had a run that ends now: until its deadline at the latest."""
    return max(probe.started_at or now, min(now, probe.deadline or now))


def forget(now: datetime) -> None:
    """Remove the runs that ended before all that run now began: no open test overlaps them."""
    running = Probe.objects.filter(state=Probe.State.RUNNING)
    earliest: datetime | None = running.aggregate(earliest=Min("started_at"))["earliest"]
    RecentRun.objects.filter(ended_at__lt=min(earliest or now, now) - CLOCKS_DIFFER).delete()
