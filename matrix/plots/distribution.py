"""How the rates of a link are distributed: on bins of one ratio, as rates are compared by ratio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from matrix.plots.scales import decades, round_step
from matrix.statistics.arrays import Floats, Integers
from sonar.units import three_digits

Json = dict[str, Any]

# A bin is a quarter wider than the one before it.
BINS_PER_DECADE = 10
GAP = 0.08
COLOURS = ("var(--there)", "var(--back)")
BANDS = ("var(--there-band)", "var(--back-band)")


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


def bins_of(rates: Floats) -> Bins:
    """Put rates, at least one and all above 0, into bins from the lowest to the highest."""
    places = np.floor(np.log10(rates) * BINS_PER_DECADE).astype(np.int64)
    counts = np.bincount(places - places.min())
    edges = 10 ** ((places.min() + np.arange(len(counts) + 1)) / BINS_PER_DECADE)
    return Bins(edges, counts)


def figure(panels: Sequence[tuple[str, Sequence[Shape]]]) -> Json:
    """Return data and layout: a panel for each size class, over one axis of rates.

    That axis is of log10: bars on a logarithmic axis would have no even width.
    """
    data: list[Json] = []
    layout: Json = base()
    shapes: list[Json] = []
    height = (1 + GAP) / len(panels)
    for number, (size, several) in enumerate(panels, 1):
        axis = "y" if number == 1 else f"y{number}"
        top = 1 - (number - 1) * height
        layout[axis.replace("y", "yaxis")] = {
            "domain": [max(top - height + GAP, 0), top],
            "title": {"text": escape(size)},
            "gridcolor": "var(--line)",
            "rangemode": "tozero",
            "dtick": round_step(most_in_a_bin(several)),
            "automargin": True,
        }
        for at, one in enumerate(several):
            if one.rates.size:
                data.append(bars(one, at, axis))
                shapes.append(median_mark(one, at, axis))
    return {"data": data, "layout": layout | rate_ticks(panels) | {"shapes": shapes}}


def most_in_a_bin(several: Sequence[Shape]) -> float:
    return max(float(bins_of(one.rates).counts.max()) for one in several if one.rates.size)


def bars(one: Shape, at: int, axis: str) -> Json:
    bins = bins_of(one.rates)
    logs = np.log10(bins.edges)
    return {
        "type": "bar",
        "name": one.name,
        "x": np.round((logs[:-1] + logs[1:]) / 2, 4).tolist(),
        "y": bins.counts.tolist(),
        "width": 1 / BINS_PER_DECADE,
        "yaxis": axis,
        "marker": {"color": BANDS[at], "line": {"color": COLOURS[at], "width": 1}},
        "hovertext": [
            f"{one.name}<br>{count} from {three_digits(low)} to {three_digits(high)} MB/s"
            for count, low, high in zip(
                bins.counts.tolist(), bins.edges[:-1].tolist(), bins.edges[1:].tolist(), strict=True
            )
        ],
        "hoverinfo": "text",
    }


def median_mark(one: Shape, at: int, axis: str) -> Json:
    place = float(np.log10(np.median(one.rates)))
    return {
        "type": "line",
        "x0": place,
        "x1": place,
        "y0": 0,
        "y1": 1,
        "yref": f"{axis} domain",
        "line": {"color": COLOURS[at], "width": 2, "dash": "solid" if at == 0 else "dash"},
    }


def base() -> Json:
    return {
        "barmode": "overlay",
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": False,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "font": {"family": "var(--font)", "size": 12, "color": "var(--ink)"},
        "paper_bgcolor": "var(--surface)",
        "plot_bgcolor": "var(--surface)",
    }


def rate_ticks(panels: Sequence[tuple[str, Sequence[Shape]]]) -> Json:
    """Return the axis of rates, with ticks at 1, 2 and 5 of each decade."""
    rates = np.concatenate([one.rates for _, several in panels for one in several])
    low, high = (float(np.log10(one)) for one in (rates.min(), rates.max()))
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
