"""Numbers as they are written: no digits that are noise."""

from __future__ import annotations

import numpy as np

from matrix.statistics.arrays import Floats

# Numbers below 2**n are written in 1 / SCALES[n]: seven digits at most, and rates to the byte per
# second. More is noise that costs bytes.
SCALES = np.array([10.0 ** np.clip(7 - len(str(2**n - 1)), 0, 6) for n in range(25)])


def rounded(values: Floats) -> Floats:
    """Round to within a millionth of each, but not finer than six decimals."""
    _, power = np.frexp(values)
    scale = SCALES.take(power, mode="clip")
    result: Floats = np.rint(values * scale) / scale
    return result


def significant(values: Floats, digits: int = 4) -> Floats:
    """Round to so many digits, however small a number is: a p of 1e-9 is not 0."""
    with np.errstate(divide="ignore", invalid="ignore"):  # of 0 and NaN
        power = digits - 1 - np.floor(np.log10(np.abs(values)))
        scale = np.power(10.0, np.clip(power, -300, 300))
        result: Floats = np.where(values == 0, 0.0, np.rint(values * scale) / scale)
    return result
