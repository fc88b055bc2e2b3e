"""Transfers from within: the rate of one over time, and the share of time at each rate of many."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from matrix.answers.link.rate_profile import TransferProfiles
from matrix.plots import LEGEND_ABOVE, MARGIN, ON_PAGE, Json
from matrix.plots.distribution import BINS_PER_DECADE, Shape, base, rate_ticks
from matrix.statistics.transfers.rate_profile import Stretch
from sonar.notation.units import MB, three_digits

# A rate below this part of the median counts as this: nothing moved, or nearly so.
SLOWEST = 0.02
# A capacity further away than this factor would leave no room for the rates.
FURTHEST = 10


def course_figure(parts: Sequence[Stretch]) -> Json | None:
    """Return data and layout: the rate as steps, and beside it the megabytes so far.

    Nothing for what is no course of a rate: a single stretch, or none in which a byte moved.
    """
    if len(parts) < 2 or not parts[-1].bytes:
        return None
    rising = {"rangemode": "tozero", "automargin": True, "zeroline": False}
    grid = {"gridcolor": "var(--line)"}
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
        "layout": {
            "xaxis": rising | {"title": {"text": "seconds since the start"}, **grid},
            "yaxis": rising | {"title": {"text": "MB/s"}, **grid},
            "yaxis2": rising
            | {
                "title": {"text": "MB so far"},
                "overlaying": "y",
                "side": "right",
                "showgrid": False,
                "tickmode": "auto",
            },
            "legend": LEGEND_ABOVE,
            "hovermode": "closest",
            "margin": MARGIN,
            **ON_PAGE,
        },
    }


def share_figure(inside: TransferProfiles) -> Json:
    """Return data and layout: bars of the share of time, on an axis of log10 of the rate."""
    rates = np.maximum(inside.rates, SLOWEST * inside.middle[1])
    steps = np.floor(np.log10(rates) * BINS_PER_DECADE).astype(np.int64)
    percent = 100 * np.bincount(steps - steps.min(), inside.seconds) / inside.seconds.sum()
    edges = (steps.min() + np.arange(len(percent) + 1)) / BINS_PER_DECADE
    drawn = [rates]
    is_near = inside.nominal is not None and inside.nominal.mb_s < FURTHEST * rates.max()
    if inside.nominal and is_near:
        drawn.append(np.array([inside.nominal.mb_s]))
    layout = base() | rate_ticks([Shape("", each) for each in drawn])
    layout["yaxis"] = {
        "title": {"text": "% of time"},
        "gridcolor": "var(--line)",
        "rangemode": "tozero",
        "automargin": True,
    }
    if inside.nominal and is_near:
        layout |= capacity_mark(inside.nominal.site, inside.nominal.mb_s)
    return {"data": [bars(percent, edges)], "layout": layout}


def bars(percent: np.ndarray[Any, Any], edges: np.ndarray[Any, Any]) -> Json:
    bounds = zip(percent.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return {
        "type": "bar",
        "x": np.round((edges[:-1] + edges[1:]) / 2, 4).tolist(),
        "y": np.round(percent, 2).tolist(),
        "width": 1 / BINS_PER_DECADE,
        "marker": {"color": "var(--there-band)", "line": {"color": "var(--there)", "width": 1}},
        "hovertext": [
            f"{three_digits(share)} % of the time at {three_digits(10**low)} to "
            f"{three_digits(10**high)} MB/s"
            for share, low, high in bounds
        ],
        "hoverinfo": "text",
    }


def capacity_mark(site: str, mb_s: float) -> Json:
    log = float(np.log10(mb_s))
    mark = {"x0": log, "x1": log, "y0": 0, "y1": 1, "yref": "paper"}
    words = {
        "x": log,
        "y": 1,
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "top",
        "showarrow": False,
        "bgcolor": "var(--surface)",
        "text": f"nominal capacity of {site}",
    }
    line = {"color": "var(--ink)", "width": 1, "dash": "dash"}
    return {"shapes": [{"type": "line", "line": line, **mark}], "annotations": [words]}
