"""How links stand now: their newest tests against what is usual, and by conditions. Pure numpy.

Numbers are made here; what is failing, slower, faster or silent, conditions say
(`matrix.assessment`). Everything is as of a moment, the end of a window, and looks back beyond its
beginning.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from matrix.query.catalogue import HIGH, LOW
from matrix.statistics.arrays import THREADS, ArrayFields, Flags, Floats, Integers, each, nan_unless
from matrix.statistics.compare.day_scatter import scatter_in_a_row
from matrix.statistics.compare.two_samples import GROUPS, KnownScatter, Precision
from matrix.statistics.estimates.moderation import Prior
from matrix.statistics.samples.newest import NEWEST, NewestTests
from matrix.statistics.samples.pooling import Numbering, Pooling
from matrix.statistics.samples.reduce import reduce
from matrix.statistics.samples.run import Run
from sonar.notation.windows import Window

Rates = NDArray[np.float32]
# No rate, and no bound.
NONE = np.float32(np.nan)

# How a link is, apart from its state. Their numbers are in answers: more may only come last.
LEVELS = ("unknown", "usual", "slower", "faster", "silent")
UNKNOWN, USUAL, SLOWER, FASTER, SILENT = range(len(LEVELS))
LEVEL_WORDS = {
    "slower": "slower than usual: the rate of the link, or of its source or destination, has "
    "dropped significantly",
    "faster": "faster than usual: the rate of the link, or of its source or destination, has "
    "risen significantly",
    "silent": "silent: not tested for several intervals of its mesh (test schedule), without a "
    "known reason",
}
# Usual is the median of the successes of so many whole UTC days before the day of the window's
# beginning, if there are at least so many.
USUAL_DAYS = 28
FEWEST_SUCCESSES = 5
# What is within this factor of its usual is as usual, however sure the difference is.
USUAL_FACTOR = 1.5


def usual_window(window: Window) -> Window:
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

    Numbers are of its tests: ``usual`` and ``now``, the median of its newest three successes, are
    in bytes/s, NaN where they are unknown. ``low`` and ``high`` bound now / usual with 95 %
    confidence, NaN where either is unknown. ``tested`` says that it was tested at all in the last
    28 days.

    Judgements are of the conditions that have it as a member. ``level`` indexes LEVELS, and
    ``failing`` says that it is a member of a confirmed condition that fails, ``streak`` then how
    many of its tests failed since its last success; it has no level. ``since`` is when the
    condition of a link began that is failing, silent, slower or faster, in Unix s. ``unconfirmed``
    indexes MARKS where a condition says so that is not confirmed: the level of such a link is
    unknown. ``condition`` is the id of either condition, 0 for none. The usual rate of a member is
    what was usual before its condition began.
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
    unconfirmed: NDArray[np.uint8]
    condition: NDArray[np.int32]

    @classmethod
    def blank(cls, shape: tuple[int, int]) -> Self:
        """Return those of links of which nothing is known: read-only, in no memory."""
        nothing: dict[str, Any] = {
            **dict.fromkeys(("usual", "now", "since"), np.float64(np.nan)),
            **dict.fromkeys(("low", "high"), NONE),
            **dict.fromkeys(("failing", "tested"), np.False_),
            **dict.fromkeys(("level", "unconfirmed"), np.uint8(UNKNOWN)),
            **dict.fromkeys(("streak", "condition"), np.int32(0)),
        }
        return cls(**{name: np.broadcast_to(value, shape) for name, value in nothing.items()})

    @classmethod
    def of(
        cls,
        newest: NewestTests,
        usual: Floats,
        numbering: Numbering,
        precision: Precision | None = None,
    ) -> Self:
        """Return how links stand of which none is a member of a condition: all known as usual.

        Of a link whose newest three tests failed it is not known. Without a ``precision`` there are
        no bounds.
        """
        blank = cls.blank(usual.shape)
        started, streak = numbering.square(newest.started), numbering.square(newest.streak)
        first, second, third = numbering.square(newest.rates)
        middle = np.minimum(np.maximum(first, second), third)
        now = nan_unless(started[-1] > 0, np.maximum(np.minimum(first, second), middle))
        is_known = (now >= 0) & (usual > 0)  # and none is NaN
        low, high = blank.low, blank.high
        if precision is not None:
            low, high = bounds(now / nan_unless(is_known, usual), precision)
        return replace(
            blank,
            level=(is_known & (streak < NEWEST)) * np.uint8(USUAL),
            usual=usual,
            now=now,
            low=low,
            high=high,
            tested=(started[0] > 0) | (streak > 0),
            streak=streak,
        )


def bounds(ratio: Floats, precision: Precision) -> tuple[Rates, Rates]:
    """Return the interval of each ratio; with several threads if there are many."""
    number = THREADS if ratio.size > GROUPS else 1
    low, high = np.empty((2, *ratio.shape), dtype=np.float32)

    def of_rows(rows: Integers) -> None:
        part = slice(rows[0], rows[-1] + 1)
        of_part = Precision(precision.error[part], precision.dof[part])
        low[part], high[part] = of_part.interval(ratio[part])

    each(of_rows, [rows for rows in np.array_split(np.arange(len(ratio)), number) if rows.size])
    return low, high
