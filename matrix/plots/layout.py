"""The layout of the figure: axes, strips for the averages, and the colour bar."""

from __future__ import annotations

from typing import Any

from matrix.plots.arrangement import Arrangement
from matrix.plots.labels import Labels
from matrix.plots.palettes import colorscale, palette_for
from matrix.plots.scales import Scale

Json = dict[str, Any]

ACROSS = {"side": "top", "anchor": "y", "tickangle": -40}
DOWN = {"side": "left", "anchor": "x", "tickangle": 0}
# What the means below the columns are called, by what these are.
MEANS = {"source": "mean", "destination": "mean", "own": "mean", "partner": "mean of both"}
# What a line of a title is that only keeps a tick off it: a blank alone would have no height.
NOTHING = "\u200b \u200b"


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
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "font": {"family": "var(--font)", "size": 12, "color": "var(--ink)"},
        "paper_bgcolor": "var(--surface)",
        "plot_bgcolor": "var(--surface)",
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
