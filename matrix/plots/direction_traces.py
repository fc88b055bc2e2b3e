"""One direction of a link over time: single results, their running median, and failures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from matrix.answers.link.samples import Results
from matrix.statistics.running import RunningMedian, running_median
from sonar.units import MB

Json = dict[str, Any]

MANY = 1500
# By direction, so that they differ without colour, too: there, and back.
COLOURS = ("var(--there)", "var(--back)")
POINTS = ("circle", "diamond-open")
CROSSES = ("x-thin-open", "cross-thin-open")
DASHES = ("solid", "dash")


@dataclass(frozen=True)
class Line:
    """One direction of one size class; ``points`` are those results that are drawn singly."""

    name: str
    results: Results
    points: Results

    @cached_property
    def median(self) -> RunningMedian:
        done = self.results.taken(self.results.ok)
        return running_median(done.started, done.rates / np.float64(MB))


def singles(line: Line, direction: int, axis: str, count: int) -> Json:
    """Draw each transfer that came through; ``count`` is that of all points in the picture."""
    done = line.points.taken(line.points.ok)
    # Many are smaller and fainter, so that the median can be seen among them.
    look = {"size": 5.5, "opacity": 0.65} if count <= MANY else {"size": 3.5, "opacity": 0.35}
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "each test" if direction == 0 else "reverse: each test",
        "legendgroup": f"points {direction}",
        "x": done.started.tolist(),
        "y": [rounded(rate / MB) for rate in done.rates.tolist()],
        "yaxis": axis,
        "customdata": [identifier.tobytes().hex() for identifier in done.ids],
        "cliponaxis": False,  # the newest stand at the edge
        "marker": {"symbol": POINTS[direction], "color": COLOURS[direction]} | look,
        "hovertemplate": f"{line.name}<br>%{{y:.3r}} MB/s<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC"
        "<extra></extra>",
    }


def crosses(line: Line, direction: int, axis: str) -> Json:
    """Mark failures on a strip of their own: a failed transfer has no rate, not even 0."""
    failed = line.points.taken(~line.points.ok)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "failed" if direction == 0 else "reverse: failed",
        "legendgroup": f"failed {direction}",
        "x": failed.started.tolist(),
        "y": [direction] * len(failed),
        "yaxis": axis,
        "customdata": [identifier.tobytes().hex() for identifier in failed.ids],
        "cliponaxis": False,
        "marker": {
            "symbol": CROSSES[direction],
            "size": 8,
            "color": "var(--failing)",
            "line": {"width": 2, "color": "var(--failing)"},
        },
        "hovertemplate": f"{line.name}<br>failed<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC<extra></extra>",
    }


def median(line: Line, direction: int, axis: str) -> Json:
    """Draw the running median, with a gap where nothing came through for long."""
    running = line.median
    gap = np.isnan(running.values)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{'' if direction == 0 else 'reverse: '}median of {running.around} tests",
        "legendgroup": f"median {direction}",
        "x": running.started.tolist(),
        "y": [
            None if is_gap else rounded(value)
            for value, is_gap in zip(running.values.tolist(), gap.tolist(), strict=True)
        ],
        "yaxis": axis,
        "line": {"color": COLOURS[direction], "width": 2, "dash": DASHES[direction]},
        "hovertemplate": f"{line.name}<br>%{{y:.3r}} MB/s, median of {running.around} tests<br>"
        "around %{x|%Y-%m-%d %H:%M} UTC<extra></extra>",
    }


def rounded(rate: float) -> float:
    return float(f"{rate:.4g}")
