"""How much the rates of tests scatter that were made alike. Pure numpy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Floats

# By fewer tests beyond the first of each group, scatter and chance cannot be told apart.
FEWEST_FREE = 4


# The standard deviation of a normal distribution in mean distances from its middle.
NORMAL = 1.2533


@dataclass(frozen=True)
class RateScatter:
    """``spread`` is the standard deviation of the logarithms of rates, 0.1 for about 10 %.

    By ``n`` tests.
    """

    spread: float
    n: int


def scatter(groups: Iterable[Floats]) -> RateScatter | None:
    """Pool the scatter of groups of rates, each around its own median; None for too few tests.

    By the mean distance, in which a single test beside something else counts for less than in
    squares. The test that is nearest to a median is left out: it makes the median.
    """
    logs = [np.log(rates) for rates in groups if rates.size > 1]
    distances = [np.sort(np.abs(values - np.median(values)))[1:] for values in logs]
    if sum(values.size for values in distances) < FEWEST_FREE:
        return None
    spread = NORMAL * float(np.concatenate(distances).mean())
    return RateScatter(spread, sum(values.size for values in logs))
