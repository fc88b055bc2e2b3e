"""What changed between the two sides of a comparison, beyond what chance makes of so many cells."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrix.answers.matrix.grid import Grid
from matrix.answers.words.ratios import PairRatio
from matrix.statistics.arrays import Flags, Integers
from matrix.statistics.compare.two_samples import CHANGE_KINDS, CHANGES, Ratios
from sonar.notation.units import three_digits


@dataclass(frozen=True)
class Difference:
    """A cell that differs from the other side: `slower` or `faster`, and its numbers.

    ``row`` and ``column`` are its place in the grid; ``sentence`` can be quoted by itself.
    """

    row: int
    column: int
    source: str
    destination: str
    kind: str
    pair: PairRatio
    sentence: str


def kinds(grid: Grid) -> NDArray[np.uint8]:
    """Return of each cell the number of its change in CHANGE_KINDS, 0 for none beyond chance."""
    result = np.zeros(grid.cells.state.shape, dtype=np.uint8)
    for kind in CHANGES:
        result[grid.of_look(kind)] = CHANGE_KINDS.index(kind)
    return result


def counts(grid: Grid) -> dict[str, int]:
    """Count the cells that are compared, that have too few results to be, and that changed."""
    flags = {
        "compared": ~np.isnan(grid.cells.value),
        "too_few": grid.too_few,
        **{kind: grid.of_look(kind) for kind in CHANGES},
    }
    return {name: int(np.count_nonzero(of_cells)) for name, of_cells in flags.items()}


def differences(grid: Grid, most: int | None = None, *, perhaps: bool = False) -> list[Difference]:
    """Return the cells that changed, most certain first, at most so many.

    Of all of them, at most one in thirty is chance, in the mean over many such lists
    (Benjamini and Hochberg). With ``perhaps`` those instead that may have, and are not certain.
    """
    if grid.comparison is None:
        return []
    places = most_certain(grid.comparison, grid.perhaps if perhaps else grid.changed)
    return [difference(grid, row, column) for row, column in places[:most]]


def most_certain(ratios: Ratios, where: Flags) -> Integers:
    """Return the rows and columns of cells, shape (cells, 2), the most certain first."""
    rows, columns = np.nonzero(where)
    p, ratio = ratios.p[rows, columns], ratios.ratio[rows, columns]
    with np.errstate(divide="ignore"):  # a median of 0
        order = np.lexsort((-np.abs(np.log(ratio)), p))
    return np.asarray(np.stack([rows, columns], 1)[order])


def difference(grid: Grid, row: int, column: int) -> Difference:
    """Say in words how a cell differs from the other side."""
    if grid.comparison is None or grid.other is None:
        raise ValueError("the grid is compared with nothing")
    pair = PairRatio.at(grid.comparison, (row, column))
    source, destination = grid.sources[row].name, grid.destinations[column].name
    return Difference(
        row=int(row),
        column=int(column),
        source=source,
        destination=destination,
        kind="slower" if pair.ratio < 1 else "faster",
        pair=pair,
        sentence=(
            f"{grid.query.size} files from {source} to {destination}: "
            f"{three_digits(pair.value)} MB/s, {grid.query.window_words()}; "
            f"{three_digits(pair.other)} MB/s, {grid.other.words}: {pair.words}"
        ),
    )
