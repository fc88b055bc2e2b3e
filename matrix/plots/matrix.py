"""From an arranged grid to a Plotly figure, on its page or alone.

What depends on the theme is the name of a variable in static/css/sonar.css, which
static/js/colours.js puts in, so that light and dark need one figure; it mixes the colour in
veil(...) with the surface. Alone, what the page's script works out stands in the figure.
"""

from datetime import timedelta
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.words.numbers import number
from matrix.plots import Json
from matrix.plots.arrangement import LEFT_OUT, LEFT_OUT_WORDS, Arrangement
from matrix.plots.display import Display
from matrix.plots.layout import Labels, labels_for, layout
from matrix.plots.marks import (
    dashes,
    heatmap,
    marks,
    number_texts,
    room_for_numbers,
    text_in,
)
from matrix.plots.palettes import INKS, inks_on, palette_for
from matrix.plots.scales import Scale, scale_for
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.expected import AGAINST
from matrix.statistics.cells.states import (
    DOWN,
    FAILED,
    FAILING,
    MEASURED,
    NOT_APPLICABLE,
    STALE,
    STATES,
    UNTESTED,
)
from sonar.notation.units import DASH, format_span

# A cell is drawn by its code, a byte: one of STEPS on the palette; behind them the same, faded, for
# stale cells; then one for each other look. Steps differ by 7 of 255 in a channel at most.
STEPS = 123
CODES = {
    state: 2 * STEPS + number
    for number, state in enumerate((FAILING, FAILED, UNTESTED, DOWN, NOT_APPLICABLE))
}
# There are results but not this statistic of them: a deviation of one, say.
# Of a comparison it has too few of them on a side.
NO_VALUE, TOO_FEW, UNFOCUSED, GAP = (2 * STEPS + number for number in range(5, 9))
COLOURS = (
    *("failed", "failed-few", "untested", "down", "not-applicable"),
    *("raised", "too-few", "unfocused", "surface"),
)

# The ink of the states whose number does not stand on the palette itself.
INKS_OF_STATES = {STALE: "var(--ink)", DOWN: "var(--down-mark)"}
# By state, and LEFT_OUT behind them; 0 for those whose cells have a value.
CODE_OF_STATE = np.zeros(LEFT_OUT + 1, dtype=np.uint8)
CODE_OF_STATE[list(CODES)] = list(CODES.values())
CODE_OF_STATE[LEFT_OUT] = GAP
Codes = NDArray[np.uint8]
Names = NDArray[np.str_]
Outline = tuple[tuple[float, float], ...]

# Pixels: of a line of cells, of what stands above them, and of a letter of a label. Of fewer lines
# than these the colour bar has no room.
LINE_PIXELS, ABOVE_PIXELS, LETTER_PIXELS = 28, 260, 6.5
FEWEST_LINES = 5
# Where in a cell of width and height 1, from its middle, the outlines of static/js/matrix/
# outlines.js go; y points down.
OUTLINES: dict[str, Outline] = {
    "frame": ((-0.46, -0.46), (0.46, -0.46), (0.46, 0.46), (-0.46, 0.46)),
    "slower": ((0.25, -0.5), (0.5, -0.5), (0.5, -0.1)),
    "faster": ((0.22, -0.08), (0.48, -0.08), (0.35, -0.46)),
    "partly": ((-0.5, 0.25), (-0.34, 0.25), (-0.34, 0.5), (-0.5, 0.5)),
}


def figure(arrangement: Arrangement, labels: Labels | None = None) -> Json:
    """Return data and layout; lines are numbered from 0, row 0 is at the top.

    ``labels`` are those of labels_for(), where they are made already.
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
    return {"data": data, "layout": layout(arrangement, scale, labels or labels_for(arrangement))}


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
    looks = {"name": "cells", "zmin": 0, "zmax": GAP, "colorscale": scale_of_codes(colours)}
    return heatmap(arrangement.spread(codes(arrangement, scale), GAP), "u1", looks)


def codes(arrangement: Arrangement, scale: Scale) -> Codes:
    """Return the code of each drawn cell, as few passes over a million of them as it takes."""
    states = arrangement.state
    look = steps_of(arrangement.value, scale, NO_VALUE)
    look += ((states == STALE) & (look < STEPS)) * np.uint8(STEPS)
    if arrangement.grid.comparison:
        look[arrangement.too_few] = TOO_FEW
    # Looked up at once, which takes a third of writing each state over those before it.
    of_state = CODE_OF_STATE.take(states)
    look = np.where(of_state > 0, of_state, look)
    if arrangement.display.focuses:
        look[~arrangement.in_focus & (states != NOT_APPLICABLE) & (states != LEFT_OUT)] = UNFOCUSED
    return look


def steps_of(values: Floats, scale: Scale, blank: int) -> Codes:
    """Return the step of each value on the palette, with a code for none."""
    shares = scale.shares(values) * (STEPS - 1)
    return np.where(np.isnan(shares), blank, np.rint(shares)).astype(np.uint8)


def scale_of_codes(colours: tuple[str, ...]) -> list[list[float | str]]:
    """Return the stops of the codes. Codes are whole, so nothing is mixed across regions."""
    last = len(colours) - 1
    faded = [f"veil({colour})" for colour in colours]
    stops: list[list[float | str]] = [
        [(first_code + number / last * (STEPS - 1)) / GAP, colour]
        for first_code, region in ((0, colours), (STEPS, faded))
        for number, colour in enumerate(region)
    ]
    others: list[list[float | str]] = [
        [(2 * STEPS + number) / GAP, f"var(--{name})"] for number, name in enumerate(COLOURS)
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
    if not room_for_numbers((arrangement.rows.length, arrangement.columns.length)):
        return []
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
    since = arrangement.drawn(arrangement.grid.cells.since)
    is_shown = (arrangement.state == FAILING) & arrangement.in_focus & ~np.isnan(since)
    seconds = np.where(is_shown, arrangement.grid.moment.timestamp() - since, np.nan)
    spread = arrangement.spread(seconds, np.nan)
    texts = [
        [
            "" if np.isnan(value) else f"<b>{format_span(timedelta(seconds=value))}</b>"
            for value in row
        ]
        for row in spread.tolist()
    ]
    return text_in(~np.isnan(spread), texts, "var(--failed-mark)", {"name": "durations"})


def on_palette(arrangement: Arrangement, scale: Scale, values: Floats, axes: Json) -> list[Json]:
    """Write values into their places, each in the ink that reads on its colour."""
    if not room_for_numbers(values.shape):
        return []
    statistic = arrangement.grid.query.statistic
    steps = np.rint(np.nan_to_num(scale.shares(values)) * (STEPS - 1)).astype(np.int64)
    inks = inks_on(palette_for(arrangement.display.palette, statistic), STEPS)[steps]
    return [
        trace
        for number, ink in enumerate(INKS)
        for trace in number_texts(np.where(inks == number, values, np.nan), statistic, ink, axes)
    ]


def figure_alone(arrangement: Arrangement) -> Json:
    """Return the figure of the page, whose cells say what they are, with outlines as lines."""
    whole = figure(arrangement)
    for trace in whole["data"]:
        if trace.get("name") == "cells":
            trace.update(hovertext=cell_texts(arrangement), hoverinfo="text")
        if outline := OUTLINES.get(trace.get("meta", {}).get("outline", "")):
            # Closed lines around these cells, one after the other with gaps.
            points = (*outline, outline[0])
            for name, at in (("x", 0), ("y", 1)):
                offsets = [point[at] for point in points]
                trace[name] = [
                    place
                    for cell in trace[name]
                    for place in (*(cell + offset for offset in offsets), None)
                ]
    lines = max(arrangement.rows.length, FEWEST_LINES)
    whole["layout"] |= {"hovermode": "closest", "height": ABOVE_PIXELS + LINE_PIXELS * lines}
    # The title of the rows stands beside the longest label, which may be that of their means.
    own, means = (
        max(map(len, whole["layout"][name]["ticktext"]), default=0) for name in ("yaxis", "yaxis2")
    )
    whole["layout"]["yaxis"]["title"]["standoff"] += LETTER_PIXELS * max(means - own, 0)
    return whole


def cell_texts(arrangement: Arrangement) -> list[list[str]]:
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
    if (expectations := arrangement.grid.cells.expectations) and state == MEASURED:
        words = AGAINST[arrangement.drawn(expectations.against)[at]].replace("unknown", words)
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
