"""The matrix as rows of an HTML table: what is left of the picture without a script."""

from __future__ import annotations

from dataclasses import dataclass

from matrix.cells import STATES
from matrix.grid import Grid
from matrix.hover import STATE_WORDS
from matrix.plots import number
from sonar.units import DASH

# Larger tables are of no use to a reader and cost the browser seconds; CSV has them all.
LARGEST = 30


@dataclass(frozen=True)
class Row:
    name: str
    # Text, state, and the state in words, of each cell.
    cells: list[tuple[str, str, str]]
    average: str


@dataclass(frozen=True)
class Table:
    destinations: list[str]
    rows: list[Row]
    averages: list[str]
    average: str


def table_for(grid: Grid) -> Table | None:
    """Return the table, or nothing for a matrix that is empty or too large for one."""
    if not grid.sources or max(grid.cells.value.shape) > LARGEST:
        return None
    stat = grid.query.stat
    return Table(
        destinations=[group.name for group in grid.destinations],
        rows=[row(grid, index) for index in range(len(grid.sources))],
        averages=[text(value, stat) for value in grid.averages.column.tolist()],
        average=text(grid.averages.grand, stat),
    )


def row(grid: Grid, index: int) -> Row:
    values = grid.cells.value[index].tolist()
    states = [STATES[state] for state in grid.cells.state[index].tolist()]
    return Row(
        name=grid.sources[index].name,
        cells=[
            (text(value, grid.query.stat), state, STATE_WORDS[state])
            for value, state in zip(values, states, strict=True)
        ],
        average=text(float(grid.averages.row[index]), grid.query.stat),
    )


def text(value: float, stat: str) -> str:
    return number(value, stat) or DASH
