"""The layout of the figure: axes, strips for the averages, and the colour bar."""

from __future__ import annotations

from typing import Any

from matrix.grid import Grid
from matrix.labels import Labels
from matrix.scales import Scale

Json = dict[str, Any]

COLORSCALE = "Cividis"


def layout(grid: Grid, scale: Scale, labels: Labels) -> Json:
    rows, columns = grid.cells.value.shape
    x_cells, x_strip = domains(columns)
    y_cells, y_strip = (upside_down(domain) for domain in domains(rows))
    return {
        "xaxis": columns_axis(labels.destinations, x_cells, f"to ({labels.destination_title})"),
        "xaxis2": columns_axis(["mean"], x_strip, ""),
        "yaxis": rows_axis(labels.sources, y_cells, f"from ({labels.source_title})"),
        "yaxis2": rows_axis(["mean of measured cells"], y_strip, ""),
        "coloraxis": coloraxis(grid, scale),
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "dragmode": "zoom",
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "font": {"family": "var(--font)", "size": 12, "color": "var(--ink)"},
        "paper_bgcolor": "var(--surface)",
        "plot_bgcolor": "var(--not-applicable)",
        # A redraw with new data keeps the zoom as long as this stays the same.
        "meta": " ".join(group.name for group in (*grid.sources, *grid.destinations)),
    }


def domains(count: int) -> tuple[list[float], list[float]]:
    """Split the width between the cells and, behind a gap, a strip about as wide as one cell."""
    strip_width = min(max(1 / (count + 1.4), 0.045), 0.2)
    gap = min(max(0.4 * strip_width, 0.012), 0.04)
    return [0.0, 1 - strip_width - gap], [1 - strip_width, 1.0]


def upside_down(domain: list[float]) -> list[float]:
    return [1 - domain[1], 1 - domain[0]]


def columns_axis(names: list[str], domain: list[float], title: str) -> Json:
    sides = {"side": "top", "anchor": "y", "tickangle": -40, "range": [-0.5, len(names) - 0.5]}
    return axis(names, domain, title) | sides


def rows_axis(names: list[str], domain: list[float], title: str) -> Json:
    sides = {"side": "left", "anchor": "x", "tickangle": 0, "range": [len(names) - 0.5, -0.5]}
    return axis(names, domain, title) | sides


def axis(names: list[str], domain: list[float], title: str) -> Json:
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
    }


def coloraxis(grid: Grid, scale: Scale) -> Json:
    return {
        "colorscale": COLORSCALE,
        "cmin": scale.low,
        "cmax": scale.high,
        "colorbar": {
            "title": {"text": "age" if grid.query.stat == "last" else grid.unit, "side": "top"},
            "tickmode": "array",
            "tickvals": list(scale.ticks),
            "ticktext": list(scale.ticks.values()),
            "thickness": 14,
            "len": 1,
            "outlinewidth": 0,
            "xpad": 12,
        },
    }
