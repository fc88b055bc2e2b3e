"""How often links that changed are called so, and others: 342 links, by draws of another generator.

With fixed seeds, so that the shares are the same whenever they are counted.
"""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.random import Generator

from matrix.statistics.arrays import Floats
from matrix.statistics.cells.standing import FASTER, SLOWER, Standings, UsualRates
from matrix.statistics.samples.newest import NewestTests
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.run import Run

DAY_MS = 86_400_000
PLACES, CHANGED, TRIALS, SCATTER = 19, 6, 20, 0.2
IDS = np.arange(1, PLACES + 1)
SOURCE, DESTINATION = np.nonzero(~np.eye(PLACES, dtype=bool))
LINKS = (IDS[SOURCE] << 16 | IDS[DESTINATION]).astype(np.uint32)


class Case(NamedTuple):
    """``of_days`` is how far days scatter; ``bad`` is the share of tests at a third."""

    days: int
    tests: int
    tails: str = "normal"
    of_days: float = 0.0
    bad: float = 0.0


class Shares(NamedTuple):
    """Of what changed, how much was named; of what was named, how much had not changed."""

    found: float
    false: float


def noise(draw: Generator, shape: tuple[int, ...], case: Case) -> Floats:
    if case.tails == "normal":
        unit = draw.standard_normal(shape)
    else:  # t of 4 degrees of freedom, as far on average
        unit = draw.standard_normal(shape) / np.sqrt(draw.chisquare(4, shape) / 2)
    return SCATTER * unit - np.log(3) * (draw.random(shape) < case.bad)


def run(day: int, rates: Floats) -> Run:
    """Return a run of rates of a day, shape (links, tests), in the order of time."""
    keys = LINKS.astype(np.uint64)[:, None] << np.uint64(32)
    keys = (keys | rates.astype(np.float32).view(np.uint32)).ravel()
    order = np.argsort(keys)
    step = DAY_MS // rates.shape[1]
    offsets = np.tile(np.arange(rates.shape[1]) * step, len(LINKS)).astype(np.uint32)[order]
    lasts = np.full(len(LINKS), (day + 1) * DAY_MS - step)
    return Run(keys[order], LINKS, lasts, offsets=offsets, start=day * DAY_MS)


def stand(draw: Generator, case: Case, factor: float) -> Standings:
    """Draw usual days and three tests after them, of which the first links have the factor."""
    numbering, count = Numbering(IDS), len(LINKS)
    level = draw.uniform(15, 19, (count, 1))

    def of_day(tests: int) -> Floats:
        common = case.of_days * draw.standard_normal((count, 1))
        return level + common + noise(draw, (count, tests), case)

    usual = [run(day, np.exp(of_day(case.tests))) for day in range(case.days)]
    newest = of_day(3)
    newest[:CHANGED] += np.log(factor)
    latest = [run(case.days + 1, np.exp(newest))]
    rates = UsualRates.of(usual, numbering)
    return Standings.of(NewestTests.of(latest, numbering), rates, numbering, lambda: latest)


def shares(case: Case, factor: float) -> Shares:
    draw, found, false = np.random.default_rng(3), 0, 0
    for _ in range(TRIALS):
        levels = stand(draw, case, factor).level[SOURCE, DESTINATION]
        named = levels >= SLOWER
        right = levels[:CHANGED] == (SLOWER if factor < 1 else FASTER)
        found, false = found + int(right.sum()), false + int(named.sum() - right.sum())
    return Shares(found / (CHANGED * TRIALS), false / max(found + false, 1))


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "factor", "least", "most_false"),
    [
        (Case(28, 4), 1 / 3, 0.99, 0.05),
        (Case(28, 4), 1 / 2, 0.85, 0.05),
        (Case(28, 4), 2, 0.85, 0.05),
        (Case(28, 24), 1 / 2, 0.85, 0.05),
        (Case(28, 4, "t"), 1 / 3, 0.95, 0.05),
        (Case(28, 24, "t"), 1 / 2, 0.85, 0.05),
        # What days do to all tests of a link hides half, but not a third.
        (Case(28, 4, of_days=0.1), 1 / 3, 0.95, 0.05),
        (Case(28, 24, "t", of_days=0.1), 1 / 3, 0.95, 0.05),
        # One bad test in twenty makes no link slower.
        (Case(28, 24, bad=0.05), 1 / 3, 0.95, 0.06),
        # Five tests of a single day.
        (Case(1, 5), 1 / 3, 0.95, 0.05),
        (Case(1, 5), 1 / 2, 0.5, 0.05),
        (Case(1, 5, "t"), 1 / 3, 0.85, 0.05),
    ],
)
def test_what_changed_is_found_and_little_else(case, factor, least, most_false):
    found, false = shares(case, factor)
    assert found >= least
    assert false <= most_false


def test_intervals_hold_what_is_true_nineteen_times_in_twenty():
    draw, inside = np.random.default_rng(4), []
    for case in (Case(28, 4), Case(28, 4, of_days=0.1), Case(28, 24, of_days=0.1), Case(1, 5)):
        standings = stand(draw, case, 1.0)
        holds = (standings.low <= 1) & (standings.high >= 1)
        inside.append(float(holds[SOURCE, DESTINATION].mean()))
    assert min(inside) >= 0.92


def test_tests_that_do_not_agree_are_no_change():
    """Of two at a third and one nearly as ever the median is at a third, and that is no chance."""
    draw, numbering = np.random.default_rng(5), Numbering(IDS)
    usual = [run(day, np.exp(17 + noise(draw, (len(LINKS), 4), Case(28, 4)))) for day in range(28)]
    rates = np.exp(17 + noise(draw, (len(LINKS), 3), Case(28, 4)))
    of_usual = UsualRates.of(usual, numbering)
    for slow, level in ((2, "usual"), (3, "slower")):
        rates[0] = np.exp(17) / np.array([3.0] * slow + [1.2] * (3 - slow))
        latest = [run(29, rates)]
        newest = NewestTests.of(latest, numbering)
        standings = Standings.of(newest, of_usual, numbering, lambda latest=latest: latest)
        assert ("unknown", "usual", "slower", "faster")[standings.level[0, 1]] == level
        assert standings.high[0, 1] < 0.5
