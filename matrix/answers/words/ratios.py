"""What a comparison found, in words that a ticket can quote: ratio, interval, n and p."""

import math
from dataclasses import dataclass
from typing import Self

from matrix.query.catalogue import RATE
from matrix.statistics.compare.two_samples import Ratios, is_apart
from sonar.notation.units import (
    DASH,
    factor_and_interval,
    format_chance,
    format_count,
    format_factor,
    three_digits,
)

# Below this p-value a difference is said to be one.
SURE = 0.05
RATES = ("value", "other", "ratio", "low", "high", "p")


def with_interval(ratio: float, low: float, high: float) -> str:
    """Write a ratio with its interval in brackets, and say that it is one of 95 %."""
    return format_factor(ratio, low, high).replace("(", "(95 % interval ")


@dataclass(frozen=True)
class PairRatio:
    """One pair of samples: rates in MB/s, ratio with its interval, p-value; NaN for none."""

    value: float
    other: float
    ratio: float
    low: float
    high: float
    p: float
    ok: int
    other_ok: int
    sure: bool = False

    @classmethod
    def at(cls, ratios: Ratios, at: tuple[int, ...] = ()) -> Self:
        """Return one pair of many: without a ratio if a side has too few successes."""
        rates = {name: float(getattr(ratios, name)[at]) for name in RATES}
        if not ratios.enough[at]:
            rates |= dict.fromkeys(RATES[2:], math.nan)
        sure = bool(ratios.sure[at])
        return cls(ok=int(ratios.ok[at]), other_ok=int(ratios.other_ok[at]), sure=sure, **rates)

    @property
    def kind(self) -> str:
        """Return `slower`, `faster`, `perhaps` either, `same`, or nothing without p.

        `perhaps` is what its interval calls different, and chance may make among so many links.
        """
        if math.isnan(self.p) or math.isnan(self.ratio):
            return ""
        if self.sure:
            return self.direction
        return "perhaps" if is_apart(self.ratio, self.low, self.high) else "same"

    @property
    def direction(self) -> str:
        """Return `slower` or `faster`, by the ratio alone."""
        return "slower" if self.ratio < 1 else "faster"

    @property
    def factor_words(self) -> str:
        """Write the ratio, with the ends of its interval in brackets if it has one."""
        if math.isnan(self.low) or math.isnan(self.high):
            return format_factor(self.ratio)
        return format_factor(self.ratio, self.low, self.high)

    @property
    def sides_words(self) -> str:
        """Write the rates of both sides, with the interval of their ratio, both n, and p."""
        value, other = (
            DASH if math.isnan(rate) else three_digits(rate) for rate in (self.value, self.other)
        )
        rates = f"{value} against {other} {RATE.name}"
        if not math.isnan(self.low):
            rates += f" ({factor_and_interval(self.ratio, self.low, self.high)[1]}×)"
        return ", ".join([rates, *self._n_and_p()])

    @property
    def words(self) -> str:
        """Write the ratio with its interval in brackets, both n, and p."""
        return ", ".join([self.factor_words, *self._n_and_p()])

    def _n_and_p(self) -> list[str]:
        counts = f"n = {format_count(self.ok)} and {format_count(self.other_ok)}"
        return [counts] if math.isnan(self.p) else [counts, format_chance(self.p)]
