"""The rows or the columns of a picture: in which order, with which gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from matrix.answers.grid import Grid
from matrix.plots.display import Display
from matrix.plots.strips import Strips
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.axes import AxisGroup

Kind = TypeVar("Kind", bound=np.generic)
# Orders in which clouds or tiers stand apart.
SEPARATED = ("cloud", "tier")
# Sorts behind every name and every tier.
LAST = "\U0010ffff"
# What the rows and columns of strips are, by the ends of the grid.
STRIP_ENDS = {"source": "own", "destination": "partner"}


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
