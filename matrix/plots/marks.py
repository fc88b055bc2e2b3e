"""The marks of states and levels, so that these differ without colour."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrix.answers.grid import CHANGES
from matrix.plots.arrangement import Arrangement
from matrix.plots.numbers import room_for_numbers
from matrix.query.catalogue import VS_USUAL
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.standing import FASTER, SLOWER
from matrix.statistics.cells.states import (
    DOWN,
    FAILED,
    FAILING,
    MEASURED,
    STALE,
    STATES,
    UNTESTED,
)

Json = dict[str, Any]
# Symbol, colour, and part of the full size.
Mark = tuple[str, str, float]

# Above this a mark in every cell is a blur that costs seconds to draw.
MOST_MARKS = 3000
MARKS = {
    FAILED: ("x-thin-open", "var(--failed-mark)", 0.9),
    STALE: ("hourglass-open", "var(--ink)", 0.6),
    UNTESTED: ("circle", "var(--untested-mark)", 0.45),
    DOWN: ("line-ew-open", "var(--down-mark)", 0.9),
}
# As a hatched line, of a comparison.
TOO_FEW_MARK = ("line-ne-open", "var(--muted)", 1.2)
# Where a mark stands beside a number: so many cells to the right and down.
BESIDE = {STALE: (-0.38, -0.3), DOWN: (0.0, 0.34)}
# What has a place and a size of its own in a cell, which static/js/matrix/outlines.js works out:
# a frame, a corner, an arrow up in that corner, a square in the one across. Fill and line.
OUTLINES = {
    "failing": (None, "var(--failing)"),
    "slower": ("var(--slower-mark)", "#14181d"),
    "faster": ("var(--faster-mark)", "#14181d"),
    "partly": ("var(--failing)", "#ffffff"),
}
# Where colours are factors, a frame says that the change is certain: colour says the rest.
FRAME = (None, "var(--ink)")


def marks(arrangement: Arrangement) -> list[Json]:
    """Draw a mark in each cell whose state has one, so that states differ without colour."""
    traces = []
    for state, mark in MARKS.items():
        where = arrangement.in_focus & (arrangement.state == state) & ~arrangement.too_few
        if 0 < where.sum() <= MOST_MARKS:
            traces.append(marks_of(STATES[state], mark, where, arrangement, BESIDE.get(state)))
    too_few = arrangement.in_focus & arrangement.too_few
    if 0 < too_few.sum() <= MOST_MARKS:
        traces.append(marks_of("too few", TOO_FEW_MARK, too_few, arrangement))
    for name, where in standing(arrangement).items():
        if 0 < (where & arrangement.in_focus).sum() <= MOST_MARKS:
            traces.append(outlines(name, where & arrangement.in_focus, arrangement))
    return traces


def standing(arrangement: Arrangement) -> dict[str, Flags]:
    """Say which cells have each of OUTLINES. What fails has no level, whatever succeeded before.

    Of a comparison, they say which cells changed.
    """
    state, cells = arrangement.state, arrangement.grid.cells
    has_level = (state == MEASURED) | (state == STALE)
    if arrangement.grid.comparison:
        looks = {look: arrangement.grid.of_look(look) for look in CHANGES}
    else:
        levels = {"slower": cells.level == SLOWER, "faster": cells.level == FASTER}
        looks = levels | {"partly": cells.partly}
    drawn = {name: has_level & arrangement.drawn(where) for name, where in looks.items()}
    return {"failing": state == FAILING} | drawn


def outlines(name: str, where: Flags, arrangement: Arrangement) -> Json:
    """Name the cells; the page draws the outline in each."""
    is_framed = name in CHANGES and tells_changes(arrangement.grid.query)
    fill, line = FRAME if is_framed else OUTLINES[name]
    rows, columns = np.nonzero(where)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "meta": {"outline": "frame" if fill is None else name},
        "x": arrangement.columns.at[columns].tolist(),
        "y": arrangement.rows.at[rows].tolist(),
        "line": {"color": line, "width": 1 if fill else 2},
        **({"fill": "toself", "fillcolor": fill} if fill else {}),
        "hoverinfo": "skip",
        "showlegend": False,
    }


def tells_changes(query: MatrixQuery) -> bool:
    """Say whether colours are factors of the changes that are marked: from usual, or compared."""
    return query.compare is not None or query.stat == VS_USUAL.name


def marks_of(
    name: str,
    mark: Mark,
    where: Flags,
    arrangement: Arrangement,
    beside: tuple[float, float] | None = None,
) -> Json:
    """Mark these cells: in the middle, or where that has a number, ``beside`` it."""
    symbol, colour, part = mark
    lines = arrangement.rows.length, arrangement.columns.length
    size = float(np.clip(500 / max(lines), 2, 12))
    # Without its number, a stale cell has a dash.
    has_text = ~np.isnan(arrangement.value[where]) | (name == STATES[STALE])
    is_beside = has_text & room_for_numbers(lines)
    rows, columns = np.nonzero(where)
    right, down = beside or (0.0, 0.0)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": (arrangement.columns.at[columns] + right * is_beside).tolist(),
        "y": (arrangement.rows.at[rows] + down * is_beside).tolist(),
        "marker": {
            "symbol": symbol,
            "color": colour,
            "size": size * part,
            "line": {"color": colour, "width": 1.5 if size > 4 else 1},
        },
        "hoverinfo": "skip",
        "showlegend": False,
    }
