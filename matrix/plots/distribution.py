"""How the rates of a link are distributed: on bins of one ratio, as rates are compared by ratio."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matrix.plots import MARGIN, ON_PAGE, Json
from matrix.plots.over_time import THERE, Look
from matrix.plots.scales import decades, round_step
from matrix.statistics.arrays import Floats, Integers
from sonar.notation.units import three_digits

# A bin is a quarter wider than the one before it.
BINS_PER_DECADE = 10


@dataclass(frozen=True)
class Bins:
    """``edges`` of bins in MB/s, one more than there are bins, and how many rates are in each."""

    edges: Floats
    counts: Integers


@dataclass(frozen=True)
class Shape:
    """The rates of one direction in one size class, in MB/s."""

    name: str
    rates: Floats
    look: Look = THERE


def bins_of(rates: Floats) -> Bins:
    """Put rates, at least one and all above 0, into bins from the lowest to the highest."""
    steps = np.floor(np.log10(rates) * BINS_PER_DECADE).astype(np.int64)
    counts = np.bincount(steps - steps.min())
    edges = 10 ** ((steps.min() + np.arange(len(counts) + 1)) / BINS_PER_DECADE)
    return Bins(edges, counts)


def figure(shapes: Sequence[Shape]) -> Json:
    """Return data and layout: the directions of a size class over one axis of rates.

    That axis is of log10: bars on a logarithmic axis would have no even width.
    """
    drawn = [shape for shape in shapes if shape.rates.size]
    most = max(bins_of(shape.rates).counts.max() for shape in drawn)
    layout = base() | rate_ticks(shapes)
    layout["yaxis"] = {
        "title": {"text": "transfers"},
        "gridcolor": "var(--line)",
        "rangemode": "tozero",
        "dtick": round_step(float(most)),
        "automargin": True,
    }
    logs = [float(np.log10(np.median(shape.rates))) for shape in drawn]
    layout["shapes"] = [
        {
            "type": "line",
            "x0": log,
            "x1": log,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"color": shape.look.colour, "width": 2, "dash": shape.look.dash},
        }
        for shape, log in zip(drawn, logs, strict=True)
    ]
    return {"data": [bars(shape) for shape in drawn], "layout": layout}


def bars(shape: Shape) -> Json:
    bins = bins_of(shape.rates)
    logs = np.log10(bins.edges)
    return {
        "type": "bar",
        "name": shape.name,
        "x": np.round((logs[:-1] + logs[1:]) / 2, 4).tolist(),
        "y": bins.counts.tolist(),
        "width": 1 / BINS_PER_DECADE,
        "marker": {"color": shape.look.band, "line": {"color": shape.look.colour, "width": 1}},
        "hovertext": [
            f"{shape.name}<br>{count} from {three_digits(low)} to {three_digits(high)} MB/s"
            for count, low, high in zip(
                bins.counts.tolist(), bins.edges[:-1].tolist(), bins.edges[1:].tolist(), strict=True
            )
        ],
        "hoverinfo": "text",
    }


def base() -> Json:
    return {
        "barmode": "overlay",
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": False,
        "margin": MARGIN,
        **ON_PAGE,
    }


def rate_ticks(shapes: Sequence[Shape]) -> Json:
    """Return the axis of rates, with ticks at 1, 2 and 5 of each decade."""
    rates = np.concatenate([shape.rates for shape in shapes])
    low, high = (float(np.log10(rate)) for rate in (rates.min(), rates.max()))
    low, high = low - 1 / BINS_PER_DECADE, high + 1 / BINS_PER_DECADE
    ticks = decades(10**low, 10**high)
    return {
        "xaxis": {
            "range": [low, high],
            "title": {"text": "MB/s"},
            "anchor": "free",
            "position": 0,
            "tickmode": "array",
            "tickvals": np.log10(ticks).tolist(),
            "ticktext": [f"{tick:g}" for tick in ticks],
            "automargin": True,
            "zeroline": False,
            "showgrid": False,
        }
    }
