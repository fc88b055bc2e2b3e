"""What is usual for each link, from the tests of the days before. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers, ranks
from matrix.statistics.assessment.conditions import ClassCondition
from matrix.statistics.assessment.grid_links import JudgedTests
from matrix.statistics.assessment.targets import Targets
from matrix.statistics.estimates.moderation import Prior

# A level needs so many successes. Of fewer than SETTLED, the first half tells the level: the
# others may be slow already.
FEWEST, SETTLED = 5, 20
# The share of tests of a link that fail is taken for that of all links, with the weight of so many
# tests. It is never below or above these.
PRIOR_TESTS = 50.0
LEAST_FAILING, MOST_FAILING = 0.01, 0.5
# The natural log of a rate scatters by this where nothing is known, and by this at least.
FIRST_SIGMA, LEAST_SIGMA = 0.3, 0.05
FIRST_DOF = 4
FIRST_PRIOR = Prior(FIRST_SIGMA**2, FIRST_DOF)
# The standard deviation of normal numbers over their median distance from 0.
NORMAL_MAD = 1.4826
FURTHEST = 3.0
MOST_LIKENESS = 0.5


@dataclass(frozen=True)
class Baselines:
    """By link: ``level`` is the natural log of the usual rate (bytes/s), NaN where it is unknown,
    ``sigma`` how far one test scatters, ``failing`` the share of tests that fail, and ``tests``
    how many tell the level.

    ``likeness`` is how alike two tests in a row are, a correlation; ``dof`` says from how much
    sigma is known, and ``prior`` is what all links together say of the variance of one and its
    degrees of freedom.
    """

    level: Floats
    sigma: Floats
    failing: Floats
    tests: Integers
    likeness: float
    dof: int
    prior: Prior

    @classmethod
    def unknown(cls, links: int) -> Self:
        nothing = np.full(links, np.nan)
        none = np.zeros(links, dtype=np.int64)
        return cls(nothing, nothing, nothing, none, 0.0, 3, FIRST_PRIOR)

    def with_part(self, chosen: Flags, part: Self) -> Self:
        """Return these with those of some links."""
        by_link = ("level", "sigma", "failing", "tests")
        return replace(
            part,
            **{
                name: np.where(chosen, getattr(part, name), getattr(self, name)) for name in by_link
            },
        )

    def held(self, conditions: Sequence[ClassCondition]) -> Self:
        """Return them with the levels before open conditions where their own tests tell few."""
        level = self.level.copy()
        for each in conditions:
            for link, before in each.levels.items():
                if each.is_open and self.tests[link] < SETTLED:
                    level[link] = before
        return replace(self, level=level)

    def at(self, targets: Targets) -> Self:
        """Return them at the levels that people expect, or accepted where few tests tell it."""
        level, tests, floor = self.level, self.tests, targets.has_floor
        level = np.where(np.isfinite(targets.accepted) & (tests < SETTLED), targets.accepted, level)
        tests = np.where(floor, np.maximum(tests, SETTLED), tests)
        return replace(self, level=np.where(floor, targets.floor, level), tests=tests)


def learn(tests: JudgedTests, links: int, left_out: Flags) -> Baselines:
    """Learn what is usual from tests; those ``left_out`` were made while something was wrong.

    They tell nothing of the level, but how far tests scatter.
    """
    ok = np.flatnonzero(tests.ok)
    order = ok[np.argsort(tests.link[ok], kind="stable")]
    link, logs = tests.link[order], tests.log_rate[order]
    counted = np.bincount(link, minlength=links)
    # By how much a test differs from the one before it: a level that moved counts once at most.
    follows = np.flatnonzero(np.diff(link, prepend=-1) == 0)
    of_step, steps = link[follows], logs[follows] - logs[follows - 1]
    bound = FURTHEST * NORMAL_MAD * medians(of_step, np.abs(steps), links)
    steps = np.clip(steps, -bound[of_step], bound[of_step])
    squares = np.bincount(of_step, np.square(steps), minlength=links) / 2
    # Neighbouring differences share a test: they are worth two thirds of as many.
    worth = np.maximum(counted - 1, 0) * 2 / 3
    squares *= 2 / 3
    is_known = counted >= FEWEST
    variance, dof, prior = np.full(links, FIRST_SIGMA**2), FIRST_DOF, FIRST_PRIOR
    if is_known.sum() > 2:
        prior = Prior.of(squares[is_known], worth[is_known])
        variance, whole = prior.moderated(squares, np.maximum(worth, 1e-9))
        dof = max(int(np.median(whole[is_known])), 3)
    usual = ~left_out[order]
    link, logs = link[usual], logs[usual]
    count = np.bincount(link, minlength=links)
    rank = ranks(count)
    early = rank < np.where(count < SETTLED, np.maximum(FEWEST, count // 2), count)[link]
    level = medians(link[early], logs[early], links)
    follows = np.flatnonzero(rank > 0)
    rest = np.clip((logs - level[link]) / np.sqrt(variance[link]), -FURTHEST, FURTHEST)
    pairs = follows[is_known[link[follows]]]
    products = float((rest[pairs] * rest[pairs - 1]).mean()) if pairs.size else 0.0
    spread = float(np.square(rest[is_known[link]]).mean()) if is_known.any() else 1.0
    likeness = float(np.clip(products / max(spread, 1e-9), 0, MOST_LIKENESS))
    # Differences of neighbours that are alike tell less than all of the scatter.
    sigma = np.maximum(np.sqrt(variance / (1 - likeness)), LEAST_SIGMA)
    return Baselines(
        level=np.where(count >= FEWEST, level, np.nan),
        sigma=sigma,
        failing=shares_of_failures(tests, links, left_out),
        tests=np.minimum(count, np.bincount(link[early], minlength=links)),
        likeness=likeness,
        dof=dof,
        prior=prior,
    )


def shares_of_failures(tests: JudgedTests, links: int, left_out: Flags) -> Floats:
    tested = np.bincount(tests.link[~left_out], minlength=links)
    failed = np.bincount(tests.link[~left_out & ~tests.ok], minlength=links)
    of_all = np.clip(failed.sum() / max(tested.sum(), 1), LEAST_FAILING, 0.1)
    shares = (failed + PRIOR_TESTS * of_all) / (tested + PRIOR_TESTS)
    return np.asarray(np.clip(shares, LEAST_FAILING, MOST_FAILING))


def medians(group: Integers, values: Floats, groups: int) -> Floats:
    """Return the median of the values of each group, NaN for none."""
    order = np.lexsort((values, group))
    ordered, count = values[order], np.bincount(group, minlength=groups)
    first = np.cumsum(count) - count
    there = np.flatnonzero(count)
    low, high = first[there] + (count[there] - 1) // 2, first[there] + count[there] // 2
    result = np.full(groups, np.nan)
    result[there] = (ordered[low] + ordered[high]) / 2
    return result
