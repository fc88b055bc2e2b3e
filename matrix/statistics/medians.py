"""How sure the median of a few values is, whatever their distribution. Pure numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from matrix.statistics.arrays import Floats

# An interval misses the median once in so many times, or less often.
ONCE_IN = 20
# As the normal distribution has it; it stands for that of the counts of so many values.
NORMAL = 1.96
MANY = 1000


def median_interval(values: Floats | Sequence[float]) -> tuple[float, float]:
    """Return the ends of an interval that holds the median of what values come from, NaN for none.

    Two of the values themselves, as far in as 95 % allow: each is above the median with a chance
    of a half. Fewer than six values have no such interval.
    """
    count = len(values)
    left_out = values_left_out(count)
    if not left_out:
        return math.nan, math.nan
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    return float(ordered[left_out - 1]), float(ordered[count - left_out])


def values_left_out(count: int) -> int:
    """Return which value from either side bounds the interval, from 1 on; 0 for none of them."""
    if count > MANY:
        return int((count - NORMAL * math.sqrt(count)) / 2)
    combinations, beyond, least = 1, 0, 0
    while True:
        beyond += 2 * combinations
        if ONCE_IN * beyond > 1 << count:
            return least
        combinations = combinations * (count - least) // (least + 1)
        least += 1
