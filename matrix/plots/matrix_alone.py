"""The figure of a matrix without its page: what the page's script works out stands in it."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.plots.arrangement import LEFT_OUT, LEFT_OUT_WORDS, Arrangement
from matrix.plots.matrix import figure
from matrix.plots.numbers import number
from matrix.statistics.cells.states import NOT_APPLICABLE, STATES
from sonar.notation.units import DASH

Json = dict[str, Any]
Names = NDArray[np.str_]
Outline = tuple[tuple[float, float], ...]

# Pixels: of a line of cells, of what stands above them, and of a letter of a label. Of fewer lines
# than these the colour bar has no room.
LINE, ABOVE, LETTER = 28, 260, 6.5
FEWEST = 5
# Where in a cell of width and height 1, from its middle, the outlines of static/js/matrix/
# outlines.js go; y points down.
OUTLINES: dict[str, Outline] = {
    "frame": ((-0.46, -0.46), (0.46, -0.46), (0.46, 0.46), (-0.46, 0.46)),
    "slower": ((0.25, -0.5), (0.5, -0.5), (0.5, -0.1)),
    "faster": ((0.22, -0.08), (0.48, -0.08), (0.35, -0.46)),
    "partly": ((-0.5, 0.25), (-0.34, 0.25), (-0.34, 0.5), (-0.5, 0.5)),
}


def figure_alone(arrangement: Arrangement) -> Json:
    """Return the figure of the page, whose cells say what they are, with outlines as lines."""
    whole = figure(arrangement)
    for trace in whole["data"]:
        if trace.get("name") == "cells":
            trace.update(hovertext=texts(arrangement), hoverinfo="text")
        if outline := OUTLINES.get(trace.get("meta", {}).get("outline", "")):
            trace.update(outlined(trace["x"], trace["y"], outline))
    lines = max(arrangement.rows.length, FEWEST)
    whole["layout"] |= {"hovermode": "closest", "height": ABOVE + LINE * lines}
    make_room(whole["layout"])
    return whole


def make_room(layout: Json) -> None:
    """Put the title of the rows beside the longest label, which may be that of their means."""
    own, means = (
        max(map(len, layout[name]["ticktext"]), default=0) for name in ("yaxis", "yaxis2")
    )
    layout["yaxis"]["title"]["standoff"] += LETTER * max(means - own, 0)


def outlined(columns: list[int], rows: list[int], outline: Outline) -> Json:
    """Return the closed lines around these cells, one after the other with gaps."""
    points = (*outline, outline[0])
    return {
        "x": [x for column in columns for x in (*(column + dx for dx, _ in points), None)],
        "y": [y for row in rows for y in (*(row + dy for _, dy in points), None)],
    }


def texts(arrangement: Arrangement) -> list[list[str]]:
    """Say of each cell, line by line, what it shows; nothing where there is no link, or a gap."""
    sources, destinations = ends(arrangement)
    cells = arrangement.grid.cells
    ok, failed = arrangement.drawn(cells.ok), arrangement.drawn(cells.failed)
    rows, columns = arrangement.rows, arrangement.columns
    written = np.full((rows.length, columns.length), "", dtype=object)
    for row, column in np.argwhere(arrangement.state != NOT_APPLICABLE).tolist():
        lines = (
            f"{escape(sources[row, column])} → {escape(destinations[row, column])}",
            value_words(arrangement, (row, column)),
            f"{int(ok[row, column])} ok, {int(failed[row, column])} failed",
        )
        written[rows.at[row], columns.at[column]] = "<br>".join(lines)
    listed: list[list[str]] = written.tolist()
    return listed


def value_words(arrangement: Arrangement, at: tuple[int, int]) -> str:
    """Write the value of a cell with its unit, and its state."""
    statistic, state = arrangement.grid.query.statistic, int(arrangement.state[at])
    value = number(float(arrangement.value[at]), statistic) or DASH
    unit = "×" if statistic.unit.written == "factor" else f" {statistic.unit.behind}"
    words = LEFT_OUT_WORDS if state == LEFT_OUT else STATES[state]
    return f"{value}{unit.rstrip()}, {words}"


def ends(arrangement: Arrangement) -> tuple[Names, Names]:
    """Return the source and the destination of each drawn cell."""
    shape = arrangement.state.shape
    rows = np.broadcast_to(np.array(arrangement.rows.names)[:, None], shape)
    columns = np.broadcast_to(np.array(arrangement.columns.names)[None, :], shape)
    if arrangement.own is None:
        return (columns, rows) if arrangement.display.transpose else (rows, columns)
    # Of strips, the first lines of the own side are sources, the others destinations.
    own, partner = (rows, columns) if arrangement.own is arrangement.rows else (columns, rows)
    at = np.arange(len(arrangement.own.names)) < (arrangement.own.sending or 0)
    sends = np.broadcast_to(at[:, None] if own is rows else at[None, :], rows.shape)
    return np.where(sends, own, partner), np.where(sends, partner, own)
