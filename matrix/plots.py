"""From a grid to a Plotly figure. Colours are names of variables in static/css/sonar.css,
which static/js/matrix.js puts in when it draws, so that light and dark need one figure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from matrix.cells import DOWN, FAILED, MEASURED, STALE, STATES, UNTESTED
from matrix.grid import Grid
from matrix.labels import labels_for
from matrix.layout import layout
from matrix.packed import packed
from matrix.scales import Scale, scale_for
from matrix.statistics import Flags, Floats
from sonar.units import format_age, format_count, three_digits

Json = dict[str, Any]

# Up to this part of the scale white is easier to read on it than black.
DARK_UP_TO = 0.46
# Numbers stand in the cells up to this many columns and rows, gaps between cells likewise.
COLUMNS_WITH_NUMBERS, ROWS_WITH_NUMBERS = 25, 40
CELLS_APART = 60
# Above this a mark in every cell is a blur that costs seconds to draw.
MOST_MARKS = 3000
TRANSPARENT = "rgba(0,0,0,0)"
FILLS = {FAILED: "var(--failed)", DOWN: "var(--down)", UNTESTED: "var(--untested)"}
# Symbol, colour, and part of the full size.
MARKS = {
    FAILED: ("x-thin-open", "var(--failed-mark)", 0.9),
    STALE: ("hourglass-open", "var(--ink)", 0.6),
    UNTESTED: ("circle", "var(--untested-mark)", 0.45),
    DOWN: ("line-ew-open", "var(--down-mark)", 0.9),
}


def figure(grid: Grid) -> Json:
    """Return data and layout; cells are numbered from 0, row 0 is at the top.

    The trace named ``cells`` answers the pointer for every cell; the browser gives it its
    text. Arrays are packed as plotly.js reads them.
    """
    scale = scale_for(grid.query.stat, grid.cells.value)
    data = [
        fill(grid),
        coloured(grid, scale),
        veil(grid),
        *averages(grid, scale),
        *numbers(grid, scale),
        *marks(grid),
    ]
    return {"data": data, "layout": layout(grid, scale, labels_for(grid))}


def heatmap(z: Floats, looks: Json) -> Json:
    apart = int(max(z.shape) <= CELLS_APART)
    plain = {
        "type": "heatmap",
        "z": packed(z, "f4"),
        "x0": 0,
        "dx": 1,
        "y0": 0,
        "dy": 1,
        "xgap": apart,
        "ygap": apart,
        "showscale": False,
        "hoverinfo": "skip",
    }
    return plain | looks


def in_one_colour(where: Flags, colour: str, looks: Json) -> Json:
    one = {"zmin": 0, "zmax": 1, "colorscale": [[0, colour], [1, colour]]}
    return heatmap(np.where(where, 0.0, np.nan), one | looks)


def fill(grid: Grid) -> Json:
    """Fill the cells that have no colour on the scale: failed, down and untested."""
    z = np.full(grid.cells.state.shape, np.nan)
    steps: list[list[float | str]] = []
    for index, (state, colour) in enumerate(FILLS.items()):
        z[grid.cells.state == state] = index
        steps += [[index / len(FILLS), colour], [(index + 1) / len(FILLS), colour]]
    return heatmap(z, {"zmin": 0, "zmax": len(FILLS) - 1, "colorscale": steps})


def coloured(grid: Grid, scale: Scale) -> Json:
    on_scale = np.isin(grid.cells.state, [MEASURED, STALE])
    values = np.where(on_scale, grid.cells.value, np.nan)
    looks = {
        "name": "cells",
        "coloraxis": "coloraxis",
        "hoverinfo": "text",
        "hoverongaps": True,
    }
    return heatmap(scale.positions(values), looks)


def veil(grid: Grid) -> Json:
    """Fade the stale cells."""
    return in_one_colour(grid.cells.state == STALE, "var(--veil)", {})


def averages(grid: Grid, scale: Scale) -> list[Json]:
    """Draw the means of rows, columns and all cells as strips of their own."""
    return [trace for values, axes in strips(grid) for trace in strip(grid, scale, values, axes)]


def strips(grid: Grid) -> list[tuple[Floats, Json]]:
    means = grid.averages
    return [
        (means.row[:, None], {"xaxis": "x2"}),
        (means.column[None, :], {"yaxis": "y2"}),
        (np.array([[means.grand]]), {"xaxis": "x2", "yaxis": "y2"}),
    ]


def strip(grid: Grid, scale: Scale, values: Floats, axes: Json) -> list[Json]:
    unit = "" if grid.query.stat == "last" else f" {grid.unit}"
    said = [
        [f"mean of measured cells: {text}{unit}" if text else "" for text in row]
        for row in texts(values, grid.query.stat)
    ]
    looks = {"coloraxis": "coloraxis", "hoverinfo": "text", "hovertext": said, "hoverongaps": False}
    colours = heatmap(scale.positions(values), looks | axes)
    return [colours, *on_scale(values, grid.query.stat, scale, axes)]


def numbers(grid: Grid, scale: Scale) -> list[Json]:
    """Write the values into the cells, in an ink that can be read on what is there."""
    state, values, stat = grid.cells.state, grid.cells.value, grid.query.stat
    return [
        *on_scale(np.where(state == MEASURED, values, np.nan), stat, scale, {}),
        *written(np.where(state == STALE, values, np.nan), stat, "var(--ink)", {}),
        *written(np.where(state == DOWN, values, np.nan), stat, "var(--down-mark)", {}),
    ]


def on_scale(values: Floats, stat: str, scale: Scale, axes: Json) -> list[Json]:
    share = (scale.positions(values) - scale.low) / (scale.high - scale.low)
    return [
        *written(np.where(share <= DARK_UP_TO, values, np.nan), stat, "#ffffff", axes),
        *written(np.where(share > DARK_UP_TO, values, np.nan), stat, "#000000", axes),
    ]


def written(values: Floats, stat: str, ink: str, axes: Json) -> list[Json]:
    """Return a trace of numbers, or none where there are no values or no room."""
    if np.isnan(values).all() or not room_for_numbers(values.shape):
        return []
    looks = {
        "text": texts(values, stat),
        "texttemplate": "%{text}",
        "textfont": {"color": ink, "size": 11},
    }
    return [in_one_colour(~np.isnan(values), TRANSPARENT, looks | axes)]


def room_for_numbers(shape: tuple[int, ...]) -> bool:
    return shape[0] <= ROWS_WITH_NUMBERS and shape[1] <= COLUMNS_WITH_NUMBERS


def texts(values: Floats, stat: str) -> list[list[str]]:
    return [[number(value, stat) for value in row] for row in values.tolist()]


def number(value: float, stat: str) -> str:
    """Write a value as it stands in a cell, without its unit; nothing for none."""
    if np.isnan(value):
        return ""
    if stat == "last":
        return format_age(timedelta(seconds=value)).removesuffix(" ago")
    return (
        format_count(int(value)) if stat == "count" and value == int(value) else three_digits(value)
    )


def marks(grid: Grid) -> list[Json]:
    """Draw a mark in each cell whose state has one, so that states differ without colour."""
    drawn = []
    for state in MARKS:
        where = grid.cells.state == state
        if 0 < where.sum() <= MOST_MARKS:
            beside = ~np.isnan(grid.cells.value) & room_for_numbers(where.shape)
            drawn.append(marks_of(state, where, beside))
    return drawn


def marks_of(state: int, where: Flags, beside: Flags) -> Json:
    """Mark these cells: in the middle, or where that has a number, beside it."""
    symbol, colour, part = MARKS[state]
    size = float(np.clip(500 / max(where.shape), 2, 12))
    rows, columns = np.nonzero(where)
    right, down = {STALE: (0.38, -0.3), DOWN: (0.0, 0.34)}.get(state, (0.0, 0.0))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": STATES[state],
        "x": (columns + right * beside[where]).tolist(),
        "y": (rows + down * beside[where]).tolist(),
        "marker": {
            "symbol": symbol,
            "color": colour,
            "size": size * part,
            "line": {"color": colour, "width": 1.5 if size > 4 else 1},
        },
        "hoverinfo": "skip",
        "showlegend": False,
    }
