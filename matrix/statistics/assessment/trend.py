"""The level of all links together, and when it says that the grid itself is slow. Pure numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.assessment.conditions import SLOW, ClassCondition
from matrix.statistics.assessment.grid_links import GRID, GridLinks, JudgedTests

# The level of all links together is told from so many of their newest tests, of so many links at
# most; from fewer tests where there are few links. In a grid of few endpoints one of them is most
# of it: there it is the level without the endpoint that makes the greatest difference.
TREND_TESTS, TREND_LINKS, TREND_STEP = 61, 2000, 6
FEW_LINKS, FEWER_TESTS, FEW_ENDS, FEWEST_ENDS = 60, 31, 9, 3
FURTHEST_TREND = 2.0
# The whole grid is slow below this level, and well again above the other: what all links share that
# is less is taken off each of them, and concerns nobody.
GRID_SLOW, GRID_WELL = math.log(0.5), math.log(0.7)


@dataclass(frozen=True)
class Trend:
    """The level of all links together (a natural log) from each of these moments (Unix ms) on.

    ``tail`` are the newest of the tests that tell it: when they started, how far each is from its
    own level, and their ends.
    """

    started: Integers
    level: Floats
    tail: tuple[Integers, Floats, Integers, Integers]

    @classmethod
    def unknown(cls) -> Self:
        none = np.empty(0, np.int64)
        return cls(none, np.empty(0), (none, np.empty(0), none, none))

    def with_tests(self, links: GridLinks, tests: JudgedTests, rest: Floats) -> Self:
        """Go on with tests; ``rest`` is how far each is from its own level, NaN unknown."""
        every = max(1, len(links) // TREND_LINKS)
        tells = np.flatnonzero(np.isfinite(rest) & (tests.link % every == 0))
        link = tests.link[tells]
        values = tests.started[tells], rest[tells], links.source[link], links.destination[link]
        pairs = zip(self.tail, values, strict=True)
        started, rest, *ends = (np.concatenate(pair) for pair in pairs)
        count = FEWER_TESTS if len(links) < FEW_LINKS else TREND_TESTS
        newest = slice(1 - count, None)
        tail = started[newest], rest[newest], ends[0][newest], ends[1][newest]
        if len(rest) < count:
            return replace(self, tail=tail)
        windows, sources, destinations = (
            np.lib.stride_tricks.sliding_window_view(each, count)[::TREND_STEP]
            for each in (np.clip(rest, -FURTHEST_TREND, FURTHEST_TREND), *ends)
        )
        used = links.ends
        if len(used) > FEW_ENDS:
            level = np.median(windows, axis=1)
        elif len(used) < FEWEST_ENDS:
            level = np.zeros(len(windows))
        else:
            without = np.stack(
                [
                    middles(np.where((sources == end) | (destinations == end), np.nan, windows))
                    for end in used
                ]
            )
            least = np.abs(without).argmin(axis=0)
            level = np.take_along_axis(without, least[None], axis=0)[0]
        moments = started[count - 1 :: TREND_STEP]
        return type(self)(
            np.concatenate([self.started, moments]), np.concatenate([self.level, level]), tail
        )

    def at(self, started: Integers) -> Floats:
        place = self.started.searchsorted(started, side="right")
        return np.asarray(np.concatenate([[0.0], self.level])[place])

    def is_doubtful(self, started: Integers) -> Flags:
        """Say when all links together are at half of their level, or at twice it."""
        off = np.abs(self.level)
        turns = np.where(off >= -GRID_SLOW, 1, np.where(off <= -GRID_WELL, -1, 0))
        newest = np.maximum.accumulate(np.where(turns, np.arange(len(turns)), 0))
        state = np.concatenate([[False], turns[newest] > 0])
        return np.asarray(state[self.started.searchsorted(started, side="right")])


def middles(windows: Floats) -> Floats:
    """Return the median of each window, 0 where all is NaN."""
    ordered = np.sort(windows, axis=1)
    count = np.isfinite(ordered).sum(axis=1)
    low, high = (np.maximum(count - 1, 0) // 2)[:, None], (np.maximum(count, 1) // 2)[:, None]
    pairs = (np.take_along_axis(ordered, place, axis=1)[:, 0] for place in (low, high))
    return np.asarray(np.nan_to_num(sum(pairs) / 2))


def grid_conditions(
    trend: Trend, begin: int, before: Sequence[ClassCondition]
) -> Iterator[ClassCondition]:
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
            current = ClassCondition(
                GRID, None, None, None, SLOW, moment, since, since, moment, moment, listed_at=moment
            )
        elif current is not None and level >= GRID_WELL:
            current.ended_at = max(since, current.seen_at)
            yield described(current, trend)
            current = None
    if current is not None:
        yield described(current, trend)


def described(condition: ClassCondition, trend: Trend) -> ClassCondition:
    during = (trend.started >= condition.seen_at) & (trend.started <= condition.until)
    if during.any():
        levels = trend.level[during]
        condition.factor, condition.factor_low, condition.factor_high = (
            math.exp(each) for each in np.quantile(levels, [0.5, 0.025, 0.975]).tolist()
        )
    return condition
