"""What the rates of a link do while one variable of its tests is varied. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from matrix.statistics import student
from matrix.statistics.arrays import Floats

Trend = Literal["flat", "proportional", "rising", "falling", "unclear"]

# Fewer tests that differ in the variable leave no scatter to judge by.
FEWEST = 4
# Rates go with variable ** exponent: from here on they are in proportion to it ...
PROPORTIONAL = 0.75
# ... and up to here they do not depend on it, as far as anybody would care: with four times the
# streams a sixth more.
FLAT = 0.11
# A value is as good as the best if its median is within a tenth of the best one's.
AS_GOOD = 0.9


@dataclass(frozen=True)
class Slope:
    """Rates go with variable ** ``exponent``, with a 95 % interval, by ``n`` tests.

    ``factor`` is what that makes of the rate from the least to the greatest value, with an
    interval of its own.
    """

    exponent: float
    low: float
    high: float
    span: float
    n: int

    @property
    def factor(self) -> float:
        return float(self.span**self.exponent)

    @property
    def interval(self) -> tuple[float, float]:
        return float(self.span**self.low), float(self.span**self.high)

    @property
    def trend(self) -> Trend:
        """Say what the rates do; the interval must bear it out."""
        if self.high < 0 and self.exponent < -FLAT:
            return "falling"
        if self.low > PROPORTIONAL / 2 and self.exponent >= PROPORTIONAL:
            return "proportional"
        if self.low > 0 and self.exponent > FLAT:
            return "rising"
        is_narrow = self.high - self.low < 4 * FLAT
        return "flat" if abs(self.exponent) <= FLAT and is_narrow else "unclear"


def slope(values: Floats, rates: Floats) -> Slope | None:
    """Fit log rate to log value by least squares; both above 0, one of each for every test.

    None for fewer than FEWEST tests, or for tests of one value alone.
    """
    x, y = np.log(values), np.log(rates)
    span = float(np.exp(np.ptp(x))) if x.size else 1.0
    if x.size < FEWEST or span == 1:
        return None
    x = x - x.mean()
    squares = float(x @ x)
    exponent = float(x @ y) / squares
    rest = y - y.mean() - exponent * x
    dof = x.size - 2
    error = float(np.sqrt(rest @ rest / dof / squares))
    reach = float(student.quantile(0.975, dof)) * error
    return Slope(exponent, exponent - reach, exponent + reach, span, x.size)


def enough(values: Sequence[float], medians: Sequence[float]) -> float | None:
    """Return the least value whose median rate is as good as the best; None for no rate.

    ``values`` ascend; a median is NaN where no test of a value succeeded.
    """
    rates = np.array(medians, dtype=np.float64)
    if np.isnan(rates).all():
        return None
    good = rates >= AS_GOOD * np.nanmax(rates)
    return values[int(np.argmax(good))]
