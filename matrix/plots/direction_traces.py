"""One direction of a link over time: single results, their running median, and failures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from matrix.answers.link.samples import Results
from matrix.plots.looks import THERE, Look
from matrix.statistics.samples.quantiles import RunningMedian, running_median
from sonar.notation.units import MB

Json = dict[str, Any]

MANY = 1500
# Points to compare with stand behind the others.
FAINTER = 0.6


@dataclass(frozen=True)
class Line:
    """One direction of one size class; ``points`` are those results that are drawn singly."""

    name: str
    results: Results
    points: Results
    look: Look = THERE

    @cached_property
    def median(self) -> RunningMedian:
        done = self.results.taken(self.results.ok)
        return running_median(done.started, done.rates / np.float64(MB))


def singles(line: Line, axis: str, count: int) -> Json:
    """Draw each transfer that came through; ``count`` is that of all points in the picture."""
    done = line.points.taken(line.points.ok)
    # Many are smaller and fainter, so that the median can be seen among them.
    size, opacity = (5.5, 0.65) if count <= MANY else (3.5, 0.35)
    look = line.look
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{look.prefix}each test",
        "legendgroup": f"points {look.prefix}",
        "xaxis": look.axis,
        "x": done.started.tolist(),
        "y": [rounded(rate / MB) for rate in done.rates.tolist()],
        "yaxis": axis,
        "customdata": [identifier.tobytes().hex() for identifier in done.ids],
        "cliponaxis": False,  # the newest stand at the edge
        "marker": {
            "symbol": look.point,
            "color": look.colour,
            "size": size,
            "opacity": opacity * (FAINTER if look.faint else 1),
        },
        "hovertemplate": f"{line.name}<br>%{{y:.3r}} MB/s<br>%{{x|%-d %b %H:%M:%S}} UTC"
        "<extra></extra>",
    }


def crosses(line: Line, height: int, axis: str) -> Json:
    """Mark failures on a strip of their own: a failed transfer has no rate, not even 0."""
    look = line.look
    failed = line.points.taken(~line.points.ok)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{look.prefix}failed",
        "legendgroup": f"failed {look.prefix}",
        "xaxis": look.axis,
        "x": failed.started.tolist(),
        "y": [height] * len(failed),
        "yaxis": axis,
        "customdata": [identifier.tobytes().hex() for identifier in failed.ids],
        "cliponaxis": False,
        "marker": {
            "symbol": look.cross,
            "size": 8,
            "color": "var(--failing)",
            "line": {"width": 2, "color": "var(--failing)"},
        },
        "hovertemplate": f"{line.name}<br>failed<br>%{{x|%-d %b %H:%M:%S}} UTC<extra></extra>",
    }


def median(line: Line, axis: str) -> Json:
    """Draw the running median, with a gap where nothing came through for long."""
    running, look = line.median, line.look
    gap = np.isnan(running.values)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{look.prefix}median of {running.around} tests",
        "legendgroup": f"median {look.prefix}",
        "xaxis": look.axis,
        "x": running.started.tolist(),
        "y": [
            None if is_gap else rounded(value)
            for value, is_gap in zip(running.values.tolist(), gap.tolist(), strict=True)
        ],
        "yaxis": axis,
        "line": {"color": look.colour, "width": 2, "dash": look.dash},
        "hovertemplate": f"{line.name}<br>%{{y:.3r}} MB/s, median of {running.around} tests<br>"
        "around %{x|%-d %b %H:%M} UTC<extra></extra>",
    }


def rounded(rate: float) -> float:
    return float(f"{rate:.4g}")
