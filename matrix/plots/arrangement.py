"""From a grid to what is drawn of it: which rows and columns, and what is in focus."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from matrix.answers.grid import Grid
from matrix.plots.display import Display
from matrix.plots.sides import Side, side
from matrix.plots.strips import strips_of
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells.states import STATES
from matrix.store.data_version import DataVersion

Kind = TypeVar("Kind", bound=np.generic)
# Stands behind STATES for cells that the filters leave out, which is no state of a link.
LEFT_OUT = len(STATES)
LEFT_OUT_WORDS = "left out by the filters"


@dataclass(frozen=True)
class Arrangement:
    """A grid, or its strips, as a display draws it. Arrays have the shape (rows, columns)."""

    grid: Grid
    display: Display
    rows: Side
    columns: Side

    @property
    def own(self) -> Side | None:
        """Return the side of strips on which those stand whose links are drawn."""
        return next((side for side in (self.rows, self.columns) if side.end == "own"), None)

    @property
    def version(self) -> DataVersion:
        """Return what changes whenever the picture may."""
        return self.grid.version.shown(self.display.fingerprint)

    @property
    def digest(self) -> str:
        """Return what stays as long as the same rows and columns are drawn in the same order."""
        sides = [
            (side.end, side.names, side.sending, side.gaps) for side in (self.rows, self.columns)
        ]
        return hashlib.sha256(repr(sides).encode()).hexdigest()[:12]

    def drawn(self, values: NDArray[Kind]) -> NDArray[Kind]:
        """Return an array of the grid's cells in the order of rows and columns."""
        values = values.T if self.display.transpose else values
        return values[np.ix_(self.rows.order, self.columns.order)]

    def spread(self, values: NDArray[Kind], blank: float) -> NDArray[Kind]:
        """Put an array of drawn cells at its lines, with something blank in the gaps."""
        if not (self.rows.gaps or self.columns.gaps):
            return values
        return self.columns.spread(self.rows.spread(values, blank).T, blank).T

    @cached_property
    def in_focus(self) -> Flags:
        return self.drawn(focus(self.grid, self.display))

    @cached_property
    def state(self) -> NDArray[np.uint8]:
        """Return places in STATES, and LEFT_OUT."""
        left_out = self.grid.left_out
        state = self.grid.cells.state
        return self.drawn(state if left_out is None else np.where(left_out, LEFT_OUT, state))

    @cached_property
    def too_few(self) -> Flags:
        """Say which cells have results, but of a comparison too few of them on a side."""
        return self.drawn(self.grid.too_few)

    @cached_property
    def value(self) -> Floats:
        return self.drawn(self.grid.cells.value)


def arrange(grid: Grid, display: Display) -> Arrangement:
    """Order the rows and columns; leave out those in which nothing is in focus.

    Where filters leave all links of a few in view, these are drawn as two strips.
    """
    grid = strips_of(grid) or grid
    shown = focus(grid, display)
    ends = side("source", grid, display, shown), side("destination", grid, display, shown)
    rows, columns = ends[::-1] if display.transpose else ends
    return Arrangement(grid, display, rows, columns)


def focus(grid: Grid, display: Display) -> Flags:
    """Say which cells are in focus: all of them if the display has none."""
    value = grid.cells.value
    matches = np.full(value.shape, True)
    if display.only:
        matches &= np.logical_or.reduce([grid.of_look(look) for look in display.only])
    # What has no value is neither above nor below.
    if display.above is not None:
        matches &= value >= display.above
    if display.below is not None:
        matches &= value <= display.below
    return matches
