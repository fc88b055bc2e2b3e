"""A line without axes, beside a number: an SVG that needs no script."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.samples.quantiles import RunningMedian
from sonar.notation.windows import Window

WIDTH, HEIGHT = 200, 40
# Room for the width of the line, and below it for marks of failures.
EDGE, FOOT = 3, 8


@dataclass(frozen=True)
class Sparkline:
    """``lines`` are the points of polylines, ``failed`` places from left to right, in SVG units.

    ``usual`` is the height of the usual rate, empty where it is not known.
    """

    lines: list[str]
    failed: list[float]
    usual: float | None

    width = WIDTH
    height = HEIGHT
    foot = HEIGHT - FOOT + 2


def sparkline(median: RunningMedian, failed: Integers, usual: float, window: Window) -> Sparkline:
    """Draw a running median over a window, from zero up, and where tests failed (Unix ms)."""
    drawn = ~np.isnan(median.values)
    top = float(np.max(np.append(median.values[drawn], 0 if np.isnan(usual) else usual)) or 1)
    x, y = across(median.started, window), upward(median.values, top)
    parts = np.split(np.arange(len(x)), np.flatnonzero(~drawn))
    lines = [[at for at in part.tolist() if drawn[at]] for part in parts]
    return Sparkline(
        lines=[" ".join(f"{x[at]:.1f},{y[at]:.1f}" for at in line) for line in lines if line],
        failed=sorted({round(float(place)) for place in across(failed, window)}),
        usual=None if np.isnan(usual) else float(upward(np.array([usual]), top)[0].round(1)),
    )


def across(started: Integers, window: Window) -> Floats:
    start, length = window.start.timestamp() * 1000, (window.end - window.start).total_seconds()
    share = (started - start) / np.float64(length * 1000)
    places: Floats = EDGE + share * (WIDTH - 2 * EDGE)
    return places


def upward(values: Floats, top: float) -> Floats:
    room = HEIGHT - FOOT - EDGE
    return EDGE + room * (1 - values / top)
