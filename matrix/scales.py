"""Colour scales: from the values of a statistic to the positions and ticks of a colour bar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrix.statistics import Floats
from sonar.units import three_digits

AGES: dict[float, str] = {
    1: "1 s",
    10: "10 s",
    60: "1 min",
    600: "10 min",
    1800: "30 min",
    3600: "1 h",
    3 * 3600: "3 h",
    12 * 3600: "12 h",
    2 * 86400: "2 d",
    7 * 86400: "7 d",
    30 * 86400: "30 d",
    90 * 86400: "90 d",
}


# A spread of almost nothing must not use up the colours: what is smaller has the lowest.
WIDEST = 1e5
# And nothing is slower than a thousandth of a byte per second.
LEAST = 1e-9


@dataclass(frozen=True)
class Scale:
    """Positions on the colour bar run from ``low`` to ``high``; ``ticks`` name some of them."""

    low: float
    high: float
    ticks: dict[float, str]
    logarithmic: bool

    def positions(self, values: Floats) -> Floats:
        """Return where values stand; what is too small for a logarithm stands at the low end."""
        if not self.logarithmic:
            return values
        floor = np.where(np.isnan(values), np.nan, 10**self.low)
        return np.log10(np.maximum(values, floor))


def scale_for(stat: str, values: Floats) -> Scale:
    """Choose the scale of a statistic for these values: logarithmic for rates and ages."""
    known = values[~np.isnan(values)]
    if stat == "success":
        return Scale(0, 100, {percent: f"{percent:.0f}" for percent in range(0, 101, 20)}, False)
    if stat == "count":
        return linear(float(known.max(initial=1)))
    positive = known[known > LEAST]
    high = positive.max(initial=0) or 10.0
    low = max(positive.min(initial=high), high / WIDEST)
    ticks = AGES if stat == "last" else {tick: three_digits(tick) for tick in decades(low, high)}
    return logarithmic(float(low), float(high), ticks)


def linear(high: float) -> Scale:
    step = max(10 ** np.floor(np.log10(high)), 1)
    step = step / 2 if high / step < 3 and step > 1 else step
    ticks = {float(tick): three_digits(float(tick)) for tick in np.arange(0, high + 1e-9, step)}
    return Scale(0, high, ticks, False)


def logarithmic(low: float, high: float, names: dict[float, str]) -> Scale:
    # One value alone has no range: give it a factor of two to either side.
    low, high = (low / 2, high * 2) if high < low * 1.01 else (low, high)
    ticks = {float(np.log10(tick)): name for tick, name in names.items() if low <= tick <= high}
    return Scale(float(np.log10(low)), float(np.log10(high)), ticks, True)


def decades(low: float, high: float) -> list[float]:
    """Return round numbers around these bounds: 1, 2, 5 of each decade, fewer for a wide range."""
    span = np.log10(high / low)
    steps = (1,) if span > 3 else (1, 2, 5) if span > 0.7 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    exponents = range(int(np.floor(np.log10(low / 2))), int(np.ceil(np.log10(high * 2))) + 1)
    return [float(f"{step}e{exponent}") for exponent in exponents for step in steps]
