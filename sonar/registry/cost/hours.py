"""How long tests wait for a limit on the bytes of any hour: the planner's queue, played through.

No formula says it: what an hour ago was one large test makes room for a large one again, and what
is left beside such tests only the small ones can use.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from sonar.registry.cost.rates import DAY, HOUR, Kind, Use

# It is followed for a day, in steps that a large grid does not feel, and no further than this.
LEAST_STEP, MOST_TURNS = 60, 20_000


class _Queue:
    """Tests that are due, those of each use in groups of (when, of how many links)."""

    def __init__(self, uses: Sequence[Use], limit: int) -> None:
        self.uses, self.room = uses, float(limit)
        self.due = [deque([(0.0, use.links)]) for use in uses]
        self.released: deque[tuple[float, int]] = deque()
        self.tests = [0] * len(uses)

    def release(self, now: float) -> None:
        """Let go of the bytes that an hour has passed over."""
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
        self.released.append((now + HOUR, count * use.bytes))
        self.room -= count * use.bytes
        self.tests[at] += count
        return True

    def _again(self, at: int, when: float, count: int) -> None:
        groups = self.due[at]
        if groups and groups[-1][0] == when:
            count += groups.pop()[1]
        groups.append((when, count))

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
    queue, now, turns = _Queue(rows, limit), 0.0, 0
    while now < DAY and turns < MOST_TURNS:
        queue.release(now)
        while queue.start(now):
            turns += 1
        now = step(queue.next(now))
    demanded = _by_kind(rows, [use.links * min(now, DAY) / use.every for use in rows])
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
