"""A question is put many times, each time to another simulated grid: how often is it right?"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Floats
from matrix.statistics.causes.causes import name_causes, name_slower
from matrix.statistics.estimates import two_way
from matrix.statistics.levels.change_points import change_points
from tests.accuracy.faults import Fault, name_of
from tests.accuracy.grids import Grid

# Of the published tables.
SEED = 1
# The usual of a link comes from so many windows, a day each.
HISTORY = 30
# The standard deviation of the mean of 10 normal numbers over that of their median.
MEAN_OVER_MEDIAN = 0.3162 / 0.3717
# A change in the middle of so many tests is dated right if it is within so many of them.
TESTS, WITHIN = 60, 2
Trial = Callable[[Grid, Fault, float, np.random.Generator], bool]


@dataclass(frozen=True)
class Compared:
    """Compare so many windows of the new state with one before it."""

    windows: int

    def __call__(self, grid: Grid, fault: Fault, noise: float, rng: np.random.Generator) -> bool:
        change, spread = grid.windows(rng, noise, self.windows + 1).change(self.windows, 1)
        logs = np.where(grid.tested(rng), change, np.nan)
        names, logs = fault.into(logs, grid, rng)
        causes = name_causes(logs, sites=grid.sites(), spread=spread)
        return [name_of(cause) for cause in causes] == names


@dataclass(frozen=True)
class Remembered:
    """Judge one window by HISTORY before it; ``statistic`` is its noise over that of medians."""

    statistic: float

    def __call__(self, grid: Grid, fault: Fault, noise: float, rng: np.random.Generator) -> bool:
        windows = grid.windows(rng, noise, HISTORY + 1)
        logs = np.where(grid.tested(rng), windows.errors * self.statistic, np.nan)
        names, now = fault.into(logs[0], grid, rng)
        spread = np.sqrt(1 / windows.transfers)
        causes = name_slower(now, logs[1:], spread=(spread[0], spread[1:]), sites=grid.sites())
        return [name_of(cause) for cause in causes] == names


def is_dated(values: Floats) -> bool:
    """Say whether the clearest change of a sequence is in its middle."""
    changes = change_points(values, np.array([0]), np.array([len(values)]))
    if not len(changes.at):
        return False
    return bool(abs(changes.at[changes.chance.argmin()] - len(values) // 2) <= WITHIN)


def dated_by_itself(grid: Grid, fault: Fault, noise: float, rng: np.random.Generator) -> bool:
    """Date the change of one link. The noise is that of a test, not of a change."""
    values = np.log(noise) * rng.normal(size=TESTS)
    values[TESTS // 2 :] -= np.log(fault.factor)
    return is_dated(values)


def dated_by_its_row(grid: Grid, fault: Fault, noise: float, rng: np.random.Generator) -> bool:
    """Date the change of an endpoint by its effect as a source in each of the windows."""
    logs = grid.windows(rng, noise, TESTS).errors * np.sqrt(2)
    logs[:, ~grid.tested(rng)] = np.nan
    for place in range(TESTS // 2, TESTS):
        # The same endpoint in each window.
        ((_, row, _),), logs[place] = fault.into(logs[place], grid, np.random.default_rng(7))
    effects = np.array([two_way.fit(window).row[row] for window in logs])
    return is_dated(effects)


ONE_WINDOW = Compared(1)


@dataclass(frozen=True)
class Question:
    """``silent`` ones should name nothing: what counts there is how often they do."""

    name: str
    fault: Fault
    trial: Trial = ONE_WINDOW

    @property
    def silent(self) -> bool:
        return self.fault.name in ("nothing", "drift")


@dataclass(frozen=True)
class Figure:
    """How often a question was answered right, of so many ``trials``."""

    question: str
    grid: str
    noise: float
    right: int
    trials: int

    @property
    def share(self) -> float:
        return self.right / self.trials


def figure(question: Question, grid: Grid, noise: float, trials: int, seed: int = SEED) -> Figure:
    """Ask so many times; each figure has a seed of its own, whatever else is asked."""
    own = zlib.crc32(f"{question.name} {grid.name} {noise}".encode())
    rng = np.random.default_rng([seed, own])
    right = sum(question.trial(grid, question.fault, noise, rng) for _ in range(trials))
    return Figure(question.name, grid.name, noise, right, trials)
