"""From an arranged grid to a Plotly figure, on its page or alone.

What depends on the theme is the name of a variable in static/css/sonar.css, which
static/js/colours.js puts in, so that light and dark need one figure; it mixes the colour in
veil(...) with the surface. Alone, what the page's script works out stands in the figure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.words.names import LONGEST_LISTED, cut, shared_ending, shortened
from matrix.answers.words.numbers import number
from matrix.plots import MARGIN, ON_PAGE, Json
from matrix.plots.arrangement import LEFT_OUT, LEFT_OUT_WORDS, Arrangement, Side
from matrix.plots.display import Display
from matrix.plots.marks import dashes, heatmap, marks, number_texts, room_for_numbers, text_in
from matrix.plots.palettes import INKS, inks_on, palette_for
from matrix.plots.scales import Scale, scale_for
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.cell_targets import AGAINST
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
LONGEST_ROW, LONGEST_COLUMN = 26, 24
# How each axis is called, by its end; of strips each own line says its direction.
TITLES = {
    "source": "from (source {})",
    "destination": "to (destination {})",
    "own": "direction ({})",
    "partner": "partner ({})",
}
TOP = {"side": "top", "anchor": "y", "tickangle": -40}
LEFT = {"side": "left", "anchor": "x", "tickangle": 0}
# What the means below the columns are called, by what these are.
MEANS = {
    "source": "mean",
    "destination": "mean",
    "own": "mean",
    "partner": "mean of both directions",
}
# What a line of a title is that only keeps a tick off it: a blank alone would have no height.
NOTHING = "\u200b \u200b"
# What a process keeps of labels: rows and columns of a thousand endpoints have 2,000.
MOST_WRITTEN = 5000


@dataclass(frozen=True)
class Labels:
    """The labels of all lines, gaps included, and the titles that say the direction.

    ``left_out`` are the parts that names are written without.
    """

    rows: list[str]
    columns: list[str]
    rows_title: str
    columns_title: str
    left_out: tuple[str, ...]


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


def labels_for(arrangement: Arrangement) -> Labels:
    grid = arrangement.grid
    groups = [*grid.sources, *grid.destinations]
    ending = shared_ending(groups)
    texts, left_out = shortened(groups, ending)
    rows_title, columns_title = (
        TITLES[side.end].format(side.grouping) for side in (arrangement.rows, arrangement.columns)
    )
    return Labels(
        rows=labels_of(arrangement.rows, texts, LONGEST_ROW),
        columns=labels_of(arrangement.columns, texts, LONGEST_COLUMN),
        rows_title=rows_title,
        columns_title=columns_title,
        left_out=tuple(filter(None, [ending, *left_out])),
    )


def labels_of(side: Side, texts: Mapping[str, str], longest: int) -> list[str]:
    """Return labels for Plotly, which reads some HTML: names must not become any.

    The name of a cloud or tier stands, in bold, before the first of its rows, or behind the first
    of its columns, which is above it.
    """
    labels = [""] * side.length
    for place, (at, group) in enumerate(zip(side.at.tolist(), side.groups, strict=True)):
        direction = f"{side.directions[place]} " if side.directions else ""
        label = direction + written(texts[group.name], longest)
        if title := side.titles.get(place):
            parts = [f"<b>{written(title, LONGEST_LISTED)}</b>", label]
            label = " ".join(parts if longest == LONGEST_ROW else parts[::-1])
        labels[at] = label
    return labels


@lru_cache(MOST_WRITTEN)
def written(text: str, longest: int) -> str:
    return escape(cut(text, longest))


def layout(arrangement: Arrangement, scale: Scale, labels: Labels) -> Json:
    x_cells, x_strip = domains(arrangement.columns.length)
    y_cells, y_strip = ([1 - high, 1 - low] for low, high in domains(arrangement.rows.length))
    return {
        "xaxis": axis(labels.columns, x_cells, labels.columns_title, TOP),
        "xaxis2": axis(["mean"], x_strip, "", TOP),
        "yaxis": axis(labels.rows, y_cells, labels.rows_title, LEFT),
        "yaxis2": axis([MEANS[arrangement.columns.end]], y_strip, "", LEFT),
        "coloraxis": coloraxis(arrangement, scale),
        "showlegend": False,
        # The page finds the cell under the pointer itself.
        "hovermode": False,
        "dragmode": "zoom",
        "margin": MARGIN,
        **ON_PAGE,
        # A redraw with new data keeps the zoom as long as this stays the same.
        "meta": arrangement.digest,
    }


def domains(count: int) -> tuple[list[float], list[float]]:
    """Split the width between the cells and, behind a gap, a strip about as wide as one cell."""
    strip_width = min(max(1 / (count + 1.4), 0.045), 0.2)
    gap = min(max(0.4 * strip_width, 0.012), 0.04)
    return [0.0, 1 - strip_width - gap], [1 - strip_width, 1.0]


def axis(names: list[str], domain: list[float], title: str, side: Json) -> Json:
    bounds = [-0.5, len(names) - 0.5]
    return {
        "domain": domain,
        "title": {"text": title, "standoff": 8},
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "ticks": "",
        "ticklabelstandoff": 5,
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        **side,
        "range": bounds if side is TOP else bounds[::-1],
    }


def coloraxis(arrangement: Arrangement, scale: Scale) -> Json:
    grid, display = arrangement.grid, arrangement.display
    statistic = grid.query.statistic
    # A factor says of what it is one.
    title = statistic.words if statistic.against else statistic.unit.title or statistic.unit.name
    has_top = scale.high in scale.ticks
    colours = palette_for(display.palette, statistic)
    return {
        "colorscale": [[at / (len(colours) - 1), colour] for at, colour in enumerate(colours)],
        "cmin": scale.low,
        "cmax": scale.high,
        "colorbar": {
            "title": {"text": f"{title}<br>{NOTHING}" if has_top else title, "side": "top"},
            "tickmode": "array",
            "tickvals": list(scale.ticks),
            "ticktext": list(scale.ticks.values()),
            "thickness": 14,
            "len": 1,
            "x": 1,
            "outlinewidth": 0,
            "xpad": 12,
        },
    }


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
    cells, statistic = arrangement.grid.cells, arrangement.grid.query.statistic
    ok, failed = arrangement.drawn(cells.ok), arrangement.drawn(cells.failed)
    against = arrangement.drawn(cells.targets.against) if cells.targets else None
    unit = "×" if statistic.unit.written == "factor" else f" {statistic.unit.behind}".rstrip()
    rows, columns = arrangement.rows, arrangement.columns
    written = np.full((rows.length, columns.length), "", dtype=object)
    for row, column in np.argwhere(arrangement.state != NOT_APPLICABLE).tolist():
        at, state = (row, column), int(arrangement.state[row, column])
        words = LEFT_OUT_WORDS if state == LEFT_OUT else STATES[state]
        if against is not None and state == MEASURED:
            words = AGAINST[against[at]].replace("unknown", words)
        lines = (
            f"{escape(sources[at])} → {escape(destinations[at])}",
            f"{number(float(arrangement.value[at]), statistic) or DASH}{unit}, {words}",
            f"{int(ok[at])} ok, {int(failed[at])} failed",
        )
        written[rows.at[row], columns.at[column]] = "<br>".join(lines)
    listed: list[list[str]] = written.tolist()
    return listed


def ends(arrangement: Arrangement) -> tuple[Names, Names]:
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
