"""How much neighbours in a sequence resemble each other, and what that takes off its means.

Rates that go on for some tests (a busy hour, a full disk) look like changes of level: the fewer
the tests, the more. Pure numpy.
"""

from __future__ import annotations

import numpy as np

from matrix.statistics.arrays import Floats
from matrix.statistics.change_chance import likest_by_chance
from matrix.statistics.stretches import Stretches, sums_of

# Neighbours that resemble each other more are a drift, and no noise.
LIKEST = 0.9
# A correlation is never below 0, and so on average above it: by this over the root of the length,
# what follows from it is too large.
TOO_LARGE = 1.2


def likeness(residuals: Floats, stretches: Stretches) -> Floats:
    """Return by how much the variance of a mean is larger than the noise of neighbours says.

    By the correlation of neighbours, which a change that is left in the residuals makes larger: if
    that is not beyond chance, by how much values differ from the next but one, too.
    """
    counts = np.maximum(stretches.counts, 1)
    by_products = of_products(residuals, stretches)
    both = inflation(np.minimum(by_products, of_steps(residuals, stretches)))
    doubtful = np.maximum(both * (1 - TOO_LARGE / np.sqrt(counts)), 1.0)
    beyond = by_products > likest_by_chance(counts)
    return np.asarray(np.where(beyond, inflation(by_products), doubtful))


def inflation(correlation: Floats) -> Floats:
    """Return (1 + r) / (1 - r)²: means vary more, and differences less, by which noise is measured.

    Of neighbours that are unlike each other nothing is made.
    """
    r = np.clip(correlation, 0, LIKEST)
    return np.asarray((1 + r) / (1 - r) ** 2)


def of_products(residuals: Floats, stretches: Stretches) -> Floats:
    """Return the correlation of neighbours in each stretch; 0 where all is 0."""
    products = residuals * np.roll(residuals, 1)
    products[stretches.starts[stretches.counts > 0]] = 0.0
    return ratio(sums_of(products, stretches), sums_of(residuals**2, stretches))


def of_steps(residuals: Floats, stretches: Stretches) -> Floats:
    """Return it by how much more values differ from the next but one than from the next.

    That scatters more, but a change hardly moves it.
    """
    place = stretches.places() - np.repeat(stretches.starts, stretches.counts)
    near = np.where(place > 0, residuals - np.roll(residuals, 1), 0.0)
    far = np.where(place > 1, residuals - np.roll(residuals, 2), 0.0)
    pairs = np.maximum(stretches.counts, 3) - 1
    far_to_near = ratio(sums_of(far**2, stretches), sums_of(near**2, stretches))
    return np.asarray(far_to_near * pairs / (pairs - 1) - 1)


def ratio(values: Floats, to: Floats) -> Floats:
    """Divide, but by nothing that is 0."""
    return np.asarray(values / np.maximum(to, np.finfo(float).tiny))
