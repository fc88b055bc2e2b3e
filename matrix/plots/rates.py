"""Rates without a clock: how those of a link are distributed, what overhead makes of them, and the
inside of transfers: the course of one, and the share of time at each rate of many.

Bins have one ratio, as rates are compared by ratio. Their axis is of log10: bars on a logarithmic
axis would have no even width.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from matrix.answers.link.overhead import Overhead
from matrix.answers.link.rate_profile import TransferProfiles
from matrix.plots import LEGEND_ABOVE, MARGIN, ON_PAGE, Json, band, log_axis, upright
from matrix.plots.over_time import THERE, Look
from matrix.plots.scales import decades, round_step
from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.transfers.rate_profile import Stretch
from sonar.notation.units import MB, format_bytes, format_count, format_seconds, three_digits

# A bin is a quarter wider than the one before it.
BINS_PER_DECADE = 10
# A rate within a transfer below this part of the median counts as this: nothing moved, or nearly.
SLOWEST = 0.02
# A capacity further away than this factor would leave no room for the rates.
FURTHEST = 10
# Points of the line of overhead, which is curved on two logarithmic axes, and how much further
# than the classes these reach.
STEPS = 60
FURTHER = 1.6
GRID = {"gridcolor": "var(--line)"}
BASE: Json = {
    "barmode": "overlay",
    "showlegend": False,
    "hovermode": "closest",
    "dragmode": False,
    "margin": MARGIN,
    **ON_PAGE,
}


@dataclass(frozen=True)
class Bins:
    """``logs`` of the edges of bins in MB/s, one more than there are, and what is in each."""

    logs: Floats
    counts: Floats | Integers

    @property
    def edges(self) -> Floats:
        return np.asarray(10**self.logs)

    def bounds(self) -> list[tuple[str, str]]:
        return list(pairwise(map(three_digits, self.edges.tolist())))


@dataclass(frozen=True)
class Shape:
    """The rates of one direction in one size class, in MB/s."""

    name: str
    rates: Floats
    look: Look = THERE


def bins_of(rates: Floats, weights: Floats | None = None) -> Bins:
    """Put rates, at least one and all above 0, into bins from the lowest to the highest."""
    steps = np.floor(np.log10(rates) * BINS_PER_DECADE).astype(np.int64)
    counts = np.bincount(steps - steps.min(), weights)
    return Bins((steps.min() + np.arange(len(counts) + 1)) / BINS_PER_DECADE, counts)


def distribution_figure(shapes: Sequence[Shape]) -> Json:
    """Return data and layout: the directions of a size class over one axis of rates."""
    data, medians, most = [], [], 0.0
    for shape in (shape for shape in shapes if shape.rates.size):
        bins, look = bins_of(shape.rates), shape.look
        texts = [
            f"{shape.name}<br>{count} from {low} to {high} MB/s"
            for count, (low, high) in zip(bins.counts.tolist(), bins.bounds(), strict=True)
        ]
        data.append({"name": shape.name} | bars(bins, bins.counts, texts, look))
        line = {"color": look.colour, "width": 2, "dash": look.dash}
        medians.append(upright(float(np.log10(np.median(shape.rates))), line))
        most = max(most, float(bins.counts.max()))
    layout = BASE | {
        "xaxis": rates_axis(np.concatenate([shape.rates for shape in shapes])),
        "yaxis": heights_axis("transfers") | {"dtick": round_step(most)},
        "shapes": medians,
    }
    return {"data": data, "layout": layout}


def bars(bins: Bins, heights: Floats | Integers, texts: list[str], look: Look = THERE) -> Json:
    return {
        "type": "bar",
        "x": np.round((bins.logs[:-1] + bins.logs[1:]) / 2, 4).tolist(),
        "y": heights.tolist(),
        "width": 1 / BINS_PER_DECADE,
        "marker": {"color": look.band, "line": {"color": look.colour, "width": 1}},
        "hovertext": texts,
        "hoverinfo": "text",
    }


def heights_axis(title: str) -> Json:
    return {"title": {"text": title}, "rangemode": "tozero", "automargin": True, **GRID}


def rates_axis(rates: Floats) -> Json:
    low, high = (float(np.log10(rate)) for rate in (rates.min(), rates.max()))
    low, high = low - 1 / BINS_PER_DECADE, high + 1 / BINS_PER_DECADE
    ticks = decades(10**low, 10**high)
    return {
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


def overhead_figure(overhead: Overhead) -> Json:
    """Return data and layout: time over file size, logarithmic, of each class, and the line.

    A line that does not fit is dotted. Where it does, the sizes are marked of which more than half
    of the time is overhead.
    """
    sizes = np.array([each.size for each in overhead.classes])
    least, most = float(sizes.min() / FURTHER), float(sizes.max() * FURTHER)
    drawn = np.geomspace(least, most, STEPS)
    seconds = overhead.overhead + drawn / overhead.bandwidth
    if np.isnan(overhead.bandwidth):
        seconds = np.full(STEPS, overhead.overhead)
    heights = np.concatenate(
        [seconds, *([each.low, each.seconds, each.high] for each in overhead.classes)]
    )
    lowest, highest = float(heights.min() / FURTHER), float(heights.max() * FURTHER)
    half = min(max(overhead.half_size, least), most)
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": np.round(drawn, 3).tolist(),
        "y": np.round(seconds, 4).tolist(),
        "line": {"color": "var(--there)", "width": 2, "dash": "solid" if overhead.fits else "dot"},
        "hoverinfo": "skip",
    }
    # The medians, with the middle half of the times as bars.
    classes = overhead.classes
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [each.size for each in classes],
        "y": [each.seconds for each in classes],
        "marker": {"color": "var(--there)", "size": 9},
        "error_y": {
            "type": "data",
            "array": [each.high - each.seconds for each in classes],
            "arrayminus": [each.seconds - each.low for each in classes],
            "color": "var(--there)",
            "thickness": 1.5,
        },
        "hovertext": [
            f"{each.name}, {format_bytes(each.size * MB)}: {format_seconds(each.seconds)}"
            f"<br>middle 50 %: {three_digits(each.low)} to {three_digits(each.high)} s, "
            f"n = {format_count(each.ok)}"
            for each in classes
        ],
        "hoverinfo": "text",
    }
    layout = BASE | {
        "xaxis": axis_of("file size", least, most, lambda size: format_bytes(size * MB)),
        "yaxis": axis_of("time", lowest, highest, lambda time: f"{time:g} s") | GRID,
        "shapes": [band(least, half, "var(--there-band)", 0.5)] if overhead.fits else [],
    }
    return {"data": [line, points], "layout": layout}


def axis_of(title: str, low: float, high: float, written: Callable[[float], str]) -> Json:
    ticks = {tick: written(tick) for tick in decades(low, high) if low <= tick <= high}
    plain = {"automargin": True, "zeroline": False, "showgrid": title == "time"}
    return {"title": {"text": title}, **log_axis(low, high, ticks), **plain}


def course_figure(parts: Sequence[Stretch]) -> Json | None:
    """Return data and layout: the rate as steps, and beside it the megabytes so far.

    Nothing for what is no course of a rate: a single stretch, or none in which a byte moved.
    """
    if len(parts) < 2 or not parts[-1].bytes:
        return None
    rising = {"rangemode": "tozero", "automargin": True, "zeroline": False}
    steps = {
        "type": "scatter",
        "mode": "lines",
        "name": "rate (MB/s, left)",
        "x": [edge for part in parts for edge in (part.start, part.end)],
        "y": [round(part.rate, 4) for part in parts for _ in range(2)],
        "line": {"color": "var(--there)", "width": 2},
        "hovertemplate": "%{y:.3r} MB/s at %{x:.1f} s<extra></extra>",
    }
    moved = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "moved so far (MB, right)",
        "x": [0.0, *(part.end for part in parts)],
        "y": [0.0, *(part.bytes / MB for part in parts)],
        "yaxis": "y2",
        "line": {"color": "var(--back)", "width": 1.5, "dash": "dot"},
        "marker": {"size": 4, "color": "var(--back)"},
        "hovertemplate": "%{y:.3r} MB after %{x:.1f} s<extra></extra>",
    }
    beside = {"overlaying": "y", "side": "right", "showgrid": False, "tickmode": "auto"}
    layout = {
        "xaxis": {"title": {"text": "seconds since the start"}, **rising, **GRID},
        "yaxis": {"title": {"text": "MB/s"}, **rising, **GRID},
        "yaxis2": {"title": {"text": "MB so far"}, **rising, **beside},
        "legend": LEGEND_ABOVE,
        "hovermode": "closest",
        "margin": MARGIN,
        **ON_PAGE,
    }
    return {"data": [steps, moved], "layout": layout}


def share_figure(inside: TransferProfiles) -> Json:
    """Return data and layout: bars of the share of time at each rate, and a capacity near them."""
    rates = np.maximum(inside.rates, SLOWEST * inside.middle[1])
    bins = bins_of(rates, inside.seconds)
    percent = 100 * bins.counts / inside.seconds.sum()
    texts = [
        f"{three_digits(share)} % of the time at {low} to {high} MB/s"
        for share, (low, high) in zip(percent.tolist(), bins.bounds(), strict=True)
    ]
    layout, nominal = BASE | {"yaxis": heights_axis("% of time")}, inside.nominal
    if nominal and nominal.mb_s < FURTHEST * rates.max():
        rates = np.append(rates, nominal.mb_s)
        log = float(np.log10(nominal.mb_s))
        words = {
            "x": log,
            "y": 1,
            "yref": "paper",
            "xanchor": "right",
            "yanchor": "top",
            "showarrow": False,
            "bgcolor": "var(--surface)",
            "text": f"nominal capacity of {nominal.site}",
        }
        line = {"color": "var(--ink)", "width": 1, "dash": "dash"}
        layout |= {"shapes": [upright(log, line)], "annotations": [words]}
    layout["xaxis"] = rates_axis(rates)
    return {"data": [bars(bins, np.round(percent, 2), texts)], "layout": layout}
