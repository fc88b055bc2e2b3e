"""The matrix as HTML tables: what is left of the picture without a script."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrix.answers.ratio_words import PairRatio
from matrix.plots.arrangement import LEFT_OUT_WORDS, Arrangement, Side
from matrix.plots.marks import number
from matrix.query.catalogue import Statistic
from matrix.statistics.arrays import Integers
from matrix.statistics.cells.states import MEASURED, STALE, STATE_WORDS, STATES
from matrix.statistics.compare.two_samples import Ratios
from sonar.notation.units import DASH

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
    statistic = grid.query.statistic
    lines = zip(
        headings(rows),
        arrangement.value.tolist(),
        looks_of(arrangement),
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
                    (text(value, statistic), *look)
                    for value, look in zip(values, looks, strict=True)
                ],
                average=text(average, statistic),
            )
            for name, values, looks, average in lines
        ],
        averages=[text(value, statistic) for value in columns.average.tolist()],
        average=text(grid.averages.grand, statistic),
    )


def looks_of(arrangement: Arrangement) -> list[list[tuple[str, str]]]:
    """Return the name and the words of how each drawn cell is; of a comparison, of both sides."""
    looks = [[WORDS[state] for state in states] for states in arrangement.state.tolist()]
    if arrangement.grid.comparison is None:
        return looks
    ratios = Ratios(*map(arrangement.drawn, vars(arrangement.grid.comparison).values()))
    for row, column in np.argwhere(np.isin(arrangement.state, (MEASURED, STALE))).tolist():
        name = "too_few" if arrangement.too_few[row, column] else looks[row][column][0]
        looks[row][column] = name, PairRatio.at(ratios, (row, column)).sides_words
    return looks


def summary_for(arrangement: Arrangement) -> Summary | None:
    """Return what stands for the table of a matrix that is too large for one."""
    if not arrangement.rows.groups or max(arrangement.state.shape) <= LARGEST:
        return None
    statistic = arrangement.grid.query.statistic
    measured = arrangement.state == MEASURED

    def lines(side: Side, counts: Integers) -> list[tuple[str, int, str]]:
        averages = [text(value, statistic) for value in side.average.tolist()]
        return list(zip(headings(side), counts.tolist(), averages, strict=True))

    return Summary(
        rows=lines(arrangement.rows, measured.sum(axis=1)),
        columns=lines(arrangement.columns, measured.sum(axis=0)),
        average=text(arrangement.grid.averages.grand, statistic),
    )


def headings(side: Side) -> list[str]:
    """Return the names of rows or columns, those of strips with their direction."""
    if not side.directions:
        return side.names
    return [f"{to} {name}" for to, name in zip(side.directions, side.names, strict=True)]


def text(value: float, statistic: Statistic) -> str:
    return number(value, statistic) or DASH
