"""A Grid as a table of sources by destinations with its averages: CSV, Markdown and LaTeX."""

from __future__ import annotations

import numpy as np
import pandas as pd

from matrix.answers.grid import Grid
from matrix.api.documents import DOCUMENTS
from matrix.api.matrix_formats import names
from matrix.plots.marks import number
from matrix.query.catalogue import Statistic
from matrix.statistics.arrays import Floats, rounded
from matrix.statistics.cells.states import MEASURED, NOT_APPLICABLE, STATES
from sonar.notation.units import DASH

CORNER = r"from \ to"
MEAN = "mean"


def as_csv(grid: Grid) -> bytes:
    """Write a row for each source; the last row and column have means of measured cells."""
    frame = pd.DataFrame(
        rounded(with_averages(grid)),
        index=[*names(grid.sources), MEAN],
        columns=[*names(grid.destinations), MEAN],
    )
    corner = f"{CORNER} ({grid.query.statistic.name}, {grid.unit})"
    return str(frame.to_csv(index_label=corner, lineterminator="\n")).encode()


def with_averages(grid: Grid) -> Floats:
    averages = grid.averages
    rows = np.column_stack([grid.cells.value, averages.row])
    return np.vstack([rows, np.append(averages.column, averages.grand)])


def as_document(grid: Grid, form: str) -> bytes:
    """Write the numbers as the page shows them, in a form, `markdown` or `latex`."""
    statistic = grid.query.statistic
    last_column = grid.averages.row.tolist()
    cells = zip(grid.cells.value.tolist(), grid.cells.state.tolist(), strict=True)
    rows = [
        [
            group.name,
            *(cell_text(*cell, statistic) for cell in zip(values, states, strict=True)),
            text(mean, statistic),
        ]
        for group, (values, states), mean in zip(grid.sources, cells, last_column, strict=True)
    ]
    means = [*grid.averages.column.tolist(), grid.averages.grand]
    heads = [CORNER, *(group.name for group in grid.destinations), MEAN]
    last = [MEAN, *(text(value, statistic) for value in means)]
    return DOCUMENTS[form].whole(caption(grid), heads, rows, last).encode()


def caption(grid: Grid) -> str:
    """Say what the numbers are, of when, and in which unit."""
    unit = grid.query.statistic.unit.behind
    bounds = grid.query.replace(window="", start=grid.window.start, end=grid.window.end)
    subject = f"{grid.query.describe()}, in {unit}" if unit else grid.query.describe()
    sentences = [subject, f"Window: {bounds.window_words()}"]
    simulated = ["Simulated endpoints"] if grid.simulated else []
    geometric = ", and geometric" if grid.query.statistic.against else ""
    means = f"Means are of measured cells{geometric}"
    return ". ".join([*sentences, means, *simulated]) + "."


def cell_text(value: float, state: int, statistic: Statistic) -> str:
    """Write a cell; what is not simply measured says so in a word."""
    if state == NOT_APPLICABLE:
        return ""
    written = text(value, statistic)
    return written if state == MEASURED else f"{written} {STATES[state]}"


def text(value: float, statistic: Statistic) -> str:
    return number(value, statistic) or DASH
