"""Which cells of a matrix, a table or a page mix results that were made in several ways."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from matrix.answers.comparison.sides import groups_of
from matrix.answers.link.samples import Results
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.table.link_table import LinkTable
from matrix.query.filters import on_links
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Integers
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.cells import Mixing
from matrix.store import registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion, snapshot
from matrix.store.profiles import ProfileChoices
from sonar.notation.windows import Window

# What fewer cells mix is said on their own page.
MANY = 0.2


@dataclass(frozen=True)
class MixedWays:
    """How many of the ``cells`` with results mix ways; the values that they mix by attribute."""

    cells: int
    mixed: int
    values: dict[str, list[str]]

    @property
    def nbytes(self) -> int:
        return 100 * (1 + sum(map(len, self.values.values())))

    @property
    def are_many(self) -> bool:
        """Say whether it is worth a word where all of these cells are shown."""
        return bool(self.mixed) and self.mixed >= MANY * self.cells

    @classmethod
    def of(cls, choices: ProfileChoices, mixing: Mixing) -> MixedWays:
        mixed = {name: flags for name, flags in mixing.mixed().items() if flags.any()}
        values = {name: choices.values(name) for name in mixed}
        return cls(
            int(np.count_nonzero(mixing.filled())),
            int(np.count_nonzero(np.logical_or.reduce([*mixed.values()]))) if mixed else 0,
            {
                name: [values[name][code - 1] for code in mixing.values(name, flags)]
                for name, flags in mixed.items()
            },
        )


NOTHING = MixedWays(0, 0, {})


def mixed_in_grid(grid: Grid, choices: ProfileChoices) -> MixedWays:
    """Look at the cells of a grid that was built with its profiles.

    Where these differ at all, the profiles of all results of the window are read, once for its
    version: that takes some 20 ms for a million results.
    """
    among = choices.among(grid.profiles)
    if not among.differing:
        return NOTHING

    def look() -> MixedWays:
        query = grid.query
        links = registry.read_links(grid.version)
        rows = groups_of(grid.sources, links, query.rows)
        columns = groups_of(grid.destinations, links, query.columns)
        cells = rows[:, None] * len(grid.destinations) + columns
        allowed = links.matching(query.filters).reshape(links.shape)
        shown = allowed & (rows >= 0)[:, None] & (columns >= 0)
        mixing = Mixing(len(grid.sources) * len(grid.destinations), among.codes())
        gather(mixing, query, grid.window, links, np.where(shown, cells, -1))
        return MixedWays.of(among, mixing)

    mixture: MixedWays = ANSWERS.get(("mixed", grid.version, grid.query), look)
    return mixture


def mixed_in_table(
    table: LinkTable, query: MatrixQuery, version: DataVersion | None, choices: ProfileChoices
) -> MixedWays:
    """Look at the links of a table, each size class by itself, as mixed_in_grid() does."""
    among = choices.among(table.links.profiles)
    if not among.differing:
        return NOTHING

    def look() -> MixedWays:
        links, count = LinkIndex(table.places), len(table)
        mixing = Mixing(count * len(table.sizes), among.codes())
        cells = np.full(links.shape, -1)
        with snapshot():
            for at, size in enumerate(table.sizes):
                cells[table.source, table.destination] = at * count + np.arange(count)
                gather(mixing, query.replace(size=size), table.window, links, cells)
        return MixedWays.of(among, mixing)

    if version is None:
        return look()
    key = ("mixed", version, tuple(on_links(query.filters)))
    mixture: MixedWays = ANSWERS.get(key, look)
    return mixture


def gather(
    mixing: Mixing, query: MatrixQuery, window: Window, links: LinkIndex, cells: Integers
) -> None:
    """Add the results of a size class; ``cells`` are those of the links, -1 for none."""
    of_numbers = np.pad(cells, (0, 1), constant_values=-1).ravel()
    for run in runs.read(query.size, window, query.filters, profiles=True):
        if run.profiles is not None:
            mixing.add(of_numbers[links.numbering.numbers(run.keys)], run.profiles)


def mixed_in_link(classes: Iterable[Results], choices: ProfileChoices) -> MixedWays:
    of_classes = [results.taken(results.ok) for results in classes]
    among = choices.among(np.concatenate([results.profiles for results in of_classes]).tolist())
    if not among.differing:
        return NOTHING
    mixing = Mixing(len(of_classes), among.codes())
    for at, results in enumerate(of_classes):
        mixing.add(np.full(len(results), at), results.profiles)
    return MixedWays.of(among, mixing)
