"""From a grid to what is drawn of it: in which order, with which gaps, and what is in focus."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from matrix.answers.grid import Grid
from matrix.plots.display import Display
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.axes import AxisGroup
from matrix.statistics.states import STATES
from matrix.store.data_version import DataVersion

Kind = TypeVar("Kind", bound=np.generic)
# Orders in which a line stands before each cloud or tier.
SEPARATED = ("cloud", "tier")
# Sorts behind every name and every tier.
LAST = "\U0010ffff"


@dataclass(frozen=True)
class Side:
    """The rows or the columns as they are drawn, all lines from 0 to ``length``.

    ``end`` is `source` or `destination`. ``order`` has the places in the grid of ``groups``,
    ``names`` what these are called, ``at`` their lines, ``average`` their means. ``gaps`` are
    the other lines, which stay empty, and the cloud or tier that begins there.
    """

    end: str
    grouping: str
    groups: tuple[AxisGroup, ...]
    names: list[str]
    order: Integers
    at: Integers
    average: Floats
    gaps: dict[int, str]
    length: int

    def spread(self, values: NDArray[Kind], blank: float) -> NDArray[Kind]:
        """Put an array by group at its lines, with something blank in the gaps."""
        wide = np.full((self.length, *values.shape[1:]), blank, dtype=values.dtype)
        wide[self.at] = values
        return wide


@dataclass(frozen=True)
class Arrangement:
    """A grid as a display draws it. Arrays that it returns have the shape (rows, columns)."""

    grid: Grid
    display: Display
    rows: Side
    columns: Side

    @property
    def version(self) -> DataVersion:
        """Return what changes whenever the picture may."""
        return self.grid.version.shown(self.display.fingerprint)

    @property
    def digest(self) -> str:
        """Return what stays as long as the same rows and columns are drawn in the same order."""
        sides = [(side.end, side.names, sorted(side.gaps)) for side in (self.rows, self.columns)]
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
        return self.drawn(self.grid.cells.state)

    @cached_property
    def value(self) -> Floats:
        return self.drawn(self.grid.cells.value)


def arrange(grid: Grid, display: Display) -> Arrangement:
    """Order the rows and columns; leave out those in which nothing is in focus."""
    shown = focus(grid, display)
    ends = side("source", grid, display, shown), side("destination", grid, display, shown)
    rows, columns = ends[::-1] if display.transpose else ends
    return Arrangement(grid, display, rows, columns)


def focus(grid: Grid, display: Display) -> Flags:
    """Say which cells are in focus: all of them if the display has none."""
    value, state = grid.cells.value, grid.cells.state
    matches = np.full(state.shape, True)
    if display.only:
        matches &= np.isin(state, [STATES.index(name) for name in display.only])
    # What has no value is neither above nor below.
    if display.above is not None:
        matches &= value >= display.above
    if display.below is not None:
        matches &= value <= display.below
    return matches


def side(end: str, grid: Grid, display: Display, shown: Flags) -> Side:
    groups, average, grouping = grid.sources, grid.averages.row, grid.query.rows
    if end == "destination":
        groups, average, grouping = grid.destinations, grid.averages.column, grid.query.columns
    order = ordered(groups, average, display)
    if display.focuses:
        has_any = np.asarray(shown.any(axis=1 if end == "source" else 0))
        order = order[has_any[order]]
    chosen = tuple(groups[index] for index in order.tolist())
    # A line before each cloud or tier, unless there is one alone, or each is a group.
    gaps: dict[int, str] = {}
    if display.order in SEPARATED:
        titles = [key_of(group, display.order)[1] for group in chosen]
        firsts = [at for at, title in enumerate(titles) if at == 0 or titles[at - 1] != title]
        if len(firsts) not in (1, len(chosen)):
            gaps = {at + before: titles[at] for before, at in enumerate(firsts)}
    length = len(chosen) + len(gaps)
    return Side(
        end=end,
        grouping=grouping,
        groups=chosen,
        names=[group.name for group in chosen],
        order=order,
        at=np.setdiff1d(np.arange(length), list(gaps)),
        average=average[order],
        gaps=gaps,
        length=length,
    )


def ordered(groups: Sequence[AxisGroup], average: Floats, display: Display) -> Integers:
    """Return the places of the groups in order; they come in the order of their names."""
    if display.order in SEPARATED:
        keys = [key_of(group, display.order) for group in groups]
        return np.array(sorted(range(len(groups)), key=keys.__getitem__), dtype=np.int64)
    if display.order == "average":
        return np.argsort(-average, kind="stable")
    if display.order == "-average":
        return np.argsort(average, kind="stable")
    return np.arange(len(groups))


def key_of(group: AxisGroup, order: str) -> tuple[str, str]:
    """Return what its cloud or tier sorts by, and how it is called; several come last."""
    if order == "tier":
        several = (LAST, "several tiers")
        return several if group.tier is None else (str(group.tier), f"Tier {group.tier}")
    if group.cloud is None:
        return LAST, "several clouds"
    return (group.cloud.casefold(), group.cloud) if group.cloud else (LAST, "no cloud")
