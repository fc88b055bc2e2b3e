"""What limits on bytes let through, of any hour or a UTC day: the planner's queue, played through.

No formula says it: what an hour ago was one large test makes room for a large one again, and what
is left beside such tests only the small ones can use.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sonar.registry.cost.rates import DAY, HOUR, Kind, Use

# It is followed for a day, in steps that a large grid does not feel, and no further than this.
LEAST_STEP, MOST_TURNS = 60, 20_000
# For so long where a budget is less than one test of all, so that each has had its turn.
DAYS = 4


class _Queue:
    """Tests that are due, those of each use in groups of (when, of how many links).

    ``free_again`` says when the bytes of a test that starts at a moment count no more.
    """

    def __init__(
        self, uses: Sequence[Use], limit: int, free_again: Callable[[float], float]
    ) -> None:
        self.uses, self.room, self.free_again = uses, float(limit), free_again
        self.due = [deque([(0.0, use.links)]) for use in uses]
        self.released: deque[tuple[float, int]] = deque()
        self.tests = [0] * len(uses)

    def release(self, now: float) -> None:
        """Let go of the bytes that count no more."""
        while self.released and self.released[0][0] <= now:
            self.room += self.released.popleft()[1]

    def start(self, now: float) -> bool:
        """Start those tests that have been due for longest and fit, of the highest rank."""
        fitting = [
            (-use.priority, self.due[at][0][0], at)
            for at, use in enumerate(self.uses)
            if self.due[at][0][0] <= now and use.bytes <= self.room
        ]
        if not fitting:
            return False
        _, since, at = min(fitting)
        use, (_, links) = self.uses[at], self.due[at].popleft()
        count = min(links, int(self.room // use.bytes))
        if links > count:
            self.due[at].appendleft((since, links - count))
        self._again(at, now + use.every, count)
        self.released.append((self.free_again(now), count * use.bytes))
        self.room -= count * use.bytes
        self.tests[at] += count
        return True

    def _again(self, at: int, when: float, count: int) -> None:
        groups = self.due[at]
        if groups and groups[-1][0] == when:
            count += groups.pop()[1]
        groups.append((when, count))

    def play(self, until: float, step: Callable[[float], float]) -> float:
        """Start tests until a moment; return when it is, which is earlier after many turns."""
        now, turns = 0.0, 0
        while now < until and turns < MOST_TURNS:
            self.release(now)
            while self.start(now):
                turns += 1
            now = step(self.next(now))
        return min(now, until)

    def next(self, now: float) -> float:
        """Return when something is due, or when there is more room, after now."""
        coming = [groups[0][0] for groups in self.due if groups[0][0] > now]
        return min([*coming, *(moment for moment, _ in list(self.released)[:1])], default=math.inf)


def hourly_waits(
    uses: Iterable[Use], limit: int, step: Callable[[float], float]
) -> dict[Kind, float]:
    """Return by how many seconds tests of each kind wait for the limit; inf for ever.

    ``step`` says when the planner looks that a moment is over. Nothing where all fit.
    """
    rows = [use for use in uses if use.tests]
    if sum(use.links * use.bytes / use.every for use in rows) * HOUR <= limit:
        return {use.kind: math.inf for use in rows if use.bytes > limit}
    queue = _Queue(rows, limit, lambda now: now + HOUR)
    over = queue.play(DAY, step)
    demanded = _by_kind(rows, [use.links * over / use.every for use in rows])
    sent = _by_kind(rows, queue.tests)
    every = {use.kind: use.every for use in rows}
    return {kind: _wait(every[kind], demanded[kind], sent[kind]) for kind in demanded}


def _wait(every: float, demanded: float, sent: float) -> float:
    """Return by how long an interval grows if so many of the tests that it asks for are sent."""
    return max(0.0, every * (demanded / sent - 1)) if sent else math.inf


def _by_kind(uses: Sequence[Use], counts: Sequence[float]) -> dict[Kind, float]:
    by_kind: dict[Kind, float] = {}
    for use, count in zip(uses, counts, strict=True):
        by_kind[use.kind] = by_kind.get(use.kind, 0.0) + count
    return by_kind


def within_budget(uses: Iterable[Use], budget: int | None) -> Mapping[int, float]:
    """Return which share of the tests of each size a budget of bytes for a UTC day allows.

    What it held back starts at midnight, and then each test is due as often as ever until the
    bytes are used up: what is small fits longest.
    """
    rows = [use for use in uses if use.tests]
    if budget is None or sum(use.tests * use.bytes for use in rows) <= budget:
        return {}
    demanded = _by_size((use.bytes, use.tests) for use in rows)
    fitting = [use for use in rows if use.bytes <= budget]
    allowed = _by_size(_taken(fitting, budget))
    return {size: min(1.0, allowed.get(size, 0.0) / tests) for size, tests in demanded.items()}


def _by_size(counts: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Add up counts by size."""
    by_level: dict[int, float] = {}
    for size, count in counts:
        by_level[size] = by_level.get(size, 0.0) + count
    return by_level


def _taken(uses: Sequence[Use], budget: int) -> Iterator[tuple[int, float]]:
    """Yield by size how many tests are made of a budget, as they come due in a day."""
    one_round = sum(use.links * use.bytes for use in uses)
    if one_round > budget:  # what was held back for longest goes first, and what fits
        queue = _Queue(uses, budget, lambda now: (now // DAY + 1) * DAY)
        days = queue.play(DAYS * DAY, lambda now: now) / DAY
        yield from ((use.bytes, count / days) for use, count in zip(uses, queue.tests, strict=True))
        return
    left = budget
    for _, use in sorted(_events(uses), key=lambda event: event[0]):
        count = min(use.links, left // use.bytes)
        left -= count * use.bytes
        yield use.bytes, count


def _events(uses: Iterable[Use]) -> Iterator[tuple[float, Use]]:
    """Yield when which tests are due in a day, all of them at midnight first."""
    for use in uses:
        period = use.links * DAY / use.tests
        for number in range(math.ceil(DAY / period)):
            yield number * period, use
