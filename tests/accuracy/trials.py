"""A question is put many times, each time to another simulated grid: how often is it right?"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from matrix.statistics.causes.causes import name_causes, name_slower
from tests.accuracy.faults import Fault, name_of
from tests.accuracy.grids import Grid

# Of the published tables.
SEED = 1
# The usual of a link comes from so many windows, a day each.
HISTORY = 30
# The standard deviation of the mean of 10 normal numbers over that of their median.
MEAN_OVER_MEDIAN = 0.3162 / 0.3717
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
