"""The marks of the states, so that these differ without colour."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrix.plots.arrangement import Arrangement
from matrix.plots.numbers import room_for_numbers
from matrix.statistics.arrays import Flags
from matrix.statistics.states import DOWN, FAILED, STALE, STATES, UNTESTED

Json = dict[str, Any]

# Above this a mark in every cell is a blur that costs seconds to draw.
MOST_MARKS = 3000
# Symbol, colour, and part of the full size.
MARKS = {
    FAILED: ("x-thin-open", "var(--failed-mark)", 0.9),
    STALE: ("hourglass-open", "var(--ink)", 0.6),
    UNTESTED: ("circle", "var(--untested-mark)", 0.45),
    DOWN: ("line-ew-open", "var(--down-mark)", 0.9),
}
# Where a mark stands beside a number: so many cells to the right and down.
BESIDE = {STALE: (0.38, -0.3), DOWN: (0.0, 0.34)}


def marks(arrangement: Arrangement) -> list[Json]:
    """Draw a mark in each cell whose state has one, so that states differ without colour."""
    traces = []
    for state in MARKS:
        where = arrangement.in_focus & (arrangement.state == state)
        if 0 < where.sum() <= MOST_MARKS:
            traces.append(marks_of(state, where, arrangement))
    return traces


def marks_of(state: int, where: Flags, arrangement: Arrangement) -> Json:
    """Mark these cells: in the middle, or where that has a number, beside it."""
    symbol, colour, part = MARKS[state]
    lines = arrangement.rows.length, arrangement.columns.length
    size = float(np.clip(500 / max(lines), 2, 12))
    # Without its number, a stale cell has a dash.
    has_text = ~np.isnan(arrangement.value[where]) | (state == STALE)
    beside = has_text & room_for_numbers(lines)
    rows, columns = np.nonzero(where)
    right, down = BESIDE.get(state, (0.0, 0.0))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": STATES[state],
        "x": (arrangement.columns.at[columns] + right * beside).tolist(),
        "y": (arrangement.rows.at[rows] + down * beside).tolist(),
        "marker": {
            "symbol": symbol,
            "color": colour,
            "size": size * part,
            "line": {"color": colour, "width": 1.5 if size > 4 else 1},
        },
        "hoverinfo": "skip",
        "showlegend": False,
    }
