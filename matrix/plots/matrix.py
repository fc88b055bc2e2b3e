"""From an arranged grid to a Plotly figure. What depends on the theme is the name of a variable
in static/css/sonar.css, which static/js/colours.js puts in, so that light and dark need one
figure; it mixes the colour in veil(...) with the surface."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.grid import Grid
from matrix.plots.arrangement import LEFT_OUT, Arrangement
from matrix.plots.display import Display
from matrix.plots.labels import labels_for
from matrix.plots.layout import layout
from matrix.plots.marks import marks
from matrix.plots.numbers import (
    CELLS_APART,
    dashes,
    heatmap,
    number_texts,
    room_for_numbers,
    text_in,
)
from matrix.plots.palettes import INKS, inks_on, palette_for
from matrix.plots.scales import Scale, scale_for
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.states import (
    DOWN,
    FAILED,
    FAILING,
    MEASURED,
    NOT_APPLICABLE,
    STALE,
    UNTESTED,
)
from sonar.notation.units import format_span

Json = dict[str, Any]

# A cell is drawn by its code: one of STEPS on the palette; behind them the same, faded, for
# stale cells; then one for each other look.
STEPS = 1000
CODES = {
    state: 2 * STEPS + number
    for number, state in enumerate((FAILING, FAILED, UNTESTED, DOWN, NOT_APPLICABLE))
}
# There are results but not this statistic of them: a deviation of one, say.
# Of a comparison it has too few of them on a side.
NO_VALUE, TOO_FEW, UNFOCUSED, GAP = (2 * STEPS + number for number in (5, 6, 7, 8))
COLOURS = (
    *("failing-soft", "failed", "untested", "down", "not-applicable"),
    *("raised", "too-few", "unfocused", "surface"),
)

# The ink of the states whose number does not stand on the palette itself.
INKS_OF_STATES = {STALE: "var(--ink)", DOWN: "var(--down-mark)"}


def figure(arrangement: Arrangement) -> Json:
    """Return data and layout; lines are numbered from 0, row 0 is at the top.

    The trace named ``cells`` has the look of every cell. Arrays are packed as plotly.js reads
    them, and nothing answers the pointer.
    """
    scale = scale_of(arrangement.grid, arrangement.display)
    data = [
        cells(arrangement, scale),
        *averages(arrangement, scale),
        *numbers(arrangement, scale),
        *marks(arrangement),
    ]
    return {"data": data, "layout": layout(arrangement, scale, labels_for(arrangement))}


def scale_of(grid: Grid, display: Display) -> Scale:
    """Return the scale of the colours in which a display shows the cells of a grid."""
    return scale_for(
        grid.query.statistic,
        grid.cells.value,
        display.low,
        display.high,
        whole=display.scale == "whole",
    )


def cells(arrangement: Arrangement, scale: Scale) -> Json:
    """Draw all cells in one trace: each further one would be drawn over all of them again."""
    colours = palette_for(arrangement.display.palette, arrangement.grid.query.statistic)
    # The frame of a failing cell takes all of a small one.
    failing = "failing-soft" if has_room(arrangement) else "failing"
    stops = scale_of_codes(colours, failing)
    looks = {"name": "cells", "zmin": 0, "zmax": GAP, "colorscale": stops}
    return heatmap(arrangement.spread(codes(arrangement, scale), GAP), "u2", looks)


def codes(arrangement: Arrangement, scale: Scale) -> NDArray[np.uint16]:
    """Return the code of each drawn cell."""
    states = arrangement.state
    shares = scale.shares(arrangement.value)
    look = np.where(np.isnan(shares), NO_VALUE, np.rint(shares * (STEPS - 1)))
    look[(states == STALE) & ~np.isnan(shares)] += STEPS
    look[arrangement.too_few] = TOO_FEW
    for state, code in CODES.items():
        look[states == state] = code
    look[~arrangement.in_focus & (states != NOT_APPLICABLE)] = UNFOCUSED
    look[states == LEFT_OUT] = GAP
    return look.astype(np.uint16)


def has_room(arrangement: Arrangement) -> bool:
    return max(arrangement.rows.length, arrangement.columns.length) <= CELLS_APART


def scale_of_codes(colours: tuple[str, ...], failing: str = COLOURS[0]) -> list[list[float | str]]:
    """Return the stops of the codes. Codes are whole, so nothing is mixed across regions."""
    last = len(colours) - 1
    faded = [f"veil({colour})" for colour in colours]
    stops: list[list[float | str]] = [
        [(first_code + number / last * (STEPS - 1)) / GAP, colour]
        for first_code, region in ((0, colours), (STEPS, faded))
        for number, colour in enumerate(region)
    ]
    others: list[list[float | str]] = [
        [(2 * STEPS + number) / GAP, f"var(--{name})"]
        for number, name in enumerate((failing, *COLOURS[1:]))
    ]
    return stops + others


def averages(arrangement: Arrangement, scale: Scale) -> list[Json]:
    """Draw the means of rows, columns and all cells as strips of their own."""
    rows, columns = arrangement.rows, arrangement.columns
    grand = np.array([[arrangement.grid.averages.grand]])
    return [
        *strip(arrangement, scale, rows.average[:, None], {"xaxis": "x2"}),
        *strip(arrangement, scale, columns.average[None, :], {"yaxis": "y2"}),
        *strip(arrangement, scale, grand, {"xaxis": "x2", "yaxis": "y2"}),
    ]


def strip(arrangement: Arrangement, scale: Scale, values: Floats, axes: Json) -> list[Json]:
    def spread(part: NDArray[Any], blank: float) -> NDArray[Any]:
        part = part if "yaxis" in axes else arrangement.rows.spread(part, blank)
        return part if "xaxis" in axes else arrangement.columns.spread(part.T, blank).T

    wide = spread(values, np.nan)
    looks = {"coloraxis": "coloraxis", "hoverongaps": False} | axes
    return [
        heatmap(scale.positions(wide), "f4", looks),
        *on_palette(arrangement, scale, wide, axes),
        *dashes(spread(np.isnan(values), False), axes),
    ]


def numbers(arrangement: Arrangement, scale: Scale) -> list[Json]:
    """Write the values into the cells in focus, in an ink that can be read on what is there."""
    states, statistic = arrangement.state, arrangement.grid.query.statistic
    values = np.where(arrangement.in_focus, arrangement.value, np.nan)
    measured = arrangement.spread(np.where(states == MEASURED, values, np.nan), np.nan)
    traces = on_palette(arrangement, scale, measured, {})
    # There are results, but not this statistic of them.
    bare = np.isin(states, [MEASURED, STALE]) & np.isnan(arrangement.value) & arrangement.in_focus
    traces += dashes(arrangement.spread(bare & ~arrangement.too_few, False), {})
    for state, ink in INKS_OF_STATES.items():
        of_state = arrangement.spread(np.where(states == state, values, np.nan), np.nan)
        traces += number_texts(of_state, statistic, ink, {})
    return traces + durations(arrangement)


def durations(arrangement: Arrangement) -> list[Json]:
    """Write into each failing cell for how long it has been: 30 h."""
    shape = (arrangement.rows.length, arrangement.columns.length)
    if not room_for_numbers(shape):
        return []
    since = arrangement.drawn(arrangement.grid.cells.since)
    is_shown = (arrangement.state == FAILING) & arrangement.in_focus & ~np.isnan(since)
    seconds = np.where(is_shown, arrangement.grid.moment.timestamp() - since, np.nan)
    spread = arrangement.spread(seconds, np.nan)
    texts = [[duration(value) for value in row] for row in spread.tolist()]
    return text_in(~np.isnan(spread), texts, "var(--failing)", {"name": "durations"})


def duration(seconds: float) -> str:
    if np.isnan(seconds):
        return ""
    return f"<b>{format_span(timedelta(seconds=seconds))}</b>"


def on_palette(arrangement: Arrangement, scale: Scale, values: Floats, axes: Json) -> list[Json]:
    """Write values into their places, each in the ink that reads on its colour."""
    statistic = arrangement.grid.query.statistic
    steps = np.rint(np.nan_to_num(scale.shares(values)) * (STEPS - 1)).astype(np.int64)
    inks = inks_on(palette_for(arrangement.display.palette, statistic), STEPS)[steps]
    return [
        trace
        for number, ink in enumerate(INKS)
        for trace in number_texts(np.where(inks == number, values, np.nan), statistic, ink, axes)
    ]
