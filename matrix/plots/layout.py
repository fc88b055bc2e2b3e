"""The layout of the matrix: axes with labels, strips for the averages, and the colour bar.

Labels are freed of what many names share, which is said once, and cut in the middle. Full names are
on the card, in the table and in the files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from matrix.answers.words.names import LONGEST_LISTED, cut, shared_ending, shortened
from matrix.plots import MARGIN, ON_PAGE, Json
from matrix.plots.arrangement import Arrangement, Side
from matrix.plots.palettes import colorscale, palette_for
from matrix.plots.scales import Scale

LONGEST_ROW, LONGEST_COLUMN = 26, 24
# How each axis is called, by its end; of strips each own line says its direction.
TITLES = {
    "source": "from (source {})",
    "destination": "to (destination {})",
    "own": "direction ({})",
    "partner": "partner ({})",
}
ACROSS = {"side": "top", "anchor": "y", "tickangle": -40}
DOWN = {"side": "left", "anchor": "x", "tickangle": 0}
# What the means below the columns are called, by what these are.
MEANS = {"source": "mean", "destination": "mean", "own": "mean", "partner": "mean of both"}
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
    for number, (at, group) in enumerate(zip(side.at.tolist(), side.groups, strict=True)):
        direction = f"{side.directions[number]} " if side.directions else ""
        label = direction + written(texts[group.name], longest)
        if title := side.titles.get(number):
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
        "xaxis": axis(labels.columns, x_cells, labels.columns_title, ACROSS),
        "xaxis2": axis(["mean"], x_strip, "", ACROSS),
        "yaxis": axis(labels.rows, y_cells, labels.rows_title, DOWN),
        "yaxis2": axis([MEANS[arrangement.columns.end]], y_strip, "", DOWN),
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
    """Name lines along an axis: columns from the left, rows from the top."""
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
        "range": bounds if side is ACROSS else bounds[::-1],
    }


def coloraxis(arrangement: Arrangement, scale: Scale) -> Json:
    grid, display = arrangement.grid, arrangement.display
    statistic = grid.query.statistic
    # A factor says of what it is one.
    title = statistic.words if statistic.against else statistic.unit.title or statistic.unit.name
    has_top = scale.high in scale.ticks
    return {
        "colorscale": colorscale(palette_for(display.palette, statistic)),
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
