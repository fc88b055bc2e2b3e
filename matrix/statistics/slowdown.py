"""Whether tests that ran beside others of Sonar's were slower than those alone. Pure numpy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Floats

# Fewer on either side say nothing about their scatter.
FEWEST = 3
# How often, at most, two groups that do not differ may lie as far apart as is told.
CHANCE = 0.01


@dataclass(frozen=True)
class Slowdown:
    """The medians of those alone and of those in company, in the unit of the rates, and counts."""

    alone: float
    alone_count: int
    company: float
    company_count: int


def slowdown(alone: Floats, company: Floats) -> Slowdown | None:
    """Return both medians if those in company are slower beyond the scatter, else nothing.

    Beyond it means two things. The middle halves lie apart: three quarters of those in company
    are slower than three quarters of those alone. And that is no play of chance: equally fast
    tests would lie so in one case of a hundred at most (Mann-Whitney), or, where the tests are
    too few for that to be told, the gap between the two groups is wider than both of them.
    """
    if min(len(alone), len(company)) < FEWEST:
        return None
    if np.quantile(company, 0.75) >= np.quantile(alone, 0.25):
        return None
    gap = float(alone.min() - company.max())
    far_apart = gap > float(np.ptp(alone) + np.ptp(company))
    if chance(alone, company) > CHANCE and not far_apart:
        return None
    medians = float(np.median(alone)), float(np.median(company))
    return Slowdown(medians[0], len(alone), medians[1], len(company))


def chance(alone: Floats, company: Floats) -> float:
    """Return how probable so low ranks of those in company are where both are equally fast.

    The one-sided rank test of Mann and Whitney, by the normal distribution with the correction
    for continuity; of 3 and 5 tests it gives 0.0184 where 0.0179 is exact.
    """
    both = np.concatenate([alone, company])
    # Equal rates share their ranks.
    ordered = np.sort(both)
    ranks = (np.searchsorted(ordered, company) + np.searchsorted(ordered, company, "right") + 1) / 2
    count, others = len(company), len(alone)
    wins = float(ranks.sum()) - count * (count + 1) / 2
    deviation = math.sqrt(count * others * (count + others + 1) / 12)
    return 0.5 * math.erfc((count * others / 2 - wins - 0.5) / deviation / math.sqrt(2))
