"""From a grid to what is drawn of it: rows and columns in order, and what is in focus."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from matrix.answers.matrix.grid_cells import Grid
from matrix.plots.display import Display
from matrix.plots.strips import Strips, strips_of
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.states import STATES
from matrix.store.data_version import DataVersion

Kind = TypeVar("Kind", bound=np.generic)
# Orders in which clouds or tiers stand apart.
SEPARATED = ("cloud", "tier")
# Sorts behind every name and every tier.
LAST = "\U0010ffff"
# What the rows and columns of strips are, by the ends of the grid.
STRIP_ENDS = {"source": "own", "destination": "partner"}
# Stands behind STATES for cells that the filters leave out, which is no state of a link.
LEFT_OUT = len(STATES)
LEFT_OUT_WORDS = "left out by the filters"


@dataclass(frozen=True)
class Side:
    """The rows or the columns as they are drawn, all lines from 0 to ``length``.

    ``end`` is `source` or `destination`, or, of strips, `own` or `partner`. ``order`` has the
    places in the grid of ``groups``, ``names`` what these are called, ``at`` their lines,
    ``average`` their means. ``gaps`` are the other lines, which stay empty; ``titles`` name the
    cloud or tier that begins with a group, by its number. Of the own side of strips the first
    ``sending`` are sources.
    """

    end: str
    grouping: str
    groups: tuple[AxisGroup, ...]
    names: list[str]
    order: Integers
    at: Integers
    average: Floats
    gaps: list[int]
    titles: dict[int, str]
    length: int
    sending: int | None = None

    @property
    def directions(self) -> list[str]:
        """Return `from` or `to` for each line of the own side of strips, nothing for others."""
        if self.sending is None:
            return []
        return ["from" if at < self.sending else "to" for at in range(len(self.names))]

    def spread(self, values: NDArray[Kind], blank: float) -> NDArray[Kind]:
        """Put an array by group at its lines, with something blank in the gaps."""
        wide = np.full((self.length, *values.shape[1:]), blank, dtype=values.dtype)
        wide[self.at] = values
        return wide


def side(end: str, grid: Grid, display: Display, shown: Flags) -> Side:
    """Lay out the sources or the destinations; leave out those in which nothing is shown."""
    groups, average, grouping = grid.sources, grid.averages.row, grid.query.rows
    if end == "destination":
        groups, average, grouping = grid.destinations, grid.averages.column, grid.query.columns
    order = ordered(groups, average, display)
    if display.focuses:
        has_any = np.asarray(shown.any(axis=1 if end == "source" else 0))
        order = order[has_any[order]]
    sending = None
    if isinstance(grid, Strips):
        end = STRIP_ENDS[end]
    if isinstance(grid, Strips) and end == "own":
        order = np.concatenate([order[order < grid.sending], order[order >= grid.sending]])
        sending = int(np.sum(order < grid.sending))
    chosen = tuple(groups[index] for index in order.tolist())
    titles = titles_of(chosen, display) if sending is None else {}
    starts = [*titles] if sending is None else [0, sending]
    gaps = [at + before for before, at in enumerate(apart(starts, len(chosen)))]
    length = len(chosen) + len(gaps)
    return Side(
        end=end,
        grouping=grouping,
        groups=chosen,
        names=[group.name for group in chosen],
        order=order,
        at=np.setdiff1d(np.arange(length), gaps),
        average=average[order],
        gaps=gaps,
        titles=titles,
        length=length,
        sending=sending,
    )


def titles_of(groups: Sequence[AxisGroup], display: Display) -> dict[int, str]:
    """Name each cloud or tier where it begins, unless there is one alone, or each is a group."""
    if display.order not in SEPARATED:
        return {}
    titles = [key_of(group, display.order)[1] for group in groups]
    firsts = [at for at, title in enumerate(titles) if at == 0 or titles[at - 1] != title]
    return {at: titles[at] for at in firsts} if len(firsts) not in (1, len(groups)) else {}


def apart(starts: Sequence[int], count: int) -> list[int]:
    """Say before which lines a gap stands: where parts meet, unless both are a line alone."""
    bounds = [start for start in starts if 0 < start < count]
    ends = zip([0, *bounds], bounds, [*bounds[1:], count], strict=False)
    return [start for before, start, end in ends if start - before > 1 or end - start > 1]


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
    """Order the rows and columns in focus; all links of a few are drawn as two strips."""
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
