"""The links of a choice on two sides, together: one factor of all their tests. Pure numpy.

Each link is taken against itself, so that it does not matter which of them were tested on a side,
and counts by its tests. How far such a factor scatters is told by the days of weeks: the same is
done with each day and the one before, so that what befalls all links of a choice at once counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from matrix.statistics import student
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.day_scatter import dof_of_steps
from matrix.statistics.pooling import Numbering, Pooling
from matrix.statistics.reduce import reduce
from matrix.statistics.run import Run, by_day, of_links
from matrix.statistics.two_samples import FEWEST, UPPER, KnownScatter, inflation, is_apart

# A link with fewer than FEWEST tests on a side has no median that would keep an odd test out: it is
# drawn in to so many of what such links scatter.
FURTHEST = 2.0
# The standard deviation of a normal distribution in medians of distances.
NORMAL = 1.4826
# Each draws in by what the one before says; of so few that are far off, the rest is nothing.
STEPS = 5


class LogShift(NamedTuple):
    """How far the logs of links lie from those of the other side: their mean, by ``weights``.

    ``weights`` are in tests, and so is ``weight``, of all: by so many the variance of a single
    test is to be divided. ``logs`` are by link, drawn in.
    """

    log: float
    weight: float
    logs: Floats
    weights: Floats

    @classmethod
    def of(cls, centres: Floats, counts: Integers, of: str) -> Self:
        """Compare centres (medians or means) of so many tests; both of shape (2, links)."""
        with np.errstate(divide="ignore", invalid="ignore"):  # no test, or a rate of 0
            logs = np.log(centres[0] / centres[1])
        there = np.isfinite(logs)
        logs, counts = logs[there], counts[:, there]
        if not logs.size:
            return cls(np.nan, 0.0, logs, logs)
        by_median = inflation(of, counts, np.zeros(logs.shape)) if of == "median" else 1.0
        weights = 1 / (by_median / counts).sum(axis=0)
        logs = drawn_in(logs, weights, counts.min(axis=0) < FEWEST)
        return cls(float(np.average(logs, weights=weights)), float(weights.sum()), logs, weights)

    def error(self) -> float:
        """Return the standard error by how far links differ from each other; NaN for one."""
        links = self.logs.size
        if links < 2:
            return np.nan
        squares = np.square(self.weights * (self.logs - self.log)).sum()
        return float(np.sqrt(squares * links / (links - 1)) / self.weight)


def drawn_in(logs: Floats, weights: Floats, few: Flags) -> Floats:
    """Bring those that ``few`` tests tell of, and that are far off, nearer to all together."""
    if not few.any():
        return logs
    centre, errors = float(np.median(logs)), 1 / np.sqrt(weights)
    far = FURTHEST * NORMAL * float(np.median(np.abs(logs - centre) / errors)) * errors
    drawn = logs
    for _ in range(STEPS):
        drawn = np.where(few, np.clip(logs, centre - far, centre + far), logs)
        centre = float(np.average(drawn, weights=weights))
    return drawn


@dataclass(frozen=True)
class Together:
    """What links have in common between this side and the other: a factor, NaN for none.

    Of the ``links`` with successes on both sides, ``ok`` and ``other_ok`` in all. ``low`` and
    ``high`` bound the factor with 95 % confidence, ``p`` says how probable it is by chance alone;
    NaN where nothing tells.
    """

    ratio: float
    low: float
    high: float
    p: float
    links: int
    ok: int
    other_ok: int

    @classmethod
    def of(
        cls, centres: Floats, counts: Integers, of: str, scatter: KnownScatter | None = None
    ) -> Self:
        """Compare medians or means of so many tests by link, both of shape (2, links).

        ``scatter`` is how far single tests of all of them scatter, of one value; where it knows
        nothing, the difference between links tells.
        """
        shift = LogShift.of(centres, counts, of)
        paired = counts[:, np.isfinite(centres).all(axis=0) & (centres > 0).all(axis=0)]
        ok, other_ok = paired.sum(axis=1).tolist()
        error, dof = shift.error(), float(max(shift.logs.size - 1, 1))
        if scatter is not None and scatter.dof > 0 and shift.weight:
            variance, dof = float(scatter.squares / scatter.dof), float(scatter.dof)
            error = float(np.sqrt(variance / shift.weight))
        half = float(student.quantile(UPPER, dof)) * error
        with np.errstate(divide="ignore", invalid="ignore"):  # links that are all alike
            t = np.divide(shift.log, error) if shift.log else 0.0 * error
        p = float(student.two_sided(t, dof))
        low, ratio, high = np.exp([shift.log - half, shift.log, shift.log + half]).tolist()
        return cls(ratio, low, high, p, shift.logs.size, ok, other_ok)

    @property
    def kind(self) -> str:
        """Return `slower` or `faster` where that is certain, `same`, or nothing for no links."""
        if not self.links:
            return ""
        if not is_apart(self.ratio, self.low, self.high):
            return "same"
        return "slower" if self.ratio < 1 else "faster"


def day_shifts(
    runs: Sequence[Run], numbering: Numbering, choices: Flags, of: str = "median"
) -> KnownScatter:
    """Return how far each of some choices of links scatters from day to day, as single tests do.

    ``runs`` are in the order of time, each of a day or a part of one; ``choices`` have shape
    (choices, ids, ids), the result (choices). It has dof of 0 where there are too few days.
    """
    places = np.arange(len(numbering.ids))
    shown = np.asarray(choices.any(axis=0))
    pooling = Pooling(numbering, places, places, shown, choices.shape[1:])
    links = numbering.links(np.flatnonzero(shown))
    squares, steps = np.zeros((2, len(choices)))
    centres = np.full((2, *choices.shape[1:]), np.nan)
    counts = np.zeros(centres.shape, dtype=np.int64)
    for _, of_day in by_day(runs):
        few = [of_links(run, links) for run in of_day]
        day = reduce(few, pooling, (of,) if of != "mean" else ())
        tested = day.ok > 0
        centres[0], counts[0] = day.mean if of == "mean" else day.extras[of], day.ok
        for number, choice in enumerate(choices):
            pairs = choice & tested & (counts[1] > 0)
            shift = LogShift.of(centres[:, pairs], counts[:, pairs], of)
            if shift.weight:
                squares[number] += shift.log**2 * shift.weight
                steps[number] += 1
        centres[1, tested], counts[1, tested] = centres[0, tested], counts[0, tested]
    dof = dof_of_steps(steps)
    return KnownScatter(squares / np.maximum(steps, 1) * dof, dof)
