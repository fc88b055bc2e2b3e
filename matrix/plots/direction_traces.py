"""One direction of a link over time: single results, failures, and by bucket median and spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matrix.answers.link.samples import Results
from matrix.answers.series import BUCKETS, TimeSeries
from matrix.query.catalogue import BAND_WORDS, HIGH, LOW
from matrix.statistics.arrays import Flags, Integers
from sonar.units import MB

Json = dict[str, Any]

# A band of fewer results is no spread, only their extremes.
FEWEST_IN_BAND = 5
MANY = 1500
# By direction, so that they differ without colour, too: there, and back.
COLOURS = ("var(--there)", "var(--back)")
BANDS = ("var(--there-band)", "var(--back-band)")
POINTS = ("circle", "diamond-open")
CROSSES = ("x-thin-open", "cross-thin-open")
DASHES = ("solid", "dash")


@dataclass(frozen=True)
class Line:
    """One direction of one size class; ``points`` are those results that are drawn singly."""

    name: str
    series: TimeSeries
    points: Results


def singles(line: Line, direction: int, axis: str, count: int) -> Json:
    """Draw each transfer that came through; ``count`` is that of all points in the picture."""
    done = line.points.taken(line.points.ok)
    # Many are smaller and fainter, so that the median can be seen among them.
    look = {"size": 5, "opacity": 0.6} if count <= MANY else {"size": 3.5, "opacity": 0.35}
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{'there' if direction == 0 else 'back'}, {line.name}",
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
        "name": "failed" if direction == 0 else "back: failed",
        "legendgroup": f"failed {direction}",
        "x": failed.started.tolist(),
        "y": [direction] * len(failed),
        "yaxis": axis,
        "customdata": [identifier.tobytes().hex() for identifier in failed.ids],
        "cliponaxis": False,
        "marker": {
            "symbol": CROSSES[direction],
            "size": 7,
            "color": "var(--failure)",
            "line": {"width": 1.5, "color": "var(--failure)"},
        },
        "hovertemplate": f"{line.name}<br>failed<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC<extra></extra>",
    }


def median(line: Line, direction: int, axis: str) -> Json:
    """Draw the median as steps, with a gap between them where buckets have no transfer.

    Each step is of all results of its bucket, and as wide as that.
    """
    series = line.series
    medians = series.rates["median"]
    x: list[int | None] = []
    y: list[float | None] = []
    texts: list[str] = []
    for stretch in stretches_of(series.ok > 0):
        x += [*edges(series, stretch), None]
        buckets = np.repeat(stretch, 2).tolist()
        y += [*(rounded(medians[bucket]) for bucket in buckets), None]
        texts += [*(f"median of {series.ok[bucket]}" for bucket in buckets), ""]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{'' if direction == 0 else 'back: '}median per {series.bucket}",
        "legendgroup": f"median {direction}",
        "x": x,
        "y": y,
        "text": texts,
        "yaxis": axis,
        "line": {"color": COLOURS[direction], "width": 2, "dash": DASHES[direction]},
        "hovertemplate": f"{line.name}<br>%{{y:.3r}} MB/s, %{{text}}<br>"
        f"{series.bucket} from %{{x|%Y-%m-%d %H:%M}} UTC<extra></extra>",
    }


def band(line: Line, direction: int, axis: str) -> Json:
    """Shade what lies between the ends of the band, where that says something."""
    x: list[int | None] = []
    y: list[float | None] = []
    for stretch in stretches_of(line.series.ok >= FEWEST_IN_BAND):
        there = edges(line.series, stretch)
        x += [*there, *reversed(there), None]
        high, low = (np.repeat(line.series.rates[end.name][stretch], 2) for end in (HIGH, LOW))
        y += [*map(rounded, high), *map(rounded, low[::-1]), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{'' if direction == 0 else 'back: '}{BAND_WORDS}",
        "legendgroup": f"band {direction}",
        "x": x,
        "y": y,
        "yaxis": axis,
        "fill": "toself",
        "fillcolor": BANDS[direction],
        "line": {"width": 0, "color": COLOURS[direction]},
        "hoverinfo": "skip",
    }


def stretches_of(drawn: Flags) -> list[Integers]:
    """Return the buckets that are drawn, those that follow each other together."""
    buckets = np.flatnonzero(drawn)
    parts = np.split(buckets, np.flatnonzero(np.diff(buckets) > 1) + 1)
    return [part for part in parts if part.size]


def edges(series: TimeSeries, buckets: Integers) -> list[int]:
    """Return where each bucket begins and ends, in milliseconds since 1970."""
    starts = np.round(series.starts[buckets] * 1000).astype(np.int64)
    both: list[int] = np.stack([starts, starts + BUCKETS[series.bucket]], axis=1).ravel().tolist()
    return both


def rounded(rate: float) -> float:
    return float(f"{rate:.4g}")
