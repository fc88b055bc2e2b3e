"""Plotly figures as plain dicts; colours that depend on the theme are names of CSS variables."""

from typing import Any

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
