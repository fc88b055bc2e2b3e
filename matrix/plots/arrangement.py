"""From a grid to what is drawn of it: rows and columns in order, and what is in focus.

All links of a few endpoints are two strips: from them, and to them. In the grid they are a cross
of whole rows and columns, with nothing around it.
"""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from matrix.answers.matrix.grid_cells import Grid
from matrix.plots.display import Display
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.cells import CellArrays
from matrix.statistics.cells.states import NOT_APPLICABLE, STATES
from matrix.statistics.compare.two_samples import Ratios
from matrix.statistics.samples.reduce import averages, geometric_averages
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
LEFT_OUT_WORDS = "excluded by the filters"


@dataclass(frozen=True)
class Strips(Grid):
    """A grid whose rows are those whose links are shown, and whose columns are their partners.

    In the first ``sending`` rows links lead to the partners, in the others they come from these.
    A link between two of the rows is in both strips. The mean of a column is of both directions.
    What has ``changed`` is what has in the grid: chance is told by all of its cells, each once.
    """

    sending: int = 0
    changed_cells: Flags | None = None

    @cached_property
    def changed(self) -> Flags:
        return super().changed if self.changed_cells is None else self.changed_cells


@dataclass(frozen=True)
class Cross:
    """Where in a grid the cells of its strips are: arrays of the shape of the strips.

    ``sources`` and ``destinations`` are places in the grid, -1 where it has none; links go out
    in the first ``sending`` rows.
    """

    sources: Integers
    destinations: Integers
    sending: int

    @property
    def missing(self) -> Flags:
        return np.asarray((self.sources < 0) | (self.destinations < 0))

    def gather(self, values: NDArray[Kind]) -> NDArray[Kind]:
        """Return an array of the grid's cells, with nothing where it has none."""
        cells = values[self.sources, self.destinations]
        cells[self.missing] = np.nan if np.issubdtype(values.dtype, np.floating) else 0
        return cells


def strips_of(grid: Grid) -> Strips | None:
    """Return the strips of a grid in which filters have left a cross.

    One row and column are always two strips; several are while these are at most half as large
    as the grid, for the links between them are in both.
    """
    if grid.left_out is None or grid.query.rows != grid.query.columns:
        return None
    own = own_names(grid, grid.left_out)
    by_name = {group.name: group for group in (*grid.sources, *grid.destinations)}
    partners = sorted(by_name, key=str.casefold)
    sending, receiving = (
        [at for at, group in enumerate(groups) if group.name in own]
        for groups in (grid.sources, grid.destinations)
    )
    cells = (len(sending) + len(receiving)) * len(partners)
    if not own or (len(own) > 1 and 2 * cells > grid.left_out.size):
        return None
    cross = cross_of(grid, sending, receiving, partners)
    state = np.where(cross.missing, NOT_APPLICABLE, cross.gather(grid.cells.state))
    is_partner = np.asarray((state != NOT_APPLICABLE).any(axis=0))
    rows = [grid.sources[at] for at in sending] + [grid.destinations[at] for at in receiving]
    columns = [by_name[partners[at]] for at in np.flatnonzero(is_partner)]
    shown = Cross(cross.sources[:, is_partner], cross.destinations[:, is_partner], cross.sending)
    return filled(grid, shown, tuple(rows), tuple(columns))


def own_names(grid: Grid, left_out: Flags) -> set[str]:
    """Return whose rows and columns are whole, if nothing else is shown, but from one to itself."""
    sources, destinations = (
        np.array([group.name for group in groups]) for groups in (grid.sources, grid.destinations)
    )
    _, *itself = np.intersect1d(sources, destinations, return_indices=True)
    hidden, shown = left_out.copy(), grid.cells.state != NOT_APPLICABLE
    hidden[tuple(itself)] = False
    cut = np.union1d(sources[hidden.any(axis=1)], destinations[hidden.any(axis=0)])
    if shown[np.ix_(np.isin(sources, cut), np.isin(destinations, cut))].any():
        return set()
    return set(np.union1d(sources, destinations).tolist()) - set(cut.tolist())


def cross_of(
    grid: Grid, sending: Sequence[int], receiving: Sequence[int], partners: Sequence[str]
) -> Cross:
    """Look up each cell of the strips, those to all partners above those from all."""
    sources, destinations = (
        np.array([places.get(name, -1) for name in partners], dtype=np.int64)
        for groups in (grid.sources, grid.destinations)
        for places in [{group.name: at for at, group in enumerate(groups)}]
    )
    own_above, own_below = (
        np.repeat(np.array(places, dtype=np.int64)[:, None], len(partners), axis=1)
        for places in (sending, receiving)
    )
    return Cross(
        np.vstack([own_above, np.broadcast_to(sources, own_below.shape)]),
        np.vstack([np.broadcast_to(destinations, own_above.shape), own_below]),
        len(sending),
    )


def filled(
    grid: Grid, cross: Cross, rows: tuple[AxisGroup, ...], columns: tuple[AxisGroup, ...]
) -> Strips:
    """Make strips of the cells of a grid; the mean of all stays that of the grid."""
    named = dict(vars(grid.cells))
    extras = {name: cross.gather(values) for name, values in named.pop("extras").items()}
    targets = named.pop("targets")
    arrays = {name: cross.gather(values) for name, values in named.items()}
    arrays["state"][cross.missing] = NOT_APPLICABLE
    facts = {field.name: getattr(grid, field.name) for field in dataclasses.fields(Grid)}
    ratios = grid.comparison and Ratios(*map(cross.gather, vars(grid.comparison).values()))
    mean_of = geometric_averages if ratios else averages
    # Filters on one end leave cells out; others are missing because nothing is there.
    of_one_end = any(option.end for option in grid.query.filters)
    means = dataclasses.replace(mean_of(arrays["value"]), grand=grid.averages.grand)
    return Strips(
        **facts
        | {
            "sources": rows,
            "destinations": columns,
            "cells": CellArrays(
                **arrays,
                extras=extras,
                targets=targets and targets.each(cross.gather),
            ),
            "averages": means,
            "left_out": cross.missing if of_one_end and cross.missing.any() else None,
            "comparison": ratios,
        },
        sending=cross.sending,
        changed_cells=cross.gather(grid.changed),
    )


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
    def is_pooled(self) -> bool:
        return (self.grid.query.rows, self.grid.query.columns) != ("endpoint", "endpoint")

    @property
    def version(self) -> DataVersion:
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
        # A fourth of the time that both at once take.
        return values.take(self.rows.order, 0).take(self.columns.order, 1)

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
