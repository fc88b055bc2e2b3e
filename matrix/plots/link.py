"""One size class of a link over time: its tests, what is usual, failures, downtimes and notes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

import numpy as np

from matrix.answers.link.samples import Results
from matrix.answers.words.names import cut
from matrix.plots import AXIS, MARGIN, ON_PAGE, Json, over_time
from matrix.plots.over_time import THERE, Look, TimeSpan, time_axes
from matrix.plots.scales import decades
from matrix.statistics.arrays import Floats
from matrix.statistics.samples.quantiles import RunningMedian, running_median
from sonar.notation.units import MB, three_digits
from sonar.notation.windows import Window

MANY = 1500
# Points to compare with stand behind the others.
FAINTER = 0.6
LONGEST_NAME = 16
# Ticks stand at least this part of the height apart.
LEAST_APART = 0.12
# Rates that differ by more than this are compared by ratio, others from zero on.
LINEAR_UP_TO = 20
# Parts of the height: of the strip with the failures of a direction, and above it.
STRIP, GAP = 0.075, 0.03
# Where the legend begins, and where it does above the times of another window.
LEGEND, LEGEND_WITH_OTHER = 1.01, 1.08
# Pages and titles of files say the year and UTC.
TICKS = [
    {"dtickrange": [None, 43_200_000], "value": "%-d %b %H:%M"},
    {"dtickrange": [43_200_000, "M1"], "value": "%-d %b"},
    {"dtickrange": ["M1", None], "value": "%b %Y"},
]
TIME_AXIS = {
    "tickformatstops": TICKS,
    "anchor": "free",
    "position": 0,
    "gridcolor": "var(--line)",
    "automargin": True,
}
# Room above the fastest, and more of it for each row of words.
ROOM, ROOM_OF_ROW = 1.08, 0.07


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


@dataclass(frozen=True)
class UsualRange:
    """What is usual in the direction of the page, in MB/s: the median, and the range around it."""

    median: float
    low: float
    high: float


def name_of(source: str, destination: str) -> str:
    """Name a direction for a picture: Plotly reads some HTML, names must not become any."""
    return escape(f"{cut(source, LONGEST_NAME)} → {cut(destination, LONGEST_NAME)}")


def figure(
    lines: Sequence[Line],
    window: Window,
    spans: Sequence[TimeSpan],
    usual: UsualRange | None = None,
    other: Window | None = None,
) -> Json:
    """Return data and layout: the direction of the page, and what it is compared with, if anything.

    ``other`` is the window of lines on the second axis of time; both begin at the left.
    ``customdata`` of points and crosses are ids of transfers, for static/js/link.js.
    """
    points = sum(len(line.points) for line in lines)
    strip = STRIP * len(lines)
    data: list[Json] = []
    for line in lines:
        data.append(singles(line, "y", points))
        data.append(median(line, "y"))
    data += [crosses(line, height, "y2") for height, line in enumerate(lines)]
    words = over_time.words_of(spans, window)
    rows = max((1 + word["yshift"] // -over_time.ROW for word in words), default=0)
    axis = rate_axis(rates_of(lines, usual), ROOM + ROOM_OF_ROW * rows)
    layout = time_axes(window, other, TIME_AXIS) | {
        "legend": {
            "orientation": "h",
            "y": LEGEND_WITH_OTHER if other else LEGEND,
            "yanchor": "bottom",
            "x": 0,
            "font": {"size": 11},
            "itemwidth": 30,
        },
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "dragmode": "zoom",
        "margin": MARGIN,
        **ON_PAGE,
        "yaxis": axis | {"domain": [strip + GAP, 1]},
        "yaxis2": {
            "domain": [0, strip],
            "range": [-0.7, len(lines) - 0.3],
            "fixedrange": True,
            "tickmode": "array",
            "tickvals": [(len(lines) - 1) / 2],
            "ticktext": ["failed"],
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
        },
        "shapes": over_time.shapes_of(spans, window) + usual_shapes(usual),
        "annotations": words + usual_words(usual, logarithmic=axis.get("type") == "log"),
    }
    if not any(line.points.ok.any() for line in lines):
        text = {"text": "no transfer succeeded", "showarrow": False}
        layout["annotations"] += [text | {"xref": "paper", "x": 0.5, "yref": "paper", "y": 0.5}]
    for trace in data:
        trace["showlegend"] = bool(trace["x"])
    return {"data": data, "layout": layout}


def usual_shapes(usual: UsualRange | None) -> list[Json]:
    """Return the usual range as a band, and the usual rate as a dotted line in it."""
    if usual is None:
        return []
    across = {"xref": "paper", "yref": "y", "x0": 0, "x1": 1, "layer": "below", "name": "usual"}
    return [
        across
        | {
            "type": "rect",
            "y0": usual.low,
            "y1": usual.high,
            "fillcolor": "var(--there)",
            "opacity": 0.1,
            "line": {"width": 0},
        },
        across
        | {
            "type": "line",
            "y0": usual.median,
            "y1": usual.median,
            "line": {"color": "var(--there)", "width": 1.5, "dash": "dot"},
        },
    ]


def usual_words(usual: UsualRange | None, *, logarithmic: bool) -> list[Json]:
    if usual is None:
        return []
    low, high = three_digits(usual.low), three_digits(usual.high)
    return [
        {
            "name": "usual",
            "text": f"usual {three_digits(usual.median)}",
            "hovertext": f"usual: {three_digits(usual.median)} MB/s, mostly {low} to {high}",
            "xref": "paper",
            "yref": "y",
            "x": 1,
            # On an axis of logarithms shapes stand at values, but annotations at logarithms.
            "y": float(np.log10(usual.median)) if logarithmic else usual.median,
            "xanchor": "right",
            "yanchor": "bottom",
            "showarrow": False,
            "font": {"color": "var(--muted)", "size": 11},
            "bgcolor": "var(--surface)",
            "borderpad": 1,
        }
    ]


def rate_axis(rates: Floats, room: float) -> Json:
    """Return an axis on which these rates are in sight, with room above the fastest."""
    axis = {"title": {"text": "MB/s"}, **AXIS}
    if not rates.size:
        return axis | {"range": [0, 1], "tickvals": [], "ticktext": []}
    low, high = float(rates.min()), float(rates.max())
    if high <= LINEAR_UP_TO * low:
        return axis | {"type": "linear", "range": [0, room * high]}
    low, high = low / 1.25, high * (high / low) ** (room - 1)
    ticks = apart(decades(low, high), low, high)
    return axis | {
        "type": "log",
        "range": [float(np.log10(low)), float(np.log10(high))],
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
    }


def rates_of(lines: Sequence[Line], usual: UsualRange | None) -> Floats:
    """Return all rates that have to be in sight, in MB/s."""
    drawn = [line.points.rates[line.points.ok] / np.float64(MB) for line in lines]
    bounds = [usual.low, usual.high] if usual else []
    rates: Floats = np.concatenate([*drawn, bounds])
    return rates


def apart(ticks: Sequence[float], low: float, high: float) -> list[float]:
    """Leave out ticks without room beside rounder ones: those of 1, 2 and 5 come first."""
    least = LEAST_APART * np.log10(high / low)
    spaced: list[float] = []
    for tick in sorted(ticks, key=lambda tick: (f"{tick:e}"[0] not in "125", tick)):
        if all(abs(np.log10(tick / other)) >= least for other in spaced):
            spaced.append(tick)
    return sorted(spaced)
