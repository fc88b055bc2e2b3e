"""Transfers from within: their rate from one progress sample to the next, and its shape."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from matrix.statistics.arrays import Flags, Floats
from sonar.notation.units import MB

# A course of fewer stretches has no shape.
FEWEST_STRETCHES = 6
# Below this part of the typical rate nothing moves.
STALLED = 0.1
# A transfer stalls that does so for this part of its time,
LONG_STALL = 0.1
# ramps or slows where a third of its time has less than this part of the rate in the other,
LEAST_OF_THIRDS = 0.5
# and is at a ceiling where its 95th percentile is no further above its median than this.
FLAT = 1.15
# A tooth is a rise and a fall by these factors; several make a saw, if most steps lead upwards.
RISE, FALL, TEETH, RISING = 1.3, 0.7, 3, 0.6

ProfileShape = Literal["stalls", "saw-tooth", "ramps", "slows", "ceiling", "uneven"]
# What is wrong comes first.
SHAPES: tuple[ProfileShape, ...] = ("stalls", "saw-tooth", "ramps", "slows", "ceiling", "uneven")


@dataclass(frozen=True)
class Stretch:
    """What was moved between two samples: from and to in seconds, bytes so far, rate in MB/s."""

    start: float
    end: float
    bytes: int
    rate: float


def stretches(samples: Sequence[Sequence[float]]) -> list[Stretch]:
    """Turn samples of [seconds, bytes so far] into what was moved between them.

    The first stretch begins with the transfer. A sample that is not later than the one before
    it says nothing of a rate and is left out.
    """
    parts: list[Stretch] = []
    since, before = 0.0, 0.0
    for seconds, moved in samples:
        if seconds > since:
            rate = (moved - before) / (seconds - since) / MB
            parts.append(Stretch(since, seconds, int(moved), rate))
            since, before = seconds, moved
    return parts


@dataclass(frozen=True)
class RateProfile:
    """The stretches of a transfer, to its end: how many seconds each took, and its MB/s."""

    seconds: Floats
    rates: Floats

    @classmethod
    def of(cls, samples: Sequence[Sequence[float]], seconds: float, moved: float) -> Self | None:
        """Return the course of a transfer; None with fewer than FEWEST_STRETCHES or no bytes."""
        parts = stretches([*samples, (seconds, moved)])
        if len(parts) < FEWEST_STRETCHES or moved <= 0:
            return None
        durations = np.array([part.end - part.start for part in parts])
        return cls(durations, np.array([max(part.rate, 0.0) for part in parts]))

    @property
    def stalled(self) -> Flags:
        """Say in which stretches nothing moved, after the first bytes had."""
        moving = self.rates[self.rates > 0]
        still: Flags = self.rates < STALLED * np.median(moving)
        still[: int(np.argmin(still))] = False
        return still

    @property
    def stalled_seconds(self) -> float:
        return float(self.seconds[self.stalled].sum())

    def quantile(self, fraction: float) -> float:
        """Return the rate that it has below this part of its time."""
        return float(weighted_quantiles(self.rates, self.seconds, [fraction])[0])

    def shape(self) -> ProfileShape:
        """Name what the course is like, the most telling first."""
        if self.stalled_seconds >= LONG_STALL * self.seconds.sum():
            return "stalls"
        if self._is_saw():
            return "saw-tooth"
        # What was moved in each third of the time.
        ends = np.concatenate([[0.0], np.cumsum(self.seconds)])
        moved = np.concatenate([[0.0], np.cumsum(self.seconds * self.rates)])
        first, _, last = np.diff(np.interp(np.linspace(0, ends[-1], 4), ends, moved))
        if first < LEAST_OF_THIRDS * last:
            return "ramps"
        if last < LEAST_OF_THIRDS * first:
            return "slows"
        if self.quantile(0.95) <= FLAT * self.quantile(0.5):
            return "ceiling"
        return "uneven"

    def _is_saw(self) -> bool:
        """Say whether it rises slowly and falls sharply, again and again."""
        steps = self.rates[1:] - self.rates[:-1]
        if (steps > 0).mean() < RISING:
            return False
        teeth, trough, peak = 0, self.rates[0], self.rates[0]
        for rate in self.rates[1:].tolist():
            peak = max(peak, rate)
            if rate < FALL * peak:
                teeth += peak >= RISE * trough
                trough = peak = rate
            else:
                trough = min(trough, rate)
        return teeth >= TEETH


def weighted_quantiles(values: Floats, weights: Floats, fractions: Sequence[float]) -> Floats:
    """Return the values below which these parts of all weight lie."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    places = below.searchsorted(np.array(fractions) * below[-1])
    return np.asarray(values[order][np.minimum(places, len(order) - 1)])
