"""Plotly figures as plain dicts; colours that depend on the theme are names of CSS variables."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Json = dict[str, Any]

# What all figures have in common on a page, and around most of them.
ON_PAGE: Json = {
    "font": {"family": "var(--font)", "size": 12, "color": "var(--ink)"},
    "paper_bgcolor": "var(--surface)",
    "plot_bgcolor": "var(--surface)",
}
MARGIN: Json = {"l": 8, "r": 8, "t": 8, "b": 8}
LEGEND_ABOVE: Json = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
# Of an axis whose labels make room for themselves.
AXIS: Json = {"gridcolor": "var(--line)", "zeroline": False, "automargin": True}
# Of a shape from the foot of a picture to its top.
WHOLE_HEIGHT: Json = {"y0": 0, "y1": 1, "yref": "paper"}


def log_axis(low: float, high: float, ticks: Mapping[float, str]) -> Json:
    """Return what makes an axis logarithmic between two values, with these ticks."""
    return {
        "type": "log",
        "range": np.log10([low, high]).tolist(),
        "tickmode": "array",
        "tickvals": [*ticks],
        "ticktext": [*ticks.values()],
    }


def upright(x: float, line: Json) -> Json:
    return {"type": "line", "x0": x, "x1": x, "line": line, **WHOLE_HEIGHT}


def band(start: float, end: float, colour: str, opacity: float) -> Json:
    """Colour a part of the width, below all that is drawn."""
    looks = {"fillcolor": colour, "opacity": opacity, "line": {"width": 0}, "layer": "below"}
    return {"type": "rect", "x0": start, "x1": end, **WHOLE_HEIGHT, **looks}
