"""How often one link is tested, and by how much tests wait where there is not room for all.

Pure arithmetic on seconds, bytes and counts. Due tests are a queue: where they do not all fit, each
waits about as long as any other of its rank, and is due again one interval after it began.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import time
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, TypeVar

DAY, HOUR = 86_400, 3_600
Quiet = tuple[tuple[int, int], ...]
"""Hours of a day in which no test starts, in seconds since midnight, in order and apart."""
T = TypeVar("T")
Kind = tuple[int, int]


class Use(NamedTuple):
    """Alike tests: of so many links, each due every so many seconds.

    A test has so many ``bytes``, and takes its places at both ends for so many ``seconds``.
    """

    links: int
    every: float
    quiet: Quiet
    bytes: int
    seconds: float
    priority: int
    mesh: int

    @property
    def kind(self) -> Kind:
        """Return what limits on bytes tell tests apart by: their mesh and their size."""
        return self.mesh, self.bytes

    @property
    def tests(self) -> float:
        """Return how many are made in a day."""
        return self.links * tests_a_day(self.every, self.quiet)

    def waiting(self, seconds: float) -> Use:
        """Return them as each waits for so long when it is due; infinity for never."""
        return self._replace(every=self.every + seconds)


def quiet_of(*hours: tuple[time | None, time | None]) -> Quiet:
    """Put quiet hours together; each has both ends, or none."""
    spans: list[tuple[int, int]] = []
    for start, end in hours:
        if start is None or end is None:
            continue
        begin, over = _second(start), _second(end)
        spans += [(begin, over)] if begin < over else [(begin, DAY), (0, over)]
    return _merged(spans)


def together(first: Quiet, second: Quiet) -> Quiet:
    """Return the hours in which either is quiet."""
    if first and second and first != second:
        return _merged([*first, *second])
    return first or second


def _second(moment: time) -> int:
    return moment.hour * HOUR + moment.minute * 60 + moment.second


def _merged(spans: Iterable[tuple[int, int]]) -> Quiet:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif start < end:
            merged.append((start, end))
    return tuple(merged)


def open_share(quiet: Quiet) -> float:
    """Return in which share of a day tests start."""
    return 1 - sum(end - start for start, end in quiet) / DAY


MOST_STEPS = 1000


@lru_cache(maxsize=10_000)
def tests_a_day(every: float, quiet: Quiet) -> float:
    """Return how often a link is tested in a day, in the long run.

    What is due in quiet hours is tested as they end, and the next test is one interval later. So
    the tests repeat from the end of quiet hours on: they are followed until that end comes again.
    """
    if math.isinf(every) or open_share(quiet) <= 0:
        return 0.0
    if not quiet:
        return DAY / every
    seen: dict[float, tuple[int, float]] = {}
    first = moment = _next_open(float(quiet[-1][1] % DAY), quiet)
    tests = 0
    for _ in range(MOST_STEPS):
        end = _next_quiet(moment, quiet)
        count = math.ceil((end - moment) / every)
        tests, due = tests + count, moment + count * every
        moment = _next_open(due, quiet)
        if moment > due:  # it waited
            phase = moment % DAY
            if phase in seen:
                before, earlier = seen[phase]
                return (tests - before) * DAY / (moment - earlier)
            seen[phase] = tests, moment
    return tests * DAY / (moment - first)


def _next_open(moment: float, quiet: Quiet) -> float:
    """Return the first moment from this one on at which tests start."""
    for _ in range(2):  # hours before midnight may go on after it
        midnight = moment // DAY * DAY
        for start, end in quiet:
            if start <= moment - midnight < end:
                moment = midnight + end
                break
    return moment


def _next_quiet(moment: float, quiet: Quiet) -> float:
    """Return when the next quiet hours begin."""
    midnight = moment // DAY * DAY
    starts = [start for start, _ in quiet if start > moment - midnight]
    return midnight + (starts[0] if starts else DAY + quiet[0][0])


def waits(
    uses: Iterable[Use],
    room: float,
    weight: Callable[[Use], float],
    rank: Callable[[Use], T],
) -> dict[T, float]:
    """Return by how many seconds tests of each rank wait, the lowest rank first; inf for ever.

    All of them take ``weight`` for a second each time, and there is ``room`` for so much at once.
    """
    by_level: dict[T, float] = {}
    ordered = sorted(uses, key=rank)  # type: ignore[arg-type]  # numbers, or tuples of them
    for level, alike in groupby(ordered, key=rank):
        weights = [(use.links * weight(use), use.every) for use in alike]
        by_level[level] = _wait(weights, room)
        room -= sum(each / (every + by_level[level]) for each, every in weights)
    return by_level


def _wait(weights: list[tuple[float, float]], room: float) -> float:
    """Find the wait at which all of these fit, by halving: their sum falls as it grows."""

    def needed(wait: float) -> float:
        return sum(weight / (every + wait) for weight, every in weights)

    if needed(0) <= room:
        return 0.0
    if room <= 1e-9 * needed(0):
        return math.inf
    low, high = 0.0, sum(weight for weight, _ in weights) / room
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) > room else (low, middle)
    return high
