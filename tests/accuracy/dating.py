"""When a level changed: a link by its own tests, and an endpoint by its whole row."""

from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Floats
from matrix.statistics.estimates import two_way
from matrix.statistics.levels.change_points import change_points
from tests.accuracy.faults import Fault
from tests.accuracy.grids import Grid

# A change in the middle of so many tests is dated right if it is within so many of them.
TESTS, WITHIN = 60, 2


def is_dated(values: Floats) -> bool:
    """Say whether the clearest change of a sequence is in its middle."""
    changes = change_points(values, np.array([0]), np.array([len(values)]))
    if not len(changes.at):
        return False
    return bool(abs(changes.at[changes.chance.argmin()] - len(values) // 2) <= WITHIN)


@dataclass(frozen=True)
class DatedByItself:
    """Date the change of one link. The noise is that of a test, not of a change."""

    def __call__(self, grid: Grid, fault: Fault, noise: float, rng: np.random.Generator) -> bool:
        values = np.log(noise) * rng.normal(size=TESTS)
        values[TESTS // 2 :] -= np.log(fault.factor)
        return is_dated(values)


@dataclass(frozen=True)
class DatedByItsRow:
    """Date the change of an endpoint by its effect as a source in each of the windows."""

    def __call__(self, grid: Grid, fault: Fault, noise: float, rng: np.random.Generator) -> bool:
        logs = grid.windows(rng, noise, TESTS).errors * np.sqrt(2)
        logs[:, ~grid.tested(rng)] = np.nan
        for place in range(TESTS // 2, TESTS):
            # The same endpoint in each window.
            ((_, row, _),), logs[place] = fault.into(logs[place], grid, np.random.default_rng(7))
        effects = np.array([two_way.fit(window).row[row] for window in logs])
        return is_dated(effects)
