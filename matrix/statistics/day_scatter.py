"""How far the tests of each link scatter, from the days of weeks. Pure numpy.

From how much the mean of one day differs from that of the day before: what a day does to all tests
of a link then counts, a level that drifts or jumped once hardly does (von Neumann 1941).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Floats
from matrix.statistics.daily_effects import logs_of, mean_of, sums_of
from matrix.statistics.pooling import Numbering
from matrix.statistics.run import FAILED_BIT, Run, by_day
from matrix.statistics.two_samples import KnownScatter

# Of a link that was tested on fewer days, its days say nothing.
FEWEST_DAYS = 5


def day_scatter(runs: Sequence[Run], numbering: Numbering) -> KnownScatter:
    """Reduce runs in the order of time, each of a day or a part of one; shape (ids, ids).

    The variance is that of the natural log of a single test: days of many tests count more.
    """
    days = Days.of(runs, numbering)
    return known_scatter(numbering, *days.between())


def scatter_in_a_row(runs: Sequence[Run], numbering: Numbering, count: int) -> KnownScatter:
    """Return the scatter of tests of which ``count`` in a row are taken together, as day_scatter().

    Of more tests a day these few share a day, and what it does to them, with fewer others: then
    how tests scatter within their days counts, and only a part of how days differ. They may
    share an hour, too: where tests differ more within days than days do, as by the time of the
    day, that is their scatter.
    """
    days = Days.of(runs, numbering)
    between, dof = days.between()
    within, within_dof = days.within()
    share = np.minimum(count / np.maximum(days.tests_a_day(), 1), 1)
    kept, added = (1 - share) * within, share * between
    with np.errstate(divide="ignore", invalid="ignore"):  # of what has no days, or equal tests
        mixed_dof = np.square(kept + added) / (
            np.square(kept) / within_dof + np.square(added) / dof
        )
    is_of_days, is_calm = (share == 1) | (within_dof == 0), between <= within
    variance = np.where(is_of_days, between, np.where(is_calm, within, kept + added))
    dof = np.where(is_of_days | (dof == 0), dof, np.where(is_calm, within_dof, mixed_dof))
    return known_scatter(numbering, variance, dof)


def known_scatter(numbering: Numbering, variance: Floats, dof: Floats) -> KnownScatter:
    """Bring variances by the number of a link into a square."""
    return KnownScatter(numbering.square(variance * dof), numbering.square(dof))


@dataclass(frozen=True)
class Days:
    """What the days of each link tell of its scatter, by its number.

    ``squares`` are those of the ``steps`` from the mean of a day to that of the next, each over the
    variance that it has where that of a test is 1; ``tests`` are those of a day, added up over
    steps. ``inner`` are squares beside the mean of a day, ``inner_dof`` their degrees of freedom.
    """

    squares: Floats
    steps: Floats
    tests: Floats
    inner: Floats
    inner_dof: Floats

    @classmethod
    def of(cls, runs: Sequence[Run], numbering: Numbering) -> Days:
        links = numbering.stride**2
        days = cls(*np.zeros((5, links)))
        last, last_count = np.full(links, np.nan), np.zeros(links)
        for _, of_day in by_day(runs):
            sums = sums_of(of_day, numbering)
            mean, tested = mean_of(sums), np.flatnonzero(sums[1])
            pairs = tested[last_count[tested] > 0]
            error = 1 / sums[1][pairs] + 1 / last_count[pairs]
            days.squares[pairs] += np.square(mean[pairs] - last[pairs]) / error
            days.steps[pairs] += 1
            days.tests[pairs] += 2 / error
            days._add_inner(of_day, mean, numbering)
            days.inner_dof[tested] += sums[1][tested] - 1
            last[tested], last_count[tested] = mean[tested], sums[1][tested]
        return days

    def _add_inner(self, of_day: Sequence[Run], mean: Floats, numbering: Numbering) -> None:
        for run in of_day:
            keys = run.keys[run.keys & FAILED_BIT == 0]
            number = numbering.numbers(keys)
            beside = np.square(logs_of(keys) - mean.take(number))
            self.inner[:] += np.bincount(number, beside, minlength=len(self.inner))

    def between(self) -> tuple[Floats, Floats]:
        """Return the variance of a test by how days differ; of 0 degrees of freedom of few days."""
        return self.squares / np.maximum(self.steps, 1), dof_of_steps(self.steps)

    def within(self) -> tuple[Floats, Floats]:
        """Return the variance of a test within its day, and its degrees of freedom."""
        return self.inner / np.maximum(self.inner_dof, 1), self.inner_dof

    def tests_a_day(self) -> Floats:
        """Return how many tests a day has; few count more, as in how much its mean scatters."""
        return self.tests / np.maximum(self.steps, 1)


def dof_of_steps(steps: Floats) -> Floats:
    """Return the degrees of freedom of so many steps from day to day, 0 for too few.

    Each shares a day with the next one.
    """
    whole = 2 * np.square(steps) / np.maximum(3 * steps - 1, 1)
    return np.where(steps >= FEWEST_DAYS - 1, whole, 0.0)
