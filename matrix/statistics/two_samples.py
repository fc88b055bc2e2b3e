"""The rates of two sides compared: medians or means, their ratio, its interval, a rank test.

The interval of a ratio of medians is that of Bonett and Price on logarithms of rates, by the normal
distribution; that of a ratio of means is of their logarithms (delta method), by Welch's t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrix.statistics import student
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.joint_ranks import OrderedSamples, Pairs
from matrix.statistics.rank_test import p_values

# Fewer successes on a side say nothing about their scatter.
FEWEST = 3
# So much of the distribution is below the upper end of an interval of 95 %.
UPPER = 0.975
# Quantiles of t are read between so many places of 1 / dof, to six digits.
PLACES = 4001


@dataclass(frozen=True)
class Ratios:
    """Arrays of one shape. Rates in MB/s; NaN where there is none.

    ``value`` is the median (or mean) of this side and ``other`` that of the other, ``ratio`` the
    first in parts of the second: above 1 this side is faster. ``low`` and ``high`` bound it with
    95 % confidence, ``p`` is that of a two-sided rank test; all only where there is ``enough``.
    ``ok`` and ``other_ok`` count the successes of both sides.
    """

    value: Floats
    other: Floats
    ratio: Floats
    low: Floats
    high: Floats
    p: Floats
    ok: Integers
    other_ok: Integers

    @property
    def enough(self) -> Flags:
        """Say where both sides have the successes that an interval takes."""
        return np.asarray((self.ok >= FEWEST) & (self.other_ok >= FEWEST))

    def taken(self, places: Any) -> Ratios:  # noqa: ANN401 - whatever numpy indexes by
        """Return some of them, as numpy indexes arrays."""
        return Ratios(*(getattr(self, field.name)[places] for field in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Ratios]) -> Ratios:
        """Put parts together, one behind the other."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @classmethod
    def of(cls, pairs: Pairs, of: str, unit: float = 1.0) -> Ratios:
        """Compare the two samples of each group; ``unit`` is MB/s in the unit of their rates."""
        (own, other), (ok, other_ok) = pairs.centres, pairs.counts
        enough = np.asarray((ok >= FEWEST) & (other_ok >= FEWEST))
        with np.errstate(divide="ignore", invalid="ignore"):  # a rate of 0
            ratio = np.where(enough, own / other, np.nan)
            half = _reach(pairs, of) * np.sqrt(pairs.errors.sum(axis=0))
            low, high = ratio * np.exp(-half), ratio * np.exp(half)
        p = np.full(ratio.shape, np.nan)
        tests = pairs.wins[enough], ok[enough], other_ok[enough]
        p[enough] = p_values(*tests, pairs.ties[enough], pairs.patterns[enough])
        return cls(own / unit, other / unit, ratio, low, high, p, ok, other_ok)


def compare(rates: ArrayLike, others: ArrayLike, of: str = "median") -> Ratios:
    """Compare one pair of samples of rates in MB/s: arrays without a dimension."""
    samples = [np.asarray(side, dtype=np.float64).ravel() for side in (rates, others)]
    bits = [side.view(np.uint64) << np.uint64(1) | number for number, side in enumerate(samples)]
    counts = np.array([[len(side)] for side in samples])
    order = np.sort(np.concatenate(bits).astype(np.uint64))
    return Ratios.of(Pairs.of(OrderedSamples(order, counts, np.float64), of), of).taken(0)


def _reach(pairs: Pairs, of: str) -> Floats | float:
    """Return how many standard errors an interval reaches to either side."""
    if of == "median":
        return NormalDist().inv_cdf(UPPER)
    errors, counts = pairs.errors, np.maximum(pairs.counts, FEWEST)
    # Welch and Satterthwaite. Without any scatter the number is of no account.
    inverse = (errors**2 / (counts - 1)).sum(axis=0) / errors.sum(axis=0) ** 2
    return np.asarray(np.interp(np.nan_to_num(inverse), *_quantiles()))


@lru_cache(maxsize=1)
def _quantiles() -> tuple[Floats, Floats]:
    """Return places of 1 / dof from 0 to 1 / (FEWEST - 1), and the quantiles of t there."""
    places = np.linspace(0, 1 / (FEWEST - 1), PLACES)
    normal = NormalDist().inv_cdf(UPPER)
    return places, np.append(normal, student.quantile(UPPER, 1 / places[1:]))
