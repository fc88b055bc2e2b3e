"""The level of all links together, and when it says that the grid itself is slow. Pure numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.assessment.conditions import SLOW, Condition
from matrix.statistics.assessment.results import GRID, Links

# The level of all links together is told from so many of their newest tests, of so many links at
# most, and where there are so many sites: in fewer, one of them would be most of it.
TREND_TESTS, TREND_LINKS, TREND_SITES, TREND_STEP = 61, 2000, 5, 6
FURTHEST_TREND = 2.0
# The whole grid is slow below this level, and well again above the other: what all links share that
# is less is taken off each of them, and concerns nobody.
GRID_SLOW, GRID_WELL = math.log(0.55), math.log(0.75)


@dataclass(frozen=True)
class Trend:
    """The level of all links together (a natural log) from each of these moments (Unix ms) on."""

    started: Integers
    level: Floats
    tail: tuple[Integers, Floats]

    @classmethod
    def unknown(cls) -> Self:
        nothing = np.empty(0, np.int64), np.empty(0)
        return cls(*nothing, nothing)

    @classmethod
    def of(cls, started: Integers, rest: Floats, before: Self | None = None) -> Self:
        """Take the median of the newest tests; ``rest`` is how far each is from its own level.

        It goes on from ``before``.
        """
        before = before or cls.unknown()
        started, rest = (
            np.concatenate(pair) for pair in zip(before.tail, (started, rest), strict=True)
        )
        tail = started[1 - TREND_TESTS :], rest[1 - TREND_TESTS :]
        if len(rest) < TREND_TESTS:
            return replace(before, tail=tail)
        clipped = np.clip(rest, -FURTHEST_TREND, FURTHEST_TREND)
        windows = np.lib.stride_tricks.sliding_window_view(clipped, TREND_TESTS)[::TREND_STEP]
        moments, levels = started[TREND_TESTS - 1 :: TREND_STEP], np.median(windows, axis=1)
        return cls(
            np.concatenate([before.started, moments]), np.concatenate([before.level, levels]), tail
        )

    def at(self, started: Integers) -> Floats:
        place = self.started.searchsorted(started, side="right")
        return np.asarray(np.concatenate([[0.0], self.level])[place])


def tells_trend(links: Links) -> Flags:
    """Say which links tell the level of all of them; none where there are too few sites."""
    chosen = np.arange(len(links)) % max(1, len(links) // TREND_LINKS) == 0
    return np.asarray(chosen & (len(np.unique(links.site[links.source])) >= TREND_SITES))


def grid_conditions(trend: Trend, begin: int, before: Sequence[Condition]) -> Iterator[Condition]:
    """Yield when the whole grid was slow, from ``begin`` (Unix ms) on.

    ``before`` has the condition of the grid that was open at ``begin``, if there was one.
    """
    open_ = [replace(each) for each in before if each.is_open]
    current = open_[0] if open_ else None
    today = np.flatnonzero(trend.started >= begin)
    half = TREND_TESTS // (2 * TREND_STEP)
    for at in today.tolist():
        level, moment = float(trend.level[at]), int(trend.started[at])
        # The median crosses a bound when half of its tests were made since.
        since = int(trend.started[max(at - half, 0)])
        if current is None and level <= GRID_SLOW:
            current = Condition(
                GRID, None, None, None, SLOW, moment, since, since, moment, confirmed_at=moment
            )
        elif current is not None and level >= GRID_WELL:
            current.ended_at = since
            yield described(current, trend)
            current = None
    if current is not None:
        yield described(current, trend)


def described(condition: Condition, trend: Trend) -> Condition:
    during = (trend.started >= condition.seen_at) & (trend.started < condition.until)
    if during.any():
        levels = trend.level[during]
        condition.factor, condition.factor_low, condition.factor_high = (
            math.exp(each) for each in np.quantile(levels, [0.5, 0.025, 0.975]).tolist()
        )
    return condition
