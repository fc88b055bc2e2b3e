"""All links of a few endpoints as two strips: from them, and to them. In the grid they are a cross
of whole rows and columns, with nothing around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from matrix.answers.matrix.grid_cells import Grid
from matrix.statistics.arrays import Flags, Integers
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.cells import CellArrays
from matrix.statistics.cells.states import NOT_APPLICABLE
from matrix.statistics.compare.two_samples import Ratios
from matrix.statistics.samples.reduce import averages, geometric_averages

Kind = TypeVar("Kind", bound=np.generic)


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

    def within(self, columns: Flags) -> Cross:
        return Cross(self.sources[:, columns], self.destinations[:, columns], self.sending)


def strips_of(grid: Grid) -> Strips | None:
    """Return the strips of a grid in which filters have left a cross.

    One row and column are always two strips; several are while these are at most half as large
    as the grid, for the links between them are in both.
    """
    if grid.left_out is None or grid.query.rows != grid.query.columns:
        return None
    own = own_names(grid, grid.left_out)
    groups = {group.name: group for group in (*grid.sources, *grid.destinations)}
    partners = sorted(groups, key=str.casefold)
    sending, receiving = own_in(grid.sources, own), own_in(grid.destinations, own)
    cells = (len(sending) + len(receiving)) * len(partners)
    if not own or (len(own) > 1 and 2 * cells > grid.left_out.size):
        return None
    cross = cross_of(grid, sending, receiving, partners)
    state = np.where(cross.missing, NOT_APPLICABLE, cross.gather(grid.cells.state))
    is_partner = np.asarray((state != NOT_APPLICABLE).any(axis=0))
    rows = [grid.sources[at] for at in sending] + [grid.destinations[at] for at in receiving]
    columns = [groups[partners[at]] for at in np.flatnonzero(is_partner)]
    return filled(grid, cross.within(is_partner), tuple(rows), tuple(columns))


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


def own_in(groups: Sequence[AxisGroup], own: set[str]) -> list[int]:
    return [at for at, group in enumerate(groups) if group.name in own]


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
    named = {
        field.name: getattr(grid.cells, field.name) for field in dataclasses.fields(CellArrays)
    }
    extras = {name: cross.gather(values) for name, values in named.pop("extras").items()}
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
            "cells": CellArrays(**arrays, extras=extras),
            "averages": means,
            "left_out": cross.missing if of_one_end and cross.missing.any() else None,
            "comparison": ratios,
        },
        sending=cross.sending,
        changed_cells=cross.gather(grid.changed),
    )
