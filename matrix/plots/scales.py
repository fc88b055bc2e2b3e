"""Colour scales: from the values of a statistic to the positions and ticks of a colour bar."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from matrix.query.catalogue import Statistic
from matrix.statistics.arrays import Floats
from sonar.notation.units import format_age, format_count, three_digits

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
# The ticks of each decade, for scales of more than so many of them.
STEPS = {4: (1,), 2: (1, 3), 0.7: (1, 2, 5), -1: (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)}
# Ratios reach from a quarter to four times, so that a colour means the same wherever it is; where
# all of them are to be within, on to one of FACTORS. Bounds that are asked for are no narrower than
# the narrowest: what differs by less differs by chance.
REACH, NARROWEST = 4, 2
FACTORS = (4, 6, 8, 10, 16, 30, 100, 300, 1000)
# Parts of a rate that have a sign of their own.
PARTS = {0.25: "¼", 0.5: "½"}
FACTOR_STEPS = {
    2: (1.25, 1.5, 2),
    3: (1.5, 2, 3),
    8: (2, 4, 8),
    30: (3, 10, 30),
    1000: (10, 100, 1000),
}
# A spread of almost nothing must not use up the colours: what is smaller has the lowest.
WIDEST = 1e5
# And nothing is slower than a thousandth of a byte per second.
LEAST_VALUE = 1e-9


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

    def shares(self, values: Floats) -> Floats:
        """Return where values stand as a part of the scale, from 0 to 1; NaN stays NaN."""
        share = (self.positions(values) - self.low) / (self.high - self.low)
        return np.asarray(np.clip(share, 0, 1))

    def outside(self, values: Floats) -> tuple[float | None, float | None]:
        """Return the low and the high end, each as a value, where values lie beyond them."""
        low, high = (10**self.low, 10**self.high) if self.logarithmic else (self.low, self.high)
        # An end was a value itself before it became a logarithm: they may differ by an ulp.
        is_below = values.min(initial=low) < low * (1 - 1e-9)
        is_above = values.max(initial=high) > high * (1 + 1e-9)
        return low if is_below else None, high if is_above else None

    def ending(self, low: str, high: str) -> Scale:
        """Write these texts (not the empty ones) at the ends, in place of the ticks near by."""
        # On a phone the bar lies flat, and has room for eight texts or so.
        near = (self.high - self.low) / 10
        ticks = {
            place: name
            for place, name in self.ticks.items()
            if not (low and place < self.low + near) and not (high and place > self.high - near)
        }
        ticks |= {self.low: low} if low else {}
        ticks |= {self.high: high} if high else {}
        return dataclasses.replace(self, ticks=dict(sorted(ticks.items())))


def scale_for(
    statistic: Statistic,
    values: Floats,
    low: float | None = None,
    high: float | None = None,
    *,
    whole: bool = False,
) -> Scale:
    """Choose the scale of a statistic for these values: logarithmic for rates and ages.

    ``low`` and ``high`` fix its ends, where they are given. Else it runs over the middle of the
    values, so that these differ in colour, or over the ``whole`` of them. That of ratios has 1 in
    its middle, and the same ends for all: of bounds, that which is further from 1 is mirrored.
    """
    present = values[~np.isnan(values)]
    if statistic.scale == "diverging":
        return centred(present, (low, high), whole=whole)
    is_age = statistic.unit.written == "age"
    if statistic.scale == "linear":
        drawn = present if whole else middle(present)
        most = statistic.greatest or float(drawn.max(initial=1))
        start, end = fixed((0.0, most), (low, high), lambda end: (end - 1, end + 1))
        step = round_step(end - start)
        places = np.arange(np.ceil(start / step) * step, end + 1e-9, step).tolist()
        scale = Scale(start, end, {place: plain(place) for place in places}, False)
    else:
        positive = present[present > LEAST_VALUE]
        drawn = positive if whole else middle(positive)
        most = drawn.max(initial=0) or 10.0
        least = max(drawn.min(initial=most), most / WIDEST)
        # One value alone has no range: give it a factor of two to either side.
        is_one = most < least * 1.01
        ends = (float(least / 2), float(most * 2)) if is_one else (float(least), float(most))
        start, end = fixed(ends, (low, high), lambda end: (end / 10, end * 10))
        names = AGES if is_age else {tick: three_digits(tick) for tick in decades(start, end)}
        ticks = {float(np.log10(at)): name for at, name in names.items() if start <= at <= end}
        scale = Scale(float(np.log10(start)), float(np.log10(end)), ticks, True)
    below, above = scale.outside(present)
    return scale.ending(
        end_text("≤", low, is_age=is_age) or end_text("▼", below, is_age=is_age),
        end_text("≥", high, is_age=is_age) or end_text("▲", above, is_age=is_age),
    )


def centred(present: Floats, bounds: tuple[float | None, float | None], *, whole: bool) -> Scale:
    """Return the logarithmic scale around 1 that reaches these bounds, or else these ratios."""
    ratios = present[present > LEAST_VALUE]
    limits = np.array([bound for bound in bounds if bound is not None])
    ends = limits if limits.size else ratios if whole else limits
    least = NARROWEST if limits.size else REACH
    most = float(np.exp(np.abs(np.log(ends)).max(initial=np.log(least))))
    # The ends of a scale that is asked for stand as they are, and others at a tick.
    reach = most if limits.size else next((end for end in FACTORS if end >= most * 0.999), most)
    # As far on both sides of 1, with ticks that tell it.
    steps = next((steps for widest, steps in FACTOR_STEPS.items() if reach <= widest), (reach,))
    ticks = {
        sign * float(np.log10(factor)): factor_text(factor**sign)
        for sign in (-1, 1)
        for factor in (1, *steps)
        if factor <= reach * 1.001
    }
    end = float(np.log10(reach))
    scale = Scale(-end, end, dict(sorted(ticks.items())), True)
    below, above = scale.outside(present)
    is_fixed = bool(limits.size)
    return scale.ending(
        f"{'≤' if is_fixed else '▼'} {factor_text(1 / reach)}" if is_fixed or below else "",
        f"{'≥' if is_fixed else '▲'} {factor_text(reach)}" if is_fixed or above else "",
    )


def factor_text(ratio: float) -> str:
    """Write a tick of ratios: below 1 it is slower."""
    part = next((sign for value, sign in PARTS.items() if abs(ratio / value - 1) < 1e-9), "")
    digits = format_count(round(ratio)) if ratio >= 1000 else f"{ratio:.{3 if ratio > 1 else 2}g}"
    return f"{part or digits}×"


def middle(values: Floats) -> Floats:
    """Return the values at the 5th and the 95th percentile; all of fewer than twenty are within."""
    if not values.size:
        return values
    last = values.size - 1
    ends = int(np.floor(0.05 * last)), int(np.ceil(0.95 * last))
    return np.partition(values, ends)[list(ends)]


def fixed(
    ends: tuple[float, float],
    bounds: tuple[float | None, float | None],
    around: Callable[[float], tuple[float, float]],
) -> tuple[float, float]:
    """Put bounds in the place of ends; where these then cross, make room."""
    low = ends[0] if bounds[0] is None else bounds[0]
    high = ends[1] if bounds[1] is None else bounds[1]
    if low < high:
        return low, high
    return (low, around(low)[1]) if bounds[1] is None else (around(high)[0], high)


def end_text(sign: str, end: float | None, *, is_age: bool) -> str:
    if end is None:
        return ""
    age = format_age(timedelta(seconds=end)).removesuffix(" ago") if is_age else ""
    return f"{sign} {age or plain(end)}"


def round_step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, of which a span has six at most."""
    decade = 10 ** np.floor(np.log10(span / 6))
    step = float(next(decade * part for part in (1, 2, 5, 10) if span / (decade * part) <= 6))
    # There is no half of a transfer.
    return max(step, 1.0) if span >= 1 else step


def plain(value: float) -> str:
    return format_count(int(value)) if value == int(value) else three_digits(value)


def decades(low: float, high: float) -> list[float]:
    """Return round numbers around these bounds: the more of each decade, the fewer these are."""
    span = np.log10(high / low)
    steps = next(steps for widest, steps in STEPS.items() if span > widest)
    every = int(span // 12) + 1
    exponents = range(int(np.floor(np.log10(low / 2))), int(np.ceil(np.log10(high * 2))) + 1, every)
    return [float(f"{step}e{exponent}") for exponent in exponents for step in steps]
