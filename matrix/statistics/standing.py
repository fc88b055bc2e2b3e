"""How links stand now: their newest tests, and those against what is usual. Pure numpy.

The one place that says what `failing`, `slower`, `faster` and `usual` mean, of a link and a size
class. Everything is as of a moment, the end of a window, and looks back beyond its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.query.catalogue import HIGH, LOW
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.newest import KEPT as NEWEST
from matrix.statistics.newest import LinkSamples, NewestTests
from matrix.statistics.pooling import Numbering, Pooling
from matrix.statistics.reduce import reduce
from matrix.statistics.run import Run
from sonar.windows import Window

Rates = NDArray[np.float32]

# How a link is beside its state: its newest successes against its usual.
LEVELS = ("unknown", "usual", "slower", "faster")
UNKNOWN, USUAL, SLOWER, FASTER = range(len(LEVELS))
LEVEL_WORDS = {
    "slower": "slower than usual: its newest three successful tests are below the 5th percentile "
    "of the 28 days before this window, and "
    "their median is at most two thirds of the median of those days",
    "faster": "faster than usual: its newest three successful tests are above the 95th percentile "
    "of the 28 days before this window, and "
    "their median is at least one and a half times the median of those days",
}
# Usual is the median of the successes of so many whole UTC days before the day of the window's
# beginning, if there are at least so many; and so far back a failure is followed to its first.
DAYS = 28
FEWEST = 5
# What is within this factor of its usual is as usual, however narrow the usual range is.
FACTOR = 1.5


def usual_window(window: Window) -> Window:
    """Return the whole days whose results say what is usual for a window."""
    return days_before(window.start)


def recent_windows(window: Window, now: datetime) -> tuple[Window, Window]:
    """Return where the newest tests are: in whole days, and in what is left up to the end.

    A window that reaches beyond the minute of ``now`` ends with it.
    """
    minute = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    end = min(window.end, minute)
    days = days_before(end - timedelta(milliseconds=1))
    return days, Window(days.end, end)


def days_before(moment: datetime) -> Window:
    midnight = datetime.combine(moment, time(), moment.tzinfo)
    return Window(midnight - timedelta(days=DAYS), midnight)


@dataclass(frozen=True)
class UsualRates:
    """What is usual for each link, in bytes/s, shape (places, places); NaN where it is unknown.

    ``low`` and ``high`` bound the usual range: the 5th and the 95th percentile.
    """

    median: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, runs: Sequence[Run], numbering: Numbering) -> UsualRates:
        """Reduce the runs of usual_window()."""
        places = len(numbering.ids)
        place = np.arange(places)
        every_link = np.ones((places, places), dtype=bool)
        pooling = Pooling(numbering, place, place, every_link, every_link.shape)
        names = ("median", LOW.name, HIGH.name)
        reduced = reduce(runs, pooling, names)
        few = reduced.ok < FEWEST
        return cls(*(np.where(few, np.nan, reduced.extras[name]) for name in names))

    @property
    def nbytes(self) -> int:
        return self.median.nbytes + self.low.nbytes + self.high.nbytes


@dataclass(frozen=True)
class Standings:
    """How each link stands at the end of a window; arrays of shape (places, places).

    ``level`` indexes LEVELS. ``usual`` and ``now``, the median of its newest three successes, are
    in bytes/s, NaN where they are unknown. ``failing`` says that its newest three tests failed,
    ``tested`` that it was tested at all in the last 28 days. ``streak`` counts the tests in a row
    that made it failing, slower or faster, 0 for none of these; ``since`` is when the first of
    them started, in Unix s.
    """

    level: NDArray[np.uint8]
    usual: Floats
    now: Floats
    failing: Flags
    tested: Flags
    streak: NDArray[np.int32]
    since: Floats

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in self.arrays().values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {column.name: getattr(self, column.name) for column in fields(self)}

    def not_failing(self, paused: Flags) -> Standings:
        """Return them with no link failing of those whose tests are paused: nobody tests them."""
        over = self.failing & paused
        if not over.any():
            return self
        return replace(
            self,
            failing=self.failing & ~over,
            streak=np.where(over, np.int32(0), self.streak),
            since=np.where(over, np.nan, self.since),
        )

    @classmethod
    def blank(cls, shape: tuple[int, int]) -> Standings:
        """Return those of links of which nothing is known."""
        usual, now, since = np.full((3, *shape), np.nan)
        failing, tested = np.zeros((2, *shape), dtype=bool)
        level, streak = np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.int32)
        return cls(level, usual, now, failing, tested, streak, since)

    @classmethod
    def of(
        cls,
        newest: NewestTests,
        usual: UsualRates,
        numbering: Numbering,
        history: Callable[[], Sequence[Run]],
    ) -> Standings:
        """Judge each link.

        ``history`` reads the runs that ``newest`` was made of, with offsets: only asked if links
        are slower or faster, to find since when.
        """
        rates = numbering.square(newest.rates)
        now = np.where(numbering.square(newest.started)[-1] > 0, middle(*rates), np.nan)
        streak = numbering.square(newest.streak)
        failing = streak >= NEWEST
        level = levels(rates, now, usual, failing)
        since = np.where(failing, numbering.square(newest.since) / 1000, np.nan)
        standings = cls(
            level=level,
            usual=usual.median,
            now=now,
            failing=failing,
            tested=(numbering.square(newest.started)[0] > 0) | (streak > 0),
            streak=np.where(failing, streak, np.int32(0)),
            since=since,
        )
        standings._follow(history, usual, numbering)
        return standings

    def _follow(
        self, history: Callable[[], Sequence[Run]], usual: UsualRates, numbering: Numbering
    ) -> None:
        """Find since when links are slower or faster."""
        shifted = np.flatnonzero(self.level.ravel() >= SLOWER)
        if not shifted.size:
            return
        is_slower = self.level.ravel()[shifted] == SLOWER
        bound = np.where(is_slower, usual.low.ravel()[shifted], usual.high.ravel()[shifted])
        samples = LinkSamples.of_links(history(), numbering.links(shifted))
        rates, bounds = samples.rates, bound[samples.link]
        beyond = np.where(is_slower[samples.link], rates < bounds, rates > bounds)
        first, count = samples.last_stretch(beyond)
        self.since.ravel()[shifted] = first / 1000
        self.streak.ravel()[shifted] = count


def middle(first: Rates, second: Rates, third: Rates) -> Rates:
    """Return the median of three."""
    return np.maximum(np.minimum(first, second), np.minimum(np.maximum(first, second), third))


def levels(rates: Rates, now: Floats, usual: UsualRates, failing: Flags) -> NDArray[np.uint8]:
    """Compare the newest rates, shape (NEWEST, places, places), with what is usual."""
    level = np.where(np.isnan(now) | np.isnan(usual.median), UNKNOWN, USUAL).astype(np.uint8)
    slower = (rates.max(axis=0) < usual.low) & (now * FACTOR <= usual.median)
    faster = (rates.min(axis=0) > usual.high) & (now >= usual.median * FACTOR)
    np.putmask(level, (level == USUAL) & slower, SLOWER)
    np.putmask(level, (level == USUAL) & faster, FASTER)
    np.putmask(level, failing, UNKNOWN)
    return level
