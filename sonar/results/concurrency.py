"""How many others of Sonar's tests ran at the ends of a test while its bytes moved.

A test that reads from an endpoint and one that writes to it share its disks and its network:
both are company there. A test counts as company from its claim until its end is recorded,
with all that it prepares and cleans up. One whose worker has died counts until its deadline:
nobody can tell how long its transfer went on.
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


class Company(NamedTuple):
    """How many others there were: their mean over the time of a move, and the most at once.

    All None where nobody can tell. Named like the fields of Transfer.
    """

    beside_source: float | None = None
    beside_source_max: int | None = None
    beside_destination: float | None = None
    beside_destination_max: int | None = None

    @property
    def beside(self) -> int | None:
        """0 if it was alone, 1 if it was not: the field of Profile."""
        if self.beside_source_max is None or self.beside_destination_max is None:
            return None
        return int(self.beside_source_max > 0 or self.beside_destination_max > 0)


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


def end_run(probe: Probe, move: Span | None, now: datetime) -> Company | None:
    """Delete the row of a probe's run, keep when it ran, and count the company of its move.

    None if somebody else has ended or taken back this run; a company of None for a move that never
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
    return _company(probe, move, others) if move else Company()


Run = tuple[int, int, datetime, datetime]
"""Both ends of a test, when it began and when it ended or will have ended."""


def _company(probe: Probe, move: Span, runs: Iterable[Run]) -> Company:
    """Count the runs that were at either end of a probe while its bytes moved."""
    at_source, at_destination = (
        count(move, [Span(began, ended) for *ends, began, ended in runs if end in ends])
        for end in (probe.source_id, probe.destination_id)
    )
    return Company(*at_source, *at_destination)


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
    """Remove the runs that ended before all that run now began: nobody had them as company."""
    running = Probe.objects.filter(state=Probe.State.RUNNING)
    earliest: datetime | None = running.aggregate(earliest=Min("started_at"))["earliest"]
    RecentRun.objects.filter(ended_at__lt=min(earliest or now, now) - CLOCKS_DIFFER).delete()
