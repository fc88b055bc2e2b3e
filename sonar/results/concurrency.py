"""How many others of Sonar's tests ran at the ends of a test while its bytes moved.

A test that reads from an endpoint and one that writes to it share its disks and its network:
both are company there. A test counts as company from its claim until its end is recorded,
with all that it prepares and cleans up. One whose worker has died counts until its deadline:
nobody can tell how long its transfer went on.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple, cast

from django.db.models import Min, Q

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


def beside(probe: Probe, move: Span | None) -> Company:
    """Count the company of a probe's move, whose own row must be deleted already.

    One statement, hence one snapshot: a test that ends at this very moment is still a running
    probe in it or a recent run already, never both and never neither. What is claimed after
    it moves no byte before it. None for a move that never began.
    """
    if move is None:
        return Company()
    runs = _runs(probe, move)
    at_source, at_destination = (
        count(move, [Span(began, ended) for *ends, began, ended in runs if end in ends])
        for end in (probe.source_id, probe.destination_id)
    )
    return Company(*at_source, *at_destination)


def _runs(probe: Probe, move: Span) -> list[tuple[int, int, datetime, datetime]]:
    """Return the ends of tests that may have been there, when they began and when they ended."""
    ends = [probe.source_id, probe.destination_id]
    there = Q(source__in=ends) | Q(destination__in=ends)
    running = Probe.objects.filter(there, state=Probe.State.RUNNING, started_at__lt=move.ended)
    recent = RecentRun.objects.filter(there, began_at__lt=move.ended, ended_at__gt=move.began)
    both = running.values_list("source_id", "destination_id", "started_at", "deadline").union(
        recent.values_list("source_id", "destination_id", "began_at", "ended_at"), all=True
    )
    # A running probe has a start and a deadline: a constraint of its table holds that.
    return cast("list[tuple[int, int, datetime, datetime]]", list(both))


def note(probe: Probe, now: datetime) -> None:
    """Keep when a probe ran, in the transaction that ends its run; others may still want it."""
    if probe.started_at is None or probe.deadline is None:
        return
    RecentRun.objects.create(
        source_id=probe.source_id,
        destination_id=probe.destination_id,
        began_at=probe.started_at,
        ended_at=max(probe.started_at, min(now, probe.deadline)),
    )


def forget(now: datetime) -> None:
    """Remove the runs that ended before all that run now began: nobody had them as company."""
    running = Probe.objects.filter(state=Probe.State.RUNNING)
    earliest: datetime | None = running.aggregate(earliest=Min("started_at"))["earliest"]
    RecentRun.objects.filter(ended_at__lt=min(earliest or now, now) - CLOCKS_DIFFER).delete()
