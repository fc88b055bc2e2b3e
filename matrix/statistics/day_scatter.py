"""How far the tests of each link scatter, from the days of weeks. Pure numpy.

From how much the mean of one day differs from that of the day before: what a day does to all tests
of a link then counts, a level that drifts or jumped once hardly does (von Neumann 1941).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matrix.statistics.daily_effects import mean_of, sums_of
from matrix.statistics.pooling import Numbering
from matrix.statistics.run import Run, by_day
from matrix.statistics.two_samples import KnownScatter

# Of a link that was tested on fewer days, its days say nothing.
FEWEST_DAYS = 5


def day_scatter(runs: Sequence[Run], numbering: Numbering) -> KnownScatter:
    """Reduce runs in the order of time, each of a day or a part of one; shape (ids, ids).

    The variance is that of the natural log of a single test: days of many tests count more.
    """
    links = numbering.stride**2
    squares, steps, last_count = np.zeros((3, links))
    last = np.full(links, np.nan)
    for _, of_day in by_day(runs):
        sums = sums_of(of_day, numbering)
        mean, tested = mean_of(sums), np.flatnonzero(sums[1])
        pairs = tested[last_count[tested] > 0]
        error = 1 / sums[1][pairs] + 1 / last_count[pairs]
        squares[pairs] += np.square(mean[pairs] - last[pairs]) / error
        steps[pairs] += 1
        last[tested], last_count[tested] = mean[tested], sums[1][tested]
    # A step shares a day with the next one.
    enough = steps >= FEWEST_DAYS - 1
    dof = np.where(enough, 2 * np.square(steps) / np.maximum(3 * steps - 1, 1), 0.0)
    squares = np.where(enough, squares / np.maximum(steps, 1) * dof, 0.0)
    return KnownScatter(numbering.square(squares), numbering.square(dof))
