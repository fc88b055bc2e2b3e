"""What noise alone does to sequences of a length: how clear a change of level must be. Pure numpy.

Clearness is the root of what the best split of a sequence explains, in units of its noise, with
everything that is done to find it (change_points.py). Its quantiles were simulated: 10^4 to
4 x 10^5 sequences of normal noise of each length; a test does so again for some.

Rates that go on for some tests (a busy hour, a full disk) look like changes of level: the fewer
the tests, the more. How much neighbours resemble each other says what that takes off means.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from matrix.statistics.arrays import Floats, Stretches, sums_of

# How often noise alone is clearer than CLEARNESS, by length.
NOISE_CHANCES = np.array([0.05, 0.01, 0.001, 0.0001])
LENGTHS = np.array([10, 12, 15, 20, 27, 36, 50, 70, 100, 150, 230, 400, 700, 1500])
CLEARNESS = np.array(
    [
        [2.380, 3.411, 4.952, 6.544],
        [2.656, 3.640, 5.065, 6.679],
        [2.819, 3.748, 5.066, 6.574],
        [3.047, 3.864, 5.020, 6.250],
        [3.202, 3.947, 4.939, 5.954],
        [3.288, 3.977, 4.863, 5.703],
        [3.447, 4.067, 4.853, 5.692],
        [3.543, 4.116, 4.840, 5.558],
        [3.669, 4.198, 4.832, 5.375],
        [3.767, 4.255, 4.871, 5.425],
        [3.910, 4.375, 4.942, 5.453],
        [4.052, 4.475, 5.047, 5.450],
        [4.184, 4.589, 5.117, 5.544],
        [4.373, 4.775, 5.269, 5.650],
    ]
)
# Nothing is known of tails beyond this.
LEAST_CHANCE = 1e-12
# Neighbours in noise of n values are correlated by more than this over the root of n, so often.
BY_CHANCE = NormalDist().inv_cdf(0.99)
# Neighbours that resemble each other more are a drift, and no noise.
LIKEST = 0.9
# A correlation is never below 0, and so on average above it: by this over the root of the length,
# what follows from it is too large.
TOO_LARGE = 1.2


def critical(counts: ArrayLike, chance: float) -> Floats:
    """Return how clear a change in sequences of these lengths is, with this chance in noise."""
    levels = clearness(np.asarray(counts, dtype=np.float64))
    logs = np.log(NOISE_CHANCES)
    lower = int(np.clip(np.searchsorted(-logs, -np.log(chance)) - 1, 0, len(NOISE_CHANCES) - 2))
    share = (np.log(chance) - logs[lower]) / (logs[lower + 1] - logs[lower])
    return np.asarray(levels[lower] + share * (levels[lower + 1] - levels[lower]))


def chance_of(clear: Floats, counts: ArrayLike) -> Floats:
    """Return how often noise alone gives a sequence of this length anything as clear.

    Beyond what was simulated it is said to fall off as slowly as there, so that it is never
    less than it should be.
    """
    levels = clearness(np.asarray(counts, dtype=np.float64))
    logs = np.log(NOISE_CHANCES)
    lower = np.clip((clear[None] > levels[1:-1]).sum(axis=0), 0, len(NOISE_CHANCES) - 2)
    place = np.arange(len(clear))
    low, high = levels[lower, place], levels[lower + 1, place]
    share = (clear - low) / (high - low)
    log = logs[lower] + share * (logs[lower + 1] - logs[lower])
    return np.asarray(np.exp(np.clip(log, np.log(LEAST_CHANCE), 0)))


def clearness(counts: Floats) -> Floats:
    """Return CLEARNESS for each length, shape (chances, lengths), and beyond LENGTHS."""
    logs, table = np.log(LENGTHS), CLEARNESS.T
    place = np.log(np.maximum(counts, LENGTHS[0]))
    slope = (table[:, -1] - table[:, -2]) / (logs[-1] - logs[-2])
    further = np.maximum(place - logs[-1], 0)
    rows = [
        np.interp(place, logs, row) + rise * further for row, rise in zip(table, slope, strict=True)
    ]
    return np.asarray(rows)


def likest_by_chance(counts: ArrayLike) -> Floats:
    """Return how much neighbours in noise are correlated at most, but for one time in a hundred."""
    return np.asarray(BY_CHANCE / np.sqrt(np.maximum(counts, 1)))


def likeness(residuals: Floats, stretches: Stretches) -> Floats:
    """Return by how much the variance of a mean is larger than the noise of neighbours says.

    By the correlation of neighbours, which a change that is left in the residuals makes larger: if
    that is not beyond chance, by how much values differ from the next but one, too.
    """
    counts = np.maximum(stretches.counts, 1)
    by_products = correlation_of_products(residuals, stretches)
    both = inflation(np.minimum(by_products, correlation_of_steps(residuals, stretches)))
    doubtful = np.maximum(both * (1 - TOO_LARGE / np.sqrt(counts)), 1.0)
    beyond = by_products > likest_by_chance(counts)
    return np.asarray(np.where(beyond, inflation(by_products), doubtful))


def inflation(correlation: Floats) -> Floats:
    """Return (1 + r) / (1 - r)²: means vary more, and differences, which tell noise, less."""
    r = np.clip(correlation, 0, LIKEST)
    return np.asarray((1 + r) / (1 - r) ** 2)


def correlation_of_products(residuals: Floats, stretches: Stretches) -> Floats:
    """Return the correlation of neighbours in each stretch; 0 where all is 0."""
    products = residuals * np.roll(residuals, 1)
    products[stretches.starts[stretches.counts > 0]] = 0.0
    return safe_ratio(sums_of(products, stretches), sums_of(residuals**2, stretches))


def correlation_of_steps(residuals: Floats, stretches: Stretches) -> Floats:
    """Return it by how much more values differ from the next but one than from the next.

    That scatters more, but a change hardly moves it.
    """
    place = stretches.places() - np.repeat(stretches.starts, stretches.counts)
    near = np.where(place > 0, residuals - np.roll(residuals, 1), 0.0)
    far = np.where(place > 1, residuals - np.roll(residuals, 2), 0.0)
    pairs = np.maximum(stretches.counts, 3) - 1
    far_to_near = safe_ratio(sums_of(far**2, stretches), sums_of(near**2, stretches))
    return np.asarray(far_to_near * pairs / (pairs - 1) - 1)


def safe_ratio(values: Floats, to: Floats) -> Floats:
    """Divide, but by nothing that is 0."""
    return np.asarray(values / np.maximum(to, np.finfo(float).tiny))
