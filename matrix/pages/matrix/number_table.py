"""The matrix as HTML tables: what is left of the picture without a script."""

from __future__ import annotations

from dataclasses import dataclass

from matrix.plots.arrangement import LEFT_OUT_WORDS, Arrangement
from matrix.plots.numbers import number
from matrix.plots.sides import Side
from matrix.statistics.arrays import Integers
from matrix.statistics.states import MEASURED, STATE_WORDS, STATES
from sonar.units import DASH

# Larger tables are of no use to a reader and cost the browser seconds.
LARGEST = 30
CORNERS = {
    "source": r"from \ to",
    "destination": r"to \ from",
    "own": "partner",
    "partner": "partner",
}
# The name and the words of each state that a cell is drawn in.
WORDS = [*((state, STATE_WORDS[state]) for state in STATES), ("left_out", LEFT_OUT_WORDS)]


@dataclass(frozen=True)
class NumberRow:
    name: str
    # Text, state, and the state in words, of each cell.
    cells: list[tuple[str, str, str]]
    average: str


@dataclass(frozen=True)
class Table:
    """The drawn cells; ``corner`` says what rows and columns are."""

    corner: str
    columns: list[str]
    rows: list[NumberRow]
    averages: list[str]
    average: str


@dataclass(frozen=True)
class Summary:
    """Of a matrix that is too large for a table: its rows and columns alone.

    Each with its name, how many measured cells it has, and their average.
    """

    rows: list[tuple[str, int, str]]
    columns: list[tuple[str, int, str]]
    average: str


def table_for(arrangement: Arrangement) -> Table | None:
    """Return the table, or nothing for a matrix that is empty or too large for one."""
    if not arrangement.rows.groups or max(arrangement.state.shape) > LARGEST:
        return None
    grid, rows, columns = arrangement.grid, arrangement.rows, arrangement.columns
    stat = grid.query.stat
    lines = zip(
        headings(rows),
        arrangement.value.tolist(),
        arrangement.state.tolist(),
        rows.average.tolist(),
        strict=True,
    )
    return Table(
        corner=CORNERS[rows.end],
        columns=headings(columns),
        rows=[
            NumberRow(
                name=name,
                cells=[
                    (text(value, stat), *WORDS[state])
                    for value, state in zip(values, states, strict=True)
                ],
                average=text(average, stat),
            )
            for name, values, states, average in lines
        ],
        averages=[text(value, stat) for value in columns.average.tolist()],
        average=text(grid.averages.grand, stat),
    )


def summary_for(arrangement: Arrangement) -> Summary | None:
    """Return what stands for the table of a matrix that is too large for one."""
    if not arrangement.rows.groups or max(arrangement.state.shape) <= LARGEST:
        return None
    stat = arrangement.grid.query.stat
    measured = arrangement.state == MEASURED

    def lines(side: Side, counts: Integers) -> list[tuple[str, int, str]]:
        averages = [text(value, stat) for value in side.average.tolist()]
        return list(zip(headings(side), counts.tolist(), averages, strict=True))

    return Summary(
        rows=lines(arrangement.rows, measured.sum(axis=1)),
        columns=lines(arrangement.columns, measured.sum(axis=0)),
        average=text(arrangement.grid.averages.grand, stat),
    )


def headings(side: Side) -> list[str]:
    """Return the names of rows or columns, those of strips with their direction."""
    if not side.directions:
        return side.names
    return [f"{to} {name}" for to, name in zip(side.directions, side.names, strict=True)]


def text(value: float, stat: str) -> str:
    return number(value, stat) or DASH
