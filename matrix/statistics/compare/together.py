"""The links of a choice on two sides, together: one factor of all their tests. Pure numpy.

Each link is taken against itself, so that it does not matter which of them were tested on a side,
and counts by its tests. How far such a factor scatters is told by the days of weeks: the same is
done with each day and the one before. How far links differ in that is the scatter of single tests,
and what is beyond it befalls all of them at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Self

import numpy as np

from matrix.statistics.arrays import ArrayFields, Flags, Floats, Integers
from matrix.statistics.compare.day_scatter import dof_of_steps
from matrix.statistics.compare.two_samples import CONFIDENCE, FEWEST_TESTS, inflation, is_apart
from matrix.statistics.estimates import student
from matrix.statistics.samples.pooling import Numbering, Pooling
from matrix.statistics.samples.reduce import reduce
from matrix.statistics.samples.run import Run, by_day, of_links
from sonar.notation.windows import Window

# A link with fewer than FEWEST_TESTS on a side has no median that would keep an odd one out: it is
# drawn in to so many of what such links scatter.
FURTHEST = 2.0
# The standard deviation of a normal distribution in medians of distances.
NORMAL = 1.4826
# Each draws in by what the one before says; of so few that are far off, the rest is nothing.
STEPS = 5
DAY = timedelta(days=1)


class LogShift(NamedTuple):
    """How far the logs of links lie from those of the other side: their mean, by ``weights``.

    ``weights`` are in tests, and so is ``weight``, of all: by so many the variance of a single
    test is to be divided. ``logs`` are by link, drawn in. It ``is_thin`` where links with fewer
    than FEWEST_TESTS on a side weigh more than the others.
    """

    log: float
    weight: float
    logs: Floats
    weights: Floats
    is_thin: bool = False

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
        few = counts.min(axis=0) < FEWEST_TESTS
        logs, weight = drawn_in(logs, weights, few), float(weights.sum())
        is_thin = float(weights[few].sum()) > weight / 2
        return cls(float(np.average(logs, weights=weights)), weight, logs, weights, is_thin)

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
class DayScatter(ArrayFields):
    """How far links scatter from day to day, by choice of links; arrays of shape (choices).

    ``single`` is the variance of a single test, as far as links differ in it, ``common`` that of
    what befalls all of them from one day to the next; ``dof`` are degrees of freedom of the latter
    and, for each link but one, of the former: 0 where there are too few days.
    """

    single: Floats
    common: Floats
    dof: Floats

    def error(self, shift: LogShift, apart: float) -> tuple[float, float]:
        """Return the standard error of a shift of the only choice, and dof (Satterthwaite 1946)."""
        single, common = float(self.single[0]) / shift.weight, float(self.common[0]) * apart
        dof, links = float(self.dof[0]), shift.logs.size
        of_single = dof * max(links - 1, 1)
        # Days of more tests do not tell how far single ones are off now and then.
        if shift.is_thin and links > 1 and (own := shift.error() ** 2) > single:
            single, of_single = own, links - 1
        squares = single**2 / of_single + common**2 / dof
        return math.sqrt(single + common), (single + common) ** 2 / squares if squares else dof


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
        cls,
        centres: Floats,
        counts: Integers,
        of: str,
        scatter: DayScatter | None = None,
        apart: float = 0.0,
    ) -> Self:
        """Compare medians or means of so many tests by link, both of shape (2, links).

        ``scatter`` is that of these links, where only time differs, by so many days ``apart``, as
        days_apart() has it. Where no days tell, the difference between links does.
        """
        shift = LogShift.of(centres, counts, of)
        paired = counts[:, np.isfinite(centres).all(axis=0) & (centres > 0).all(axis=0)]
        ok, other_ok = paired.sum(axis=1).tolist()
        error, dof = shift.error(), float(max(shift.logs.size - 1, 1))
        if scatter is not None and scatter.dof[0] > 0 and shift.weight:
            error, dof = scatter.error(shift, apart)
        half = student.one_quantile((1 + CONFIDENCE) / 2, dof) * error
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


def days_apart(own: Window, other: Window) -> float:
    """Return how far two windows differ in what a day does to all links; 1 for two days in a row.

    What it does is taken to fade within a day: two hours in a row share most of it, and of a week
    it is a seventh. In parts of its variance.
    """

    def shared(first: Window, second: Window) -> float:
        starts, ends = first.start - second.start, first.end - second.end
        spread = _faded(first.end - second.start) + _faded(first.start - second.end)
        lengths = (first.end - first.start) / DAY * ((second.end - second.start) / DAY)
        return (spread - _faded(starts) - _faded(ends)) / lengths

    return shared(own, own) + shared(other, other) - 2 * shared(own, other)


def _faded(between: timedelta) -> float:
    """Return the second integral of 1 - x up to a day, and of nothing beyond."""
    days = abs(between / DAY)
    within = min(days, 1.0)
    return within**2 / 2 - within**3 / 6 + (days - within) / 2


def day_shifts(
    runs: Sequence[Run], numbering: Numbering, choices: Flags, of: str = "median"
) -> DayScatter:
    """Return how far each of some choices of links scatters from day to day.

    ``runs`` are in the order of time, each of a day or a part of one; ``choices`` have shape
    (choices, ids, ids).
    """
    places = np.arange(len(numbering.ids))
    shown = np.asarray(choices.any(axis=0))
    pooling = Pooling(numbering, places, places, shown, choices.shape[1:])
    links = numbering.links(np.flatnonzero(shown))
    steps: list[list[tuple[float, float, float]]] = [[] for _ in choices]
    centres = np.full((2, *choices.shape[1:]), np.nan)
    counts = np.zeros(centres.shape, dtype=np.int64)
    for _, of_day in by_day(runs):
        few = [of_links(run, links) for run in of_day]
        day = reduce(few, pooling, (of,) if of != "mean" else ())
        tested = day.ok > 0
        centres[0], counts[0] = day.mean if of == "mean" else day.extras[of], day.ok
        for choice, of_choice in zip(choices, steps, strict=True):
            pairs = choice & tested & (counts[1] > 0)
            shift = LogShift.of(centres[:, pairs], counts[:, pairs], of)
            if shift.weight:
                of_choice.append((shift.log, shift.weight, shift.error()))
        centres[1, tested], counts[1, tested] = centres[0, tested], counts[0, tested]
    return DayScatter(*np.array([scatter_of(*of_choice) for of_choice in steps]).T)


def scatter_of(*steps: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return what DayScatter has of one choice, by the log, weight and error of steps of a day."""
    dof = float(dof_of_steps(np.array(float(len(steps)))))
    if not dof:
        return 0.0, 0.0, 0.0
    moved, weights, errors = np.array(steps).T
    several = ~np.isnan(errors)
    if not several.any():  # of one link, which has nothing in common with others
        return float((moved**2 * weights).mean()), 0.0, dof
    moved, weights, errors = moved[several], weights[several], errors[several]
    common = max(float((moved**2 - errors**2).mean()), 0.0)
    return float((errors**2 * weights).mean()), common, dof
