"""What a grid compares with the 30 days before it, link by link and day by day."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrix.answers.comparison import sides
from matrix.answers.comparison.sides import OtherSide
from matrix.answers.grid import Grid
from matrix.query.comparison import MONTH
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.causes.cell_noise import FEWEST_WINDOWS
from matrix.statistics.causes.daily_baseline import DailyBaseline
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.cells import within_sites
from matrix.statistics.samples.pooling import Pooling
from matrix.store import registry, runs
from matrix.store.data_version import snapshot


@dataclass(frozen=True)
class OwnHistory:
    """The days of each cell, and which cells have enough of them to be ``judged`` by.

    ``unjudged`` are the others that have a rate; both have shape (rows, columns).
    """

    days: DailyBaseline
    judged: Flags
    unjudged: Flags

    @property
    def spread(self) -> tuple[Floats, Floats]:
        """Return how far window and days scatter, up to a factor: by the root of their tests."""
        window, days = (np.maximum(count, 1) for count in (self.days.ok, self.days.other_ok))
        return 1 / np.sqrt(window), 1 / np.sqrt(days)


def has_history(grid: Grid) -> bool:
    """Say whether a grid compares links with their own 30 days, and differs in nothing else."""
    compare = grid.query.compare
    return compare is not None and compare.is_of_time and compare.window == MONTH


def read(grid: Grid, other: OtherSide) -> OwnHistory:
    """Read the window of a grid and the days before it, as of one moment."""
    query = grid.query
    with snapshot():
        results = runs.read(query.size, grid.window, query.filters)
        before = sides.read(other.query)
    has_rate = np.isfinite(grid.cells.mean) & ~within_sites(grid.sources, grid.destinations)
    days = DailyBaseline.of(results, before, pooling(grid, has_rate))
    enough = np.isfinite(days.days).sum(axis=0) >= FEWEST_WINDOWS
    judged = enough & np.isfinite(days.window)
    return OwnHistory(days, judged, has_rate & ~judged)


def pooling(grid: Grid, cells: Flags) -> Pooling:
    """Return which links make these cells of a grid."""
    query, links = grid.query, LinkIndex(registry.read_places(grid.version))
    rows = sides.groups_of(grid.sources, links, query.rows)
    columns = sides.groups_of(grid.destinations, links, query.columns)
    shape = len(grid.sources), len(grid.destinations)
    # A place that is not shown has the number -1, which is that of a cell behind the last.
    shown = np.pad(cells, (0, 1))[rows[:, None], columns]
    shown &= links.matching(query.filters).reshape(links.shape)
    return Pooling(links.numbering, rows, columns, shown, shape)
