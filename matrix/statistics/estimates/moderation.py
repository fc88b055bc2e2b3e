"""What many groups say together: how far each scatters, and which differ beyond chance.

The moderated variances of limma (Smyth 2004): those of the groups are taken for draws of a scaled
inverse chi-square distribution. How alike their logarithms are says how much all together tell
of each one. A few samples of a group then say nearly as much as if its scatter were known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from matrix.statistics.arrays import Flags, Floats

# Groups whose scatter is alike are as good as so many degrees of freedom of each.
MOST_DOF = 10_000.0
# From fewer groups nothing is learned of another one.
FEWEST_GROUPS = 3
# No variance is taken for less than this part of the median one: that of equal rates has no
# logarithm.
LEAST_PART = 1e-5
# Steps up from x, from where on the asymptotic series of digamma and trigamma are exact to 1e-12.
SHIFT = 10
HALVINGS = 100
# Of what is called changed, at most this share is chance, in the mean over many lists.
FALSE_DISCOVERY_RATE = 0.05


@dataclass(frozen=True)
class Prior:
    """What all groups together say of the variance of one: itself, and of how many dof it is."""

    variance: float
    dof: float

    @classmethod
    def of(cls, squares: Floats, dof: Floats) -> Prior:
        """Learn it from the sums of squares of groups, and their degrees of freedom (above 0)."""
        if len(squares) < FEWEST_GROUPS:
            return NOTHING
        variances = squares / dof
        least = LEAST_PART * float(np.median(variances))
        if least <= 0:
            return cls(float(variances.mean()), 0.0)
        logs = np.log(np.maximum(variances, least)) - digamma(dof / 2) + np.log(dof / 2)
        beyond = float(logs.var(ddof=1) - trigamma(dof / 2).mean())
        own = min(2 * trigamma_inverse(beyond), MOST_DOF) if beyond > 0 else MOST_DOF
        centre = float(logs.mean() + digamma(own / 2)) - math.log(own / 2)
        return cls(math.exp(centre), own)

    def moderated(self, squares: Floats, dof: Floats) -> tuple[Floats, Floats]:
        """Return the variance of each group, and its degrees of freedom."""
        whole = self.dof + dof
        return (self.dof * self.variance + squares) / whole, whole


NOTHING = Prior(0.0, 0.0)
"""A prior that leaves each group to itself."""


def digamma(x: ArrayLike) -> Floats:
    """Return the derivative of log(gamma(x)) for x > 0."""
    values = np.asarray(x, dtype=np.float64)
    below = sum(1 / (values + step) for step in range(SHIFT))
    y = values + SHIFT
    inverse = 1 / np.square(y)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse / 240)))
    return np.asarray(np.log(y) - 0.5 / y - series - below)


def trigamma(x: ArrayLike) -> Floats:
    """Return the second derivative of log(gamma(x)) for x > 0."""
    values = np.asarray(x, dtype=np.float64)
    below = sum(1 / np.square(values + step) for step in range(SHIFT))
    y = values + SHIFT
    inverse = 1 / np.square(y)
    series = inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42 - inverse / 30)))
    return np.asarray(below + inverse / 2 + (1 + series) / y)


def trigamma_inverse(value: float) -> float:
    """Return the x > 0 of which trigamma is this, by halving an interval of its logarithm."""
    low, high = -20.0, 20.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if float(trigamma(math.exp(middle))) > value:
            low = middle
        else:
            high = middle
    return math.exp(high)


def discoveries(p: Floats, rate: float = FALSE_DISCOVERY_RATE) -> Flags:
    """Say which p are discoveries at a false discovery rate (Benjamini, Hochberg); NaN is none."""
    # NaN is above everything that it is compared with.
    return np.asarray(p <= largest_p(p, rate))


def largest_p(p: Floats, rate: float = FALSE_DISCOVERY_RATE) -> float:
    """Return the largest p of a discovery, -1 if there is none."""
    flat = p.ravel()
    # What is above the rate is none, and need not be sorted.
    ordered, tests = np.sort(flat[flat <= rate]), int(np.count_nonzero(~np.isnan(flat)))
    limits = rate * np.arange(1, len(ordered) + 1) / max(tests, 1)
    below = np.flatnonzero(ordered <= limits)
    return float(ordered[below[-1]]) if below.size else -1.0
