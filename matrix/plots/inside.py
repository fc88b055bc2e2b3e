"""One transfer from within: its rate between one progress sample and the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matrix.statistics.transfers.rate_profile import Stretch
from sonar.notation.units import MB

Json = dict[str, Any]


def figure(parts: Sequence[Stretch]) -> Json | None:
    """Return data and layout: the rate as steps, and beside it the megabytes so far.

    Nothing for what is no course of a rate: a single stretch, or none in which a byte moved.
    """
    if len(parts) < 2 or not parts[-1].bytes:
        return None
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": "rate (MB/s, left)",
                "x": [edge for part in parts for edge in (part.start, part.end)],
                "y": [round(part.rate, 4) for part in parts for _ in range(2)],
                "line": {"color": "var(--there)", "width": 2},
                "hovertemplate": "%{y:.3r} MB/s at %{x:.1f} s<extra></extra>",
            },
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": "moved so far (MB, right)",
                "x": [0.0, *(part.end for part in parts)],
                "y": [0.0, *(part.bytes / MB for part in parts)],
                "yaxis": "y2",
                "line": {"color": "var(--back)", "width": 1.5, "dash": "dot"},
                "marker": {"size": 4, "color": "var(--back)"},
                "hovertemplate": "%{y:.3r} MB after %{x:.1f} s<extra></extra>",
            },
        ],
        "layout": layout(),
    }


def layout() -> Json:
    rising = {"rangemode": "tozero", "automargin": True, "zeroline": False}
    return {
        "xaxis": rising
        | {"title": {"text": "seconds since the start"}, "gridcolor": "var(--line)"},
        "yaxis": rising | {"title": {"text": "MB/s"}, "gridcolor": "var(--line)"},
        "yaxis2": rising
        | {
            "title": {"text": "MB so far"},
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            "tickmode": "auto",
        },
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "hovermode": "closest",
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "font": {"family": "var(--font)", "size": 12, "color": "var(--ink)"},
        "paper_bgcolor": "var(--surface)",
        "plot_bgcolor": "var(--surface)",
    }
