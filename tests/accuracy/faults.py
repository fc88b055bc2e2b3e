"""What goes wrong in a simulated grid, and what should then be named."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.causes.causes import Cause
from tests.accuracy.grids import Grid

# A cause without its figures: what it is and where.
Name = tuple[str, int | None, int | None]
# What goes wrong, and the links that it slows.
Injury = tuple[list[Name], Flags]


@dataclass(frozen=True)
class Fault:
    """``place`` chooses where in a grid, of the links that are tested; they slow by ``factor``."""

    name: str
    place: Callable[[Grid, Flags, np.random.Generator], Injury]
    factor: float = 1.0

    def into(self, logs: Floats, grid: Grid, rng: np.random.Generator) -> tuple[list[Name], Floats]:
        """Return what should be named, and the changes with the fault."""
        names, slowed = self.place(grid, np.isfinite(logs), rng)
        return names, np.where(slowed, logs - np.log(self.factor), logs)


def name_of(cause: Cause) -> Name:
    return cause.kind, cause.row, cause.column


def nowhere(grid: Grid, tested: Flags, rng: np.random.Generator) -> Injury:
    return [], np.zeros(tested.shape, dtype=bool)


def everywhere(grid: Grid, tested: Flags, rng: np.random.Generator) -> Injury:
    """Slow the grid as a whole: that has no cause in it."""
    return [], np.ones(tested.shape, dtype=bool)


def source(grid: Grid, tested: Flags, rng: np.random.Generator) -> Injury:
    place = int(rng.integers(grid.size))
    return [("source", place, None)], _cross(tested.shape, rows=[place])


def destination(grid: Grid, tested: Flags, rng: np.random.Generator) -> Injury:
    place = int(rng.integers(grid.size))
    return [("destination", None, place)], _cross(tested.shape, columns=[place])


def both(grid: Grid, tested: Flags, rng: np.random.Generator) -> Injury:
    place = int(rng.integers(grid.size))
    return [("both", place, place)], _cross(tested.shape, rows=[place], columns=[place])


def site(grid: Grid, tested: Flags, rng: np.random.Generator) -> Injury:
    """Slow every link of a site of several endpoints."""
    sites = np.array(grid.sites())
    names, counts = np.unique(sites, return_counts=True)
    members = np.flatnonzero(sites == rng.choice(names[counts > 1])).tolist()
    return [("site", members[0], members[0])], _cross(tested.shape, members, members)


def link(grid: Grid, tested: Flags, rng: np.random.Generator) -> Injury:
    row, column = rng.choice(np.argwhere(tested)).tolist()
    slowed = np.zeros(tested.shape, dtype=bool)
    slowed[row, column] = True
    return [("link", row, column)], slowed


def _cross(
    shape: tuple[int, ...], rows: list[int] | None = None, columns: list[int] | None = None
) -> Flags:
    """Flag the links of these rows and these columns."""
    flags = np.zeros(shape, dtype=bool)
    flags[rows or []] = True
    flags[:, columns or []] = True
    return flags
