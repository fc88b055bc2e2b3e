"""The moderated t by scipy, one pair of samples at a time: to hold comparisons against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

from matrix.statistics.moderation import MOST_DOF, Prior

Samples = Sequence[float]


class Expected(NamedTuple):
    """What is expected of a pair."""

    ratio: float
    low: float
    high: float
    p: float


def squares_of(*sides: Samples) -> tuple[float, int]:
    """Return the squares of logs beside the mean of their side, and how many of these are free."""
    logs = [np.log(side) for side in sides]
    squares = sum(float(np.square(side - side.mean()).sum()) for side in logs)
    return squares, sum(map(len, sides)) - 2


def prior(pairs: Iterable[tuple[Samples, Samples]]) -> Prior:
    """Return what pairs with three samples on each side say of one."""
    return prior_of([squares_of(*pair) for pair in pairs if min(map(len, pair)) >= 3])


def prior_of(parts: Sequence[tuple[float, float]]) -> Prior:
    """Return what squares and degrees of freedom of groups say of one, as Smyth has it (2004)."""
    if len(parts) < 3:
        return Prior(0.0, 0.0)
    squares, dof = np.array(parts).T
    variances = np.maximum(squares / dof, 1e-5 * np.median(squares / dof))
    if not variances.any():
        return Prior(0.0, 0.0)
    e = np.log(variances) - special.digamma(dof / 2) + np.log(dof / 2)
    beyond = e.var(ddof=1) - special.polygamma(1, dof / 2).mean()
    own = MOST_DOF
    if beyond > 0:
        root = optimize.brentq(lambda log: special.polygamma(1, np.exp(log)) - beyond, -20, 20)
        own = min(2 * float(np.exp(root)), MOST_DOF)
    centre = e.mean() + special.digamma(own / 2) - np.log(own / 2)
    return Prior(float(np.exp(centre)), own)


def expected(own: Samples, other: Samples, known: Prior, of: str = "median") -> Expected:
    """Return ratio, interval and p of a pair."""
    middle = np.median if of == "median" else np.mean
    ratio = float(middle(own) / middle(other))
    return of_scatter(ratio, (len(own), len(other)), *squares_of(own, other), known, of)


def of_scatter(
    ratio: float,
    counts: tuple[int, int],
    squares: float,
    free: float,
    known: Prior,
    of: str = "median",
) -> Expected:
    """Return interval and p of the ratio of two centres of so many tests."""
    dof = free + known.dof
    variance = (squares + known.dof * known.variance) / dof
    error = np.sqrt(sum(variance * inflation(count, variance, of) for count in counts))
    if not error:
        return Expected(ratio, ratio, ratio, float(ratio == 1))
    half = stats.t.ppf(0.975, dof) * error
    p = 2 * stats.t.sf(abs(np.log(ratio)) / error, dof)
    return Expected(ratio, ratio * np.exp(-half), ratio * np.exp(half), float(p))


def inflation(count: int, variance: float, of: str) -> float:
    """Return the variance of a log centre in parts of that of one log."""
    if of == "mean":
        return float(np.expm1(variance) / variance) / count if variance else 1 / count
    return (np.pi / 2 - (0.68 / count if count % 2 else 2.25 / (count + 2))) / count
