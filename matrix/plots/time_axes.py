"""Axes of time: that of a window, and above it that of another one, on the same scale."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from matrix.plots.bands import milliseconds
from matrix.plots.looks import OTHER
from sonar.windows import Window

Json = dict[str, Any]

TIMES_IN_A_LINE = [
    {"dtickrange": [None, 43_200_000], "value": "%-d %b %H:%M"},
    {"dtickrange": [43_200_000, None], "value": "%-d %b %Y"},
]


def time_axes(window: Window, other: Window | None, own: Json) -> Json:
    """Return the axis of a window, with what is its own, and that of another if there is one.

    Both begin at the left, and are as long as the longer window.
    """
    length = max(each.end - each.start for each in (window, other) if each)
    axes: Json = {"xaxis": {"type": "date", "range": range_of(window.start, length)} | own}
    if other:
        axes["xaxis2"] = {
            "type": "date",
            "range": range_of(other.start, length),
            "overlaying": "x",
            "side": "top",
            "anchor": "free",
            "position": 1,
            "showgrid": False,
            "automargin": True,
            # By itself it would be "sync", whose times are those of pixels: 11:59 for noon.
            "tickmode": "auto",
            "nticks": 4,
            "tickfont": {"color": OTHER.colour, "size": 11},
            "tickformatstops": TIMES_IN_A_LINE,
        }
    return axes


def range_of(start: datetime, length: timedelta) -> list[int]:
    return [milliseconds(start), milliseconds(start + length)]
