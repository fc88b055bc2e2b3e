"""How links stand now: their newest tests, and those against what is usual. Pure numpy.

The one place that says what `failing`, `slower`, `faster` and `usual` mean, of a link and a size
class. Everything is as of a moment, the end of a window, and looks back beyond its beginning.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Self

import numpy as np
from numpy.typing import NDArray

from matrix.query.catalogue import HIGH, LOW
from matrix.statistics.arrays import (
    THREADS,
    ArrayFields,
    Flags,
    Floats,
    Integers,
    each,
    nan_unless,
)
from matrix.statistics.compare.day_scatter import scatter_in_a_row
from matrix.statistics.compare.two_samples import (
    FALSE_SHARE,
    GROUPS,
    KnownScatter,
    Precision,
)
from matrix.statistics.estimates.moderation import Prior, largest_p
from matrix.statistics.samples.newest import NEWEST, LinkSamples, NewestTests
from matrix.statistics.samples.pooling import Numbering, Pooling
from matrix.statistics.samples.reduce import reduce
from matrix.statistics.samples.run import Run
from sonar.notation.windows import Window

Rates = NDArray[np.float32]
# No rate, and no bound.
NONE = np.float32(np.nan)

# How a link is beside its state: its newest successes against its usual.
LEVELS = ("unknown", "usual", "slower", "faster")
UNKNOWN, USUAL, SLOWER, FASTER = range(len(LEVELS))
LEVEL_WORDS = {
    level: f"{level} than usual: its newest three successful tests have a median of {bound} usual, "
    "significantly"
    for level, bound in (
        ("slower", "at most two thirds of"),
        ("faster", "at least 1.5 times"),
    )
}
# Usual is the median of the successes of so many whole UTC days before the day of the window's
# beginning, if there are at least so many; and so far back a failure is followed to its first.
USUAL_DAYS = 28
FEWEST_SUCCESSES = 5
# What is within this factor of its usual is as usual, however sure the difference is.
USUAL_FACTOR = 1.5
# So much of the way from usual to their median, in logarithms, each of the newest successes is at
# least, or they do not agree: two bad tests among three are no change.
PART_OF_WAY = 1 / 3


def usual_window(window: Window) -> Window:
    """Return the whole days whose results say what is usual for a window."""
    return days_before(window.start)


def recent_windows(window: Window, now: datetime) -> tuple[Window, Window]:
    """Return where the newest tests are: in whole days, and in the rest up to the end or now."""
    minute = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    end = min(window.end, minute)
    days = days_before(end - timedelta(milliseconds=1))
    return days, Window(days.end, end)


def days_before(moment: datetime) -> Window:
    midnight = datetime.combine(moment, time(), moment.tzinfo)
    return Window(midnight - timedelta(days=USUAL_DAYS), midnight)


@dataclass(frozen=True)
class UsualTests:
    """What the tests of each link say for themselves, shape (sources, places).

    ``median``, ``low`` and ``high`` are in bytes/s, NaN where there were not ``enough`` successes;
    ``ok`` counts these, ``failing`` is as in UsualRates. ``scatter`` is that of NEWEST in a row.
    """

    median: Floats
    low: Floats
    high: Floats
    ok: Integers
    failing: Rates
    scatter: KnownScatter

    @classmethod
    def of(cls, runs: Sequence[Run], numbering: Numbering) -> Self:
        """Reduce the runs of usual_window(), in the order of time, each of a day or a part of one.

        They may be of a part of the links: numbering.parts().
        """
        rows, columns = (np.arange(len(ids)) for ids in (numbering.source_ids, numbering.ids))
        every_link = np.ones((len(rows), len(columns)), dtype=bool)
        pooling = Pooling(numbering, rows, columns, every_link, every_link.shape)
        names = ("median", LOW.name, HIGH.name)
        reduced = reduce(runs, pooling, names)
        few = reduced.ok < FEWEST_SUCCESSES
        median, low, high = (nan_unless(~few, reduced.extras[name]) for name in names)
        failing = (reduced.failed + 1) / (reduced.ok + reduced.failed + 2)
        scatter = scatter_in_a_row(runs, numbering, NEWEST)
        return cls(median, low, high, reduced.ok, failing.astype(np.float32), scatter)

    @property
    def enough(self) -> Flags:
        return self.ok >= FEWEST_SUCCESSES

    def precision(self, prior: Prior) -> Precision:
        """Say how precise they are, by what all links tell of the scatter of each."""
        counts = np.stack([np.full_like(self.ok, NEWEST), self.ok])
        dof = np.maximum(self.scatter.dof, 1)  # of what has too few tests anyway
        precise = Precision.of(counts, "median", *prior.moderated(self.scatter.squares, dof))
        # Six digits are more than anybody needs, at half of the memory.
        return Precision(precise.error.astype(np.float32), precise.dof.astype(np.float32))


@dataclass(frozen=True)
class UsualRates(ArrayFields):
    """What is usual for each link, in bytes/s, shape (places, places); NaN where it is unknown.

    ``low`` and ``high`` bound the usual range: the 5th and the 95th percentile. ``precision`` says
    how well the median of its newest successes tells how far from usual it is. ``failing`` is how
    often a test fails, with one success and one failure beside those there were.
    """

    median: Floats
    low: Floats
    high: Floats
    precision: Precision
    failing: Rates

    @classmethod
    def of(cls, runs: Sequence[Run], numbering: Numbering) -> Self:
        """Reduce runs as UsualTests.of(). The precision is worth something only of all links."""
        return cls.of_all([UsualTests.of(runs, numbering)])

    @classmethod
    def of_all(cls, parts: Sequence[UsualTests]) -> Self:
        """Put the parts of all links together: the scatter of each is drawn to that of all."""
        enough = [
            (part.scatter.squares[part.enough], part.scatter.dof[part.enough]) for part in parts
        ]
        prior = Prior.of(*map(np.concatenate, zip(*enough, strict=True)))
        precision = Precision.joined([part.precision(prior) for part in parts])
        median, low, high, failing = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("median", "low", "high", "failing")
        )
        return cls(median, low, high, precision, failing)


@dataclass(frozen=True)
class Standings(ArrayFields):
    """How each link stands at the end of a window; arrays of shape (places, places).

    ``level`` indexes LEVELS. ``usual`` and ``now``, the median of its newest three successes, are
    in bytes/s, NaN where they are unknown. ``low`` and ``high`` bound now / usual with 95 %
    confidence where there is a level, else they are NaN. ``failing`` says that its newest three
    tests failed, ``tested`` that it was tested at all in the last 28 days. ``streak`` counts the
    tests in a row that made it failing, slower or faster, 0 for none of these; ``since`` is when
    the first of them started, in Unix s.
    """

    level: NDArray[np.uint8]
    usual: Floats
    now: Floats
    low: Rates
    high: Rates
    failing: Flags
    tested: Flags
    streak: NDArray[np.int32]
    since: Floats

    def not_failing(self, paused: Flags) -> Self:
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
    def blank(cls, shape: tuple[int, int]) -> Self:
        """Return those of links of which nothing is known."""
        usual, now, since = np.full((3, *shape), np.nan)
        low, high = np.full((2, *shape), NONE)
        failing, tested = np.zeros((2, *shape), dtype=bool)
        level, streak = np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.int32)
        return cls(level, usual, now, low, high, failing, tested, streak, since)

    @classmethod
    def unjudged(cls, newest: NewestTests, usual: Floats, numbering: Numbering) -> Self:
        """Return how links stand before all are judged together: all known ones as usual."""
        has_all = numbering.square(newest.started)[-1] > 0
        now = nan_unless(has_all, middle(*numbering.square(newest.rates)))
        streak = numbering.square(newest.streak)
        failing = are_failing(streak)
        is_known = ~failing & (now >= 0) & (usual > 0)  # and none is NaN
        blank = np.full(usual.shape, NONE)
        return cls(
            level=is_known * np.uint8(USUAL),
            usual=usual,
            now=now,
            low=blank,
            high=blank,
            failing=failing,
            tested=(numbering.square(newest.started)[0] > 0) | (streak > 0),
            streak=streak * failing,
            since=nan_unless(failing, numbering.square(newest.since) / 1000),
        )

    @classmethod
    def of(
        cls,
        newest: NewestTests,
        usual: UsualRates,
        numbering: Numbering,
        history: Callable[[], Sequence[Run]],
    ) -> Self:
        """Judge each link among all of them.

        ``history`` reads the runs that ``newest`` was made of, with offsets: only asked if links
        are slower or faster, to find since when.
        """
        unjudged = cls.unjudged(newest, usual.median, numbering)
        level, is_far = unjudged.level, unjudged.is_far
        ratio = unjudged.now / nan_unless(level == USUAL, usual.median)
        low, high, p = precisely(ratio, usual.precision)
        sure = np.argwhere(is_far & (p <= largest_p(p, FALSE_SHARE))).T
        rates = numbering.square(newest.rates)[:, *sure]
        row, column = sure[:, agree(rates, usual.median[*sure])]
        level[row, column] = np.where(ratio[row, column] < 1, SLOWER, FASTER)
        standings = replace(unjudged, low=low, high=high)
        standings._follow(history, numbering)
        return standings

    @property
    def is_far(self) -> Flags:
        """Say which links are by USUAL_FACTOR away from usual, of those that are not failing."""
        is_slow, is_fast = (
            self.now * USUAL_FACTOR <= self.usual,
            self.now >= self.usual * USUAL_FACTOR,
        )
        return np.asarray((self.level != UNKNOWN) & (is_slow | is_fast))

    def _follow(self, history: Callable[[], Sequence[Run]], numbering: Numbering) -> None:
        """Find since when links are slower or faster: since tests are nearer to now than to usual.

        In parts of each other, so that the middle is their geometric mean. Of the newest three
        successes at least two are on the side of now, which is their median.
        """
        shifted = np.flatnonzero(self.level.ravel() >= SLOWER)
        if not shifted.size:
            return
        is_slower = self.level.ravel()[shifted] == SLOWER
        bound = np.sqrt(self.now.ravel()[shifted] * self.usual.ravel()[shifted])
        samples = LinkSamples.of_links(history(), numbering.links(shifted))
        rates, bounds = samples.rates, bound[samples.link]
        beyond = np.where(is_slower[samples.link], rates <= bounds, rates >= bounds)
        first, count = samples.last_stretch(beyond)
        self.since.ravel()[shifted] = first / 1000
        self.streak.ravel()[shifted] = count


def are_failing(streak: NDArray[np.int32]) -> Flags:
    """Say which links are failing, by how many of their tests failed since the last success."""
    return np.asarray(streak >= NEWEST)


def agree(rates: Rates, usual: Floats) -> Flags:
    """Say of which links the newest rates, shape (NEWEST, links), all are away from usual."""
    ratio = middle(*rates) / usual
    bound = usual * np.power(ratio, PART_OF_WAY)
    return np.asarray(
        np.where(ratio < 1, rates.max(axis=0) <= bound, rates.min(axis=0) >= bound), dtype=bool
    )


def precisely(ratio: Floats, precision: Precision) -> tuple[Rates, Rates, Floats]:
    """Return the interval of each ratio, and how probable one as far from 1 is by chance.

    Of that, only what is below FALSE_SHARE is exact. With several threads if there are many.
    """
    number = THREADS if ratio.size > GROUPS else 1
    low, high = np.empty((2, *ratio.shape), dtype=np.float32)
    p = np.empty(ratio.shape)

    def of_rows(rows: Integers) -> None:
        part = slice(rows[0], rows[-1] + 1)
        of_part = Precision(precision.error[part], precision.dof[part])
        low[part], high[part] = of_part.interval(ratio[part])
        p[part] = of_part.chance(ratio[part], FALSE_SHARE)

    each(of_rows, [rows for rows in np.array_split(np.arange(len(ratio)), number) if rows.size])
    return low, high, p


def middle(first: Rates, second: Rates, third: Rates) -> Rates:
    """Return the median of three."""
    return np.maximum(np.minimum(first, second), np.minimum(np.maximum(first, second), third))
