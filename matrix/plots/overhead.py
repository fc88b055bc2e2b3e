"""Time over file size of a link: a point for each size class, and the line through them."""

from typing import Any

import numpy as np

from matrix.answers.link.overhead import Overhead
from matrix.plots import Json
from matrix.plots.distribution import base
from matrix.plots.scales import decades
from matrix.statistics.arrays import Floats
from sonar.notation.units import MB, format_bytes, format_count, format_seconds, three_digits

# Points of the line, which is curved on two logarithmic axes.
STEPS = 60
# The axes reach a little further than the classes.
MARGIN = 1.6


def figure(overhead: Overhead) -> Json:
    """Return data and layout, on logarithmic axes; a line that does not fit is dotted."""
    sizes = np.array([each.size for each in overhead.classes])
    bounds = float(sizes.min() / MARGIN), float(sizes.max() * MARGIN)
    drawn = np.geomspace(*bounds, STEPS)
    seconds = overhead.overhead + drawn / overhead.bandwidth
    if np.isnan(overhead.bandwidth):
        seconds = np.full(STEPS, overhead.overhead)
    heights = np.concatenate(
        [seconds, *([each.low, each.seconds, each.high] for each in overhead.classes)]
    )
    return {
        "data": [line(overhead, drawn, seconds), points(overhead)],
        "layout": base()
        | {
            "xaxis": axis(bounds, lambda size: format_bytes(size * MB), "file size"),
            "yaxis": axis(
                (float(heights.min() / MARGIN), float(heights.max() * MARGIN)),
                lambda seconds: f"{seconds:g} s",
                "time",
            )
            | {"gridcolor": "var(--line)"},
            "shapes": [half_mark(overhead, bounds)] if overhead.fits else [],
        },
    }


def line(overhead: Overhead, sizes: Floats, seconds: Floats) -> Json:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": np.round(sizes, 3).tolist(),
        "y": np.round(seconds, 4).tolist(),
        "line": {
            "color": "var(--there)",
            "width": 2,
            "dash": "solid" if overhead.fits else "dot",
        },
        "hoverinfo": "skip",
    }


def points(overhead: Overhead) -> Json:
    """Draw the medians, with the middle half of the times as bars."""
    classes = overhead.classes
    return {
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
            f"<br>middle half {three_digits(each.low)} to {three_digits(each.high)} s, "
            f"n = {format_count(each.ok)}"
            for each in classes
        ],
        "hoverinfo": "text",
    }


def half_mark(overhead: Overhead, bounds: tuple[float, float]) -> Json:
    """Mark the sizes of which more than half of the time is overhead."""
    end = min(max(overhead.half_size, bounds[0]), bounds[1])
    return {
        "type": "rect",
        "x0": bounds[0],
        "x1": end,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "fillcolor": "var(--there-band)",
        "opacity": 0.5,
        "line": {"width": 0},
        "layer": "below",
    }


def axis(bounds: tuple[float, float], written: Any, title: str) -> Json:  # noqa: ANN401
    ticks = [tick for tick in decades(*bounds) if bounds[0] <= tick <= bounds[1]]
    return {
        "type": "log",
        "range": np.log10(bounds).tolist(),
        "title": {"text": title},
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [written(tick) for tick in ticks],
        "automargin": True,
        "zeroline": False,
        "showgrid": title == "time",
    }
