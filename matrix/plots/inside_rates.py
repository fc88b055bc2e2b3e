"""The distribution of rates within transfers: how much of their time they run at which rate."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrix.answers.inside import InsideTransfers
from matrix.plots.distribution import BINS_PER_DECADE, Shape, base, rate_ticks
from sonar.notation.units import three_digits

Json = dict[str, Any]

# A rate below this part of the median counts as this: nothing moved, or nearly so.
SLOWEST = 0.02
# A capacity further away than this factor would leave no room for the rates.
FURTHEST = 10


def figure(inside: InsideTransfers) -> Json:
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
