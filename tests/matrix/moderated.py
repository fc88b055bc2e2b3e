"""The moderated t by scipy, one pair of samples at a time: to hold comparisons against."""

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

from matrix.statistics.estimates.moderation import MOST_DOF, Prior

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


def in_a_row(rates: Samples, days: Sequence[object]) -> tuple[float, float]:
    """Return squares and degrees of freedom of three tests in a row, of a link by its days.

    ``days`` are those of the rates, which are in the order of time.
    """
    logs = np.log(rates)
    of_day = [
        [log for log, _ in tests]
        for _, tests in groupby(zip(logs, days, strict=True), itemgetter(1))
    ]
    steps = [
        (np.mean(later) - np.mean(before)) ** 2 / (1 / len(later) + 1 / len(before))
        for before, later in pairwise(of_day)
    ]
    if len(steps) < 4:
        return float(np.square(logs - logs.mean()).sum()), len(logs) - 1
    between, dof = float(np.mean(steps)), 2 * len(steps) ** 2 / (3 * len(steps) - 1)
    sizes = [len(day) for day in of_day]
    a_day = np.mean([2 / (1 / later + 1 / before) for before, later in pairwise(sizes)])
    inner_dof = sum(sizes) - len(sizes)
    if a_day <= 3 or not inner_dof:
        return between * dof, dof
    within = sum(np.square(np.subtract(day, np.mean(day))).sum() for day in of_day) / inner_dof
    if between <= within:
        return within * inner_dof, inner_dof
    share = 3 / a_day
    variance = (1 - share) * within + share * between
    errors = ((1 - share) * within) ** 2 / inner_dof + (share * between) ** 2 / dof
    return variance * variance**2 / errors, variance**2 / errors


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
