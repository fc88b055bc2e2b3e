"""How far the tests of each link scatter, from the days of weeks. Pure numpy.

From how much the mean of one day differs from that of the day before: what a day does to all tests
of a link then counts, a level that drifts or jumped once hardly does (von Neumann 1941).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from matrix.statistics.arrays import Floats, each
from matrix.statistics.compare.two_samples import KnownScatter
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.reduce import log_moments, squares_beside_mean
from matrix.statistics.samples.run import Run, by_day

# So many links are worked on at a time.
LINKS = 1 << 17
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
    day, that is their scatter. Of links with few days it is that of all their tests.

    Some sources at a time: what is added up stays in the CPU's cache, and takes little memory.
    """
    return KnownScatter.joined(each(partial(_in_a_row, runs, count), numbering.parts(LINKS)))


def _in_a_row(runs: Sequence[Run], count: int, numbering: Numbering) -> KnownScatter:
    days = Days.of([numbering.own(run) for run in runs], numbering)
    between, dof = days.between()
    within, within_dof = days.within()
    # How many tests a day has; few count more, as in how much its mean scatters.
    tests_a_day = days.tests / np.maximum(days.steps, 1)
    share = np.minimum(count / np.maximum(tests_a_day, 1), 1)
    kept, added = (1 - share) * within, share * between
    with np.errstate(divide="ignore", invalid="ignore"):  # of what has no days, or equal tests
        mixed_dof = np.square(kept + added) / (
            np.square(kept) / within_dof + np.square(added) / dof
        )
    is_of_days, is_calm = (share == 1) | (within_dof == 0), between <= within
    # The first that holds counts.
    cases = [dof == 0, is_of_days, is_calm]
    whole, whole_dof = days.whole()
    variance = np.select(cases, [whole, between, within], kept + added)
    return known_scatter(
        numbering, variance, np.select(cases, [whole_dof, dof, within_dof], mixed_dof)
    )


def known_scatter(numbering: Numbering, variance: Floats, dof: Floats) -> KnownScatter:
    return KnownScatter(numbering.square(variance * dof), numbering.square(dof))


@dataclass(frozen=True)
class Days:
    """What the days of each link tell of its scatter, by its number.

    ``squares`` are those of the ``steps`` from the mean of a day to that of the next, each over the
    variance that it has where that of a test is 1; ``tests`` are those of a day, added up over
    steps. ``inner`` are squares beside the mean of a day, ``inner_dof`` their degrees of freedom.
    ``moments`` are those of log_moments(), of all days.
    """

    squares: Floats
    steps: Floats
    tests: Floats
    inner: Floats
    inner_dof: Floats
    moments: Floats

    @classmethod
    def of(cls, runs: Sequence[Run], numbering: Numbering) -> Self:
        links = numbering.size
        squares, steps, tests, inner, inner_dof, last, last_count = np.zeros((7, links))
        days = cls(squares, steps, tests, inner, inner_dof, np.zeros((3, links)))
        for _, of_day in by_day(runs):
            moments = log_moments(of_day, numbering)
            count, mean = moments[0], moments[1] / np.maximum(moments[0], 1)
            # The variance of a step where that of a test is 1, inverted: 0 for no step.
            weight = count * last_count / np.maximum(count + last_count, 1)
            days.squares[:] += np.square(mean - last) * weight
            days.steps[:] += weight > 0
            days.tests[:] += 2 * weight
            days.inner[:] += squares_beside_mean(moments)
            days.inner_dof[:] += np.maximum(count - 1, 0)
            days.moments[:] += moments
            last, last_count = (
                np.where(count > 0, *of) for of in ((mean, last), (count, last_count))
            )
        return days

    def between(self) -> tuple[Floats, Floats]:
        """Return the variance of a test by how days differ; of 0 degrees of freedom of few days."""
        return self.squares / np.maximum(self.steps, 1), dof_of_steps(self.steps)

    def within(self) -> tuple[Floats, Floats]:
        """Return the variance of a test within its day, and its degrees of freedom."""
        return self.inner / np.maximum(self.inner_dof, 1), self.inner_dof

    def whole(self) -> tuple[Floats, Floats]:
        """Return the variance of all tests, and its degrees of freedom."""
        dof = np.maximum(self.moments[0] - 1, 0)
        return squares_beside_mean(self.moments) / np.maximum(dof, 1), dof


def dof_of_steps(steps: Floats) -> Floats:
    """Return the degrees of freedom of steps from day to day, which share days; 0 for too few."""
    whole = 2 * np.square(steps) / np.maximum(3 * steps - 1, 1)
    return np.where(steps >= FEWEST_DAYS - 1, whole, 0.0)
