"""Axes of time: that of a window, and above it that of another one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from matrix.plots.bands import milliseconds
from matrix.plots.looks import OTHER
from sonar.notation.windows import Window

Json = dict[str, Any]

# A window of which results fill a smaller part than this begins with the first of them; so much
# stands before it at least.
FILLED, BEFORE_FIRST = 0.1, timedelta(minutes=5)
# Of windows whose lengths differ by more than this, the shorter would be too small to be seen.
ALIKE = 2
TIMES_IN_A_LINE = [
    {"dtickrange": [None, 43_200_000], "value": "%-d %b %H:%M"},
    {"dtickrange": [43_200_000, None], "value": "%-d %b"},
]


def time_axes(window: Window, other: Window | None, own: Json) -> Json:
    """Return the axis of a window, with what is its own, and that of another if there is one.

    Both begin at the left and have one scale, as long as the longer window. Where one is more than
    twice as long as the other, each fills the picture.
    """
    length = window.end - window.start
    of_other = other.end - other.start if other else length
    if length <= ALIKE * of_other and of_other <= ALIKE * length:
        length = of_other = max(length, of_other)
    axes: Json = {"xaxis": {"type": "date", "range": range_of(window.start, length)} | own}
    if other:
        axes["xaxis2"] = {
            "type": "date",
            "range": range_of(other.start, of_other),
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


def filled(window: Window, first: datetime) -> Window:
    """Return the part of a window that has results, of which the first began then.

    That is all of it, unless they fill so little that they would all stand at its right edge.
    """
    rest = window.end - first
    if rest >= FILLED * (window.end - window.start):
        return window
    return Window(max(window.start, first - max(rest / 20, BEFORE_FIRST)), window.end)


def range_of(start: datetime, length: timedelta) -> list[int]:
    return [milliseconds(start), milliseconds(start + length)]
