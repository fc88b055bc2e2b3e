"""The rates of two sides compared: medians or means, their ratio, its interval, and how sure it is.

By a moderated t on natural logarithms of rates: the one place that says what is slower and what is
faster than something else. How far single tests of a link scatter is told by its own tests and, as
far as links are alike in that, by those of all links that are compared (see moderation.py).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from matrix.statistics.arrays import THREADS, ArrayFields, Flags, Floats, Integers, each
from matrix.statistics.estimates import student
from matrix.statistics.estimates.moderation import Prior, largest_p
from matrix.statistics.samples.pooling import Pooling
from matrix.statistics.samples.reduce import LEAST_RATE, LOG_SQUARES, Reduced, reduce
from matrix.statistics.samples.run import Run
from sonar.notation.units import MB

# How a side may differ from the other one; by their number in arrays with "" for neither.
CHANGES = ("slower", "faster")
CHANGE_KINDS = ("", *CHANGES)
# Fewer successes on a side say nothing about their scatter.
FEWEST_TESTS = 3
# What differs by less than this factor is nothing that anybody would look into, however sure.
SMALLEST_RATIO = 1.1
# Of those that are called sure, at most this share is so by chance, in the mean over many lists.
FALSE_SHARE = 0.03
# With what probability an interval holds what is true.
CONFIDENCE = 0.95
# Of logs, within which those of rates are that make any sense.
LEAST_VARIANCE, MOST_VARIANCE = 1e-12, 100.0
# Of a p that is computed again beside others.
ROUNDING = 1e-6
# A thread for fewer would not pay.
GROUPS = 10_000
# Quantiles of t are read between so many places of 1 / dof, to six digits.
PLACES = 4001


@dataclass(frozen=True)
class Pairs(ArrayFields):
    """Two samples of rates for each group, of this side and of the other; shape (2, ...).

    ``centres`` are medians or means, NaN for none; ``squares``, of shape (...), are those of the
    natural logs of the rates beside the mean log of their side, of both sides.
    """

    counts: Integers
    centres: Floats
    squares: Floats


@dataclass(frozen=True)
class KnownScatter(ArrayFields):
    """How far the tests of each group scatter, where that is known beforehand.

    ``squares`` of logs beside their mean, added up, and degrees of freedom; where these are 0, both
    sides of the group itself tell.
    """

    squares: Floats
    dof: Floats


@dataclass(frozen=True)
class Rule:
    """What pairs of samples are judged by, as all of them together make it.

    ``prior`` says how far one scatters; ``most_p`` is the p of the least sure that differs beyond
    chance, -1 for none.
    """

    prior: Prior
    most_p: float


@dataclass(frozen=True)
class Precision(ArrayFields):
    """How well the ratio of two centres is known: the error of its natural log, and its dof."""

    error: Floats
    dof: Floats

    @classmethod
    def of(cls, counts: Integers, of: str, variance: Floats, dof: Floats) -> Self:
        """Return that of medians or means of so many tests, shape (2, ...), of such a scatter."""
        squares = inflation(of, counts, variance) * variance / counts.clip(1)
        return cls(np.sqrt(squares.sum(axis=0)), dof)

    def interval(self, ratio: Floats) -> tuple[Floats, Floats]:
        """Return the bounds within which each ratio is with 95 % confidence."""
        half = self.reach(1 - CONFIDENCE)
        with np.errstate(invalid="ignore", over="ignore"):  # of a rate of 0
            return ratio * np.exp(-half), ratio * np.exp(half)

    def reach(self, chance: float) -> Floats:
        """Return how far from 1 a ratio is, as a natural log, that is so probable by chance."""
        return np.interp(1 / self.dof, *_quantiles(chance)) * self.error

    def chance(self, ratio: Floats) -> Floats:
        """Return how probable a ratio as far from 1 is by chance, to either side; NaN for NaN."""
        # Of a rate of 0, or of equal ones.
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(ratio == 1, 0.0, np.log(ratio) / self.error)
        p = np.full_like(t, np.nan)  # all rates of both sides may be 0
        has_t = ~np.isnan(t)
        p[has_t] = student.two_sided_of_many(t[has_t], self.dof[has_t])
        return p


@dataclass(frozen=True)
class Ratios(ArrayFields):
    """Arrays of one shape. Rates in MB/s; NaN where there is none.

    ``value`` is the median (or mean) of this side and ``other`` that of the other, ``ratio`` the
    first in parts of the second: above 1 this side is faster. ``low`` and ``high`` bound it with
    95 % confidence, ``p`` says how probable it is by chance alone; all only where there is
    ``enough``. ``ok`` and ``other_ok`` count the successes of both sides. ``sure`` says which
    differ beyond chance among all that are compared, and by SMALLEST_RATIO at least.
    """

    value: Floats
    other: Floats
    ratio: Floats
    low: Floats
    high: Floats
    p: Floats
    ok: Integers
    other_ok: Integers
    sure: Flags

    @property
    def enough(self) -> Flags:
        """Say where both sides have the successes that an interval takes."""
        return np.asarray((self.ok >= FEWEST_TESTS) & (self.other_ok >= FEWEST_TESTS))

    @property
    def perhaps(self) -> Flags:
        """Say which differ by interval and SMALLEST_RATIO, but not beyond chance among all."""
        return is_apart(self.ratio, self.low, self.high) & ~self.sure

    def most_certain(self, where: Flags) -> Integers:
        """Return the rows and columns of cells, shape (cells, 2), the most certain first."""
        rows, columns = np.nonzero(where)
        p, ratio = self.p[rows, columns], self.ratio[rows, columns]
        with np.errstate(divide="ignore"):  # a median of 0
            order = np.lexsort((-np.abs(np.log(ratio)), p))
        return np.asarray(np.stack([rows, columns], 1)[order])

    @classmethod
    def blank(cls, groups: int) -> Self:
        """Return those of groups without samples."""
        value, other, ratio, low, high, p = np.full((6, groups), np.nan)
        ok, other_ok = np.zeros((2, groups), dtype=np.int64)
        sure = np.zeros(groups, dtype=bool)
        return cls(value, other, ratio, low, high, p, ok, other_ok, sure)

    @classmethod
    def of(
        cls,
        pairs: Pairs,
        of: str,
        prior: Prior,
        known_scatter: KnownScatter | None,
        unit: float = 1.0,
    ) -> Self:
        """Compare the two samples of each group; ``unit`` is MB/s in the unit of their rates.

        None is ``sure``, as that is said of all together.
        """
        (own, other), counts = pairs.centres, pairs.counts
        enough = np.asarray((counts >= FEWEST_TESTS).all(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):  # of a rate of 0
            ratio = np.where(enough, own / other, np.nan)
        scatter = prior.moderated(*scatter_of(pairs, known_scatter))
        precision = Precision.of(counts, of, *scatter)
        low, high = precision.interval(ratio)
        p, sure = precision.chance(ratio), np.zeros(ratio.shape, dtype=bool)
        return cls(own / unit, other / unit, ratio, low, high, p, counts[0], counts[1], sure)


def judged(
    pairs: Pairs,
    of: str,
    *,
    known_scatter: KnownScatter | None = None,
    rule: Rule | None = None,
    unit: float = 1.0,
) -> tuple[Ratios, Rule]:
    """Compare the samples of each group by ``rule``, or by that which all make; many by threads."""
    prior = rule.prior if rule else prior_of(pairs, known_scatter)
    number = THREADS if pairs.squares.size > GROUPS else 1
    edges = np.linspace(0, len(pairs.squares), number + 1).astype(int).tolist()

    def compared(part: slice) -> Ratios:
        own = Pairs(pairs.counts[:, part], pairs.centres[:, part], pairs.squares[part])
        return Ratios.of(own, of, prior, known_scatter and known_scatter.taken(part), unit)

    ratios = Ratios.joined(each(compared, [slice(*edge) for edge in pairwise(edges)]))
    rule = rule or Rule(prior, largest_p(ratios.p, FALSE_SHARE))
    # Beyond chance, and by more than nobody would look into.
    sure = is_far(ratios.ratio) & (ratios.p <= rule.most_p * (1 + ROUNDING))
    return replace(ratios, sure=sure), rule


def scatter_of(pairs: Pairs, known_scatter: KnownScatter | None) -> tuple[Floats, Floats]:
    """Return squares and degrees of freedom of each group, at least one of these."""
    squares, dof = pairs.squares, np.maximum(pairs.counts.sum(axis=0) - 2.0, 1.0)
    if known_scatter is None:
        return squares, dof
    beforehand, own = np.stack([known_scatter.squares, known_scatter.dof]), np.stack([squares, dof])
    whole: Floats = np.where(known_scatter.dof > 0, beforehand, own)
    return whole[0], whole[1]


def prior_of(pairs: Pairs, known_scatter: KnownScatter | None) -> Prior:
    """Learn from all groups that can be compared how far one scatters."""
    enough = (pairs.counts >= FEWEST_TESTS).all(axis=0)
    return Prior.of(*(values[enough] for values in scatter_of(pairs, known_scatter)))


def is_far(ratio: Floats) -> Flags:
    """Say which are further from 1 than nobody would look into."""
    return np.asarray((ratio >= SMALLEST_RATIO) | (ratio <= 1 / SMALLEST_RATIO))


def is_apart(ratio: ArrayLike, low: ArrayLike, high: ArrayLike) -> Flags:
    """Say which differ by their own interval, and by more than nobody would look into."""
    return np.asarray((np.less(high, 1) | np.greater(low, 1)) & is_far(np.asarray(ratio)))


def inflation(of: str, counts: Integers, variance: Floats) -> Floats:
    """Return how much more the log of a median or mean of so many scatters than a mean log does.

    Of a median of normal samples it is pi / 2 for many; the formula is within 0.5 % of the exact
    one from 2 samples on. Of a mean of rates it is what their log-normal distribution makes.
    """
    if of == "mean":
        within = np.clip(variance, LEAST_VARIANCE, MOST_VARIANCE)
        return np.broadcast_to(np.expm1(within) / within, counts.shape)
    odd, even = 0.68 / np.maximum(counts, 1), 2.25 / (counts + 2)
    return np.asarray(np.pi / 2 - np.where(counts % 2, odd, even))


def compare(rates: ArrayLike, others: ArrayLike, of: str = "median") -> Ratios:
    """Compare one pair of samples of rates in MB/s by itself: arrays without a dimension."""
    return compare_each([(rates, others)], of).taken(0)


def compare_each(pairs: Sequence[tuple[ArrayLike, ArrayLike]], of: str = "median") -> Ratios:
    """Compare pairs of samples of rates in MB/s, of which all say what is beyond chance."""
    sides = [[np.asarray(side, dtype=np.float64).ravel() for side in pair] for pair in pairs]
    middle = np.median if of == "median" else np.mean
    centres = [[float(middle(side)) if side.size else np.nan for side in pair] for pair in sides]
    squares = [sum(log_squares(side) for side in pair) for pair in sides]
    counts = [[side.size for side in pair] for pair in sides]
    return judged(Pairs(np.array(counts).T, np.array(centres).T, np.array(squares)), of)[0]


def log_squares(rates: Floats) -> float:
    logs = np.log(np.maximum(rates, LEAST_RATE))
    return float(np.square(logs - logs.mean()).sum()) if rates.size else 0.0


@lru_cache(maxsize=8)
def _quantiles(chance: float) -> tuple[Floats, Floats]:
    """Return places of 1 / dof from 0 to 1, and beyond which t so much is there, to both sides."""
    places, upper = np.linspace(0, 1, PLACES), 1 - chance / 2
    normal = NormalDist().inv_cdf(upper)
    return places, np.append(normal, student.quantile(upper, 1 / places[1:]))


@dataclass(frozen=True)
class SideRuns:
    """The results of one side, and which links count there, shape (places, places)."""

    runs: Sequence[Run]
    shown: Flags


@dataclass(frozen=True)
class Sides:
    """Both sides of each cell: this one as reduce() has it, and by which rule they were judged."""

    reduced: Reduced
    ratios: Ratios
    rule: Rule


def compare_cells(
    pooling: Pooling,
    own: SideRuns,
    other: SideRuns,
    of: str,
    extras: Collection[str] = (),
    *,
    known_scatter: KnownScatter | None = None,
    rule: Rule | None = None,
) -> Sides:
    """Compare the successes of each cell on both sides; arrays of the shape of the pooling.

    ``pooling`` gives rows and columns to the links of both sides, whichever it shows itself.
    ``of`` is `median` or `mean`; ``extras`` are those of reduce(). ``known_scatter`` is how far the
    tests of each cell scatter, where that is known beforehand; without a ``rule`` all cells make
    one.
    """
    names = {of, LOG_SQUARES} - {"mean"}
    sides = [
        reduce(side.runs, replace(pooling, shown=side.shown), tuple({*of_side, *names}))
        for side, of_side in ((own, extras), (other, ()))
    ]
    pairs = Pairs(
        np.stack([side.ok for side in sides]),
        np.stack([side.mean if of == "mean" else side.extras[of] for side in sides]),
        np.nansum([side.extras[LOG_SQUARES] for side in sides], axis=0),
    )
    ratios, used = judged(pairs, of, known_scatter=known_scatter, rule=rule, unit=MB)
    shown = {name: values for name, values in sides[0].extras.items() if name in extras}
    return Sides(replace(sides[0], extras=shown), ratios, used)
