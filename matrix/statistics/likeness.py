"""How much neighbours in a sequence resemble each other, and what that takes off its means.

Rates that go on for some tests (a busy hour, a full disk) look like changes of level: the fewer
the tests, the more. Pure numpy.
"""

from __future__ import annotations

import numpy as np

from matrix.statistics.arrays import Floats
from matrix.statistics.stretches import Stretches, sums_of

# Neighbours that resemble each other more are a drift, and no noise.
LIKEST = 0.9


def likeness(residuals: Floats, stretches: Stretches) -> Floats:
    """Return by how much the variance of a mean is larger than the noise of neighbours says.

    (1 + r) / (1 - r)², with r for the correlation of neighbours: their mean varies more, and their
    differences less, by which noise is measured.
    """
    correlation = np.clip(correlations(residuals, stretches), 0, LIKEST)
    factor: Floats = (1 + correlation) / (1 - correlation) ** 2
    return factor


def correlations(residuals: Floats, stretches: Stretches) -> Floats:
    """Return how much neighbours resemble each other, by the smaller of two measures.

    A change that is left in the residuals makes their products larger. It hardly moves the other
    one: by how much values differ more from the next but one than from the next. That alone
    scatters more.
    """
    place = stretches.places() - np.repeat(stretches.starts, stretches.counts)
    before = np.roll(residuals, 1)
    near = np.where(place > 0, residuals - before, 0.0)
    far = np.where(place > 1, residuals - np.roll(residuals, 2), 0.0)
    products = np.where(place > 0, residuals * before, 0.0)
    of_products = ratio(sums_of(products, stretches), sums_of(residuals**2, stretches))
    pairs = np.maximum(stretches.counts, 3) - 1
    of_steps = ratio(sums_of(far**2, stretches), sums_of(near**2, stretches)) * pairs / (pairs - 1)
    return np.asarray(np.minimum(of_products, of_steps - 1))


def ratio(values: Floats, to: Floats) -> Floats:
    """Divide, but by nothing that is 0."""
    return np.asarray(values / np.maximum(to, np.finfo(float).tiny))
