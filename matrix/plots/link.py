"""One link over time: single results, their median and spread by bucket, failures, downtimes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

import numpy as np

from matrix.answers.link.samples import Results
from matrix.answers.series import BUCKETS, TimeSeries
from matrix.plots.labels import cut
from matrix.plots.scales import decades
from matrix.query.catalogue import BAND_WORDS, HIGH, LOW
from matrix.statistics.arrays import Flags, Integers
from sonar.units import MB
from sonar.windows import Window

Json = dict[str, Any]

# A band of fewer results is no spread, only their extremes.
FEWEST_IN_BAND = 5
LONGEST_NAME = 16
MANY = 1500
# Ticks of a panel stand at least this part of its height apart.
LEAST_APART = 0.12
# Parts of the height: of a strip with marks, and between two panels.
STRIP, GAP = 0.05, 0.03
# By direction, so that they differ without colour, too: there, and back.
COLOURS = ("var(--there)", "var(--back)")
BANDS = ("var(--there-band)", "var(--back-band)")
POINTS = ("circle", "diamond-open")
CROSSES = ("x-thin-open", "cross-thin-open")
DASHES = ("solid", "dash")
KINDS = {"downtime": "var(--downtime)", "note": "var(--note)"}


@dataclass(frozen=True)
class Line:
    """One direction of one size class; ``points`` are those results that are drawn singly."""

    name: str
    series: TimeSeries
    points: Results


@dataclass(frozen=True)
class Panel:
    """One size class: the direction of the page, and the reverse one if it is asked for."""

    size: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class TimeSpan:
    """A time that explains what is seen. ``kind`` is downtime or note, ``end`` may be open."""

    kind: str
    start: datetime
    end: datetime
    text: str


def name_of(source: str, destination: str) -> str:
    """Name a direction for a picture: Plotly reads some HTML, names must not become any."""
    return escape(f"{cut(source, LONGEST_NAME)} → {cut(destination, LONGEST_NAME)}")


def figure(panels: Sequence[Panel], window: Window, spans: Sequence[TimeSpan]) -> Json:
    """Return data and layout: panels below each other, over one axis of time.

    ``customdata`` of points and crosses are ids of transfers, for static/js/link.js.
    """
    places = domains(len(panels), has_spans=bool(spans))
    data: list[Json] = []
    layout = frame(window)
    look = points_look(sum(len(line.points) for panel in panels for line in panel.lines))
    said: list[Json] = []
    for number, panel in enumerate(panels):
        rates, strip = (f"y{2 * number + place}" for place in (2, 3))
        data += [
            trace for at, line in enumerate(panel.lines) for trace in of_line(line, at, rates, look)
        ]
        data += [crosses(line, at, strip) for at, line in enumerate(panel.lines)]
        layout |= {
            f"yaxis{rates[1:]}": rate_axis(panel, places[number][0]),
            f"yaxis{strip[1:]}": strip_axis("failed", places[number][1], len(panel.lines)),
        }
        said += nothing_came(panel, rates)
    # The first axis has the spans, which may be none.
    data += [bars(spans, kind, window) for kind in KINDS]
    layout |= {"yaxis": strip_axis("", [1 - STRIP, 1], 1), "shapes": shades(spans)}
    layout["annotations"] = said
    only_once_in_legend(data)
    return {"data": data, "layout": layout}


def domains(count: int, *, has_spans: bool) -> list[tuple[list[float], list[float]]]:
    """Return for each panel, from the top, where its rates and its failures stand."""
    top = 1 - (STRIP + GAP / 2) * has_spans
    height = (top + GAP) / count
    tops = [top - number * height for number in range(count)]
    return [
        ([one - height + GAP + STRIP, one], [one - height + GAP, one - height + GAP + STRIP])
        for one in tops
    ]


def frame(window: Window) -> Json:
    bounds = [milliseconds(window.start), milliseconds(window.end)]
    return {
        "xaxis": {
            "type": "date",
            "range": bounds,
            "title": {"text": "UTC"},
            "anchor": "free",
            "position": 0,
            "gridcolor": "var(--line)",
            "automargin": True,
        },
        "legend": {
            "orientation": "h",
            "y": 1.01,
            "yanchor": "bottom",
            "x": 0,
            "itemsizing": "constant",
        },
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "barmode": "overlay",
        "dragmode": "zoom",
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "font": {"family": "var(--font)", "size": 12, "color": "var(--ink)"},
        "paper_bgcolor": "var(--surface)",
        "plot_bgcolor": "var(--surface)",
    }


def rate_axis(panel: Panel, domain: list[float]) -> Json:
    axis = {
        "domain": domain,
        "title": {"text": f"{escape(panel.size)}, MB/s"},
        "gridcolor": "var(--line)",
        "zeroline": False,
        "automargin": True,
    }
    done = np.concatenate([line.points.rates[line.points.ok] for line in panel.lines]) / MB
    if not done.size:
        return axis | {"range": [0, 1], "tickvals": [], "ticktext": []}
    low, high = float(done.min()) / 1.25, float(done.max()) * 1.25
    ticks = apart(decades(low, high), low, high)
    return axis | {
        "type": "log",
        "range": [float(np.log10(low)), float(np.log10(high))],
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
    }


def apart(ticks: Sequence[float], low: float, high: float) -> list[float]:
    """Leave out ticks without room beside rounder ones: those of 1, 2 and 5 come first."""
    least = LEAST_APART * np.log10(high / low)
    kept: list[float] = []
    for tick in sorted(ticks, key=lambda one: (f"{one:e}"[0] not in "125", one)):
        if all(abs(np.log10(tick / other)) >= least for other in kept):
            kept.append(tick)
    return sorted(kept)


def nothing_came(panel: Panel, axis: str) -> list[Json]:
    """Say in a panel without any rate why it is bare."""
    if any(line.points.ok.any() for line in panel.lines):
        return []
    said = {"text": "no transfer came through", "showarrow": False}
    return [said | {"xref": "paper", "x": 0.5, "yref": axis, "y": 0.5}]


def strip_axis(title: str, domain: list[float], lines: int) -> Json:
    return {
        "domain": domain,
        "range": [-0.7, lines - 0.3],
        "fixedrange": True,
        "tickmode": "array",
        "tickvals": [(lines - 1) / 2] if title else [],
        "ticktext": [title] if title else [],
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
    }


def of_line(line: Line, at: int, axis: str, look: Json) -> list[Json]:
    """Draw one direction: its band behind, single results, its median in front."""
    return [band(line, at, axis), singles(line, at, axis, look), median(line, at, axis)]


def singles(line: Line, at: int, axis: str, look: Json) -> Json:
    done = line.points.taken(line.points.ok)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{'there' if at == 0 else 'back'}, {line.name}",
        "legendgroup": f"points {at}",
        "x": done.started.tolist(),
        "y": [rounded(rate / MB) for rate in done.rates.tolist()],
        "yaxis": axis,
        "customdata": ids(done),
        "cliponaxis": False,  # the newest stand at the edge
        "marker": {"symbol": POINTS[at], "color": COLOURS[at]} | look,
        "hovertemplate": f"{line.name}<br>%{{y:.3r}} MB/s<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC"
        "<extra></extra>",
    }


def points_look(count: int) -> Json:
    """Draw many points smaller and fainter, so that the median can be seen among them."""
    return {"size": 5, "opacity": 0.6} if count <= MANY else {"size": 3.5, "opacity": 0.35}


def crosses(line: Line, at: int, axis: str) -> Json:
    """Mark failures on a strip of their own: a failed transfer has no rate, not even 0."""
    failed = line.points.taken(~line.points.ok)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "failed" if at == 0 else "back: failed",
        "legendgroup": f"failed {at}",
        "x": failed.started.tolist(),
        "y": [at] * len(failed),
        "yaxis": axis,
        "customdata": ids(failed),
        "cliponaxis": False,
        "marker": {
            "symbol": CROSSES[at],
            "size": 7,
            "color": "var(--failure)",
            "line": {"width": 1.5, "color": "var(--failure)"},
        },
        "hovertemplate": f"{line.name}<br>failed<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC<extra></extra>",
    }


def median(line: Line, at: int, axis: str) -> Json:
    """Draw the median as steps: each is that of all results of its bucket."""
    series = line.series
    medians = series.rates["median"]
    x, at_bucket = steps(series, series.ok > 0)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{'' if at == 0 else 'back: '}median per {series.bucket}",
        "legendgroup": f"median {at}",
        "x": x,
        "y": [one if one is None else rounded(medians[one]) for one in at_bucket],
        "text": ["" if one is None else f"median of {series.ok[one]}" for one in at_bucket],
        "yaxis": axis,
        "line": {"color": COLOURS[at], "width": 2, "dash": DASHES[at]},
        "hovertemplate": f"{line.name}<br>%{{y:.3r}} MB/s, %{{text}}<br>"
        f"{series.bucket} from %{{x|%Y-%m-%d %H:%M}} UTC<extra></extra>",
    }


def band(line: Line, at: int, axis: str) -> Json:
    """Shade what lies between the ends of the band, where that says something."""
    x: list[int | None] = []
    y: list[float | None] = []
    for some in neighbours(line.series.ok >= FEWEST_IN_BAND):
        there = edges(line.series, some)
        x += [*there, *reversed(there), None]
        high, low = (np.repeat(line.series.rates[end.name][some], 2) for end in (HIGH, LOW))
        y += [*map(rounded, high), *map(rounded, low[::-1]), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{'' if at == 0 else 'back: '}{BAND_WORDS}",
        "legendgroup": f"band {at}",
        "x": x,
        "y": y,
        "yaxis": axis,
        "fill": "toself",
        "fillcolor": BANDS[at],
        "line": {"width": 0, "color": COLOURS[at]},
        "hoverinfo": "skip",
    }


def steps(series: TimeSeries, shown: Flags) -> tuple[list[int | None], list[int | None]]:
    """Return both edges of each shown bucket and which one it is; None where some are left out."""
    x: list[int | None] = []
    at: list[int | None] = []
    for some in neighbours(shown):
        x += [*edges(series, some), None]
        at += [*np.repeat(some, 2).tolist(), None]
    return x, at


def neighbours(shown: Flags) -> list[Integers]:
    """Return the buckets that are shown, those that follow each other together."""
    places = np.flatnonzero(shown)
    parts = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    return [part for part in parts if part.size]


def edges(series: TimeSeries, buckets: Integers) -> list[int]:
    starts = np.round(series.starts[buckets] * 1000).astype(np.int64)
    both: list[int] = np.stack([starts, starts + BUCKETS[series.bucket]], axis=1).ravel().tolist()
    return both


def bars(spans: Sequence[TimeSpan], kind: str, window: Window) -> Json:
    """Draw the spans as bars above the panels, which say under the pointer what they are."""
    some = [one for one in spans if one.kind == kind]
    inside = [(max(one.start, window.start), min(one.end, window.end)) for one in some]
    return {
        "type": "bar",
        "orientation": "h",
        "name": kind,
        "legendgroup": kind,
        "base": [milliseconds(start) for start, _ in inside],
        "x": [milliseconds(end) - milliseconds(start) for start, end in inside],
        "y": [0] * len(some),
        "width": 0.8,
        "marker": {"color": KINDS[kind]},
        "hovertext": [f"{kind}: {escape(one.text)}" for one in some],
        "hoverinfo": "text",
    }


def shades(spans: Sequence[TimeSpan]) -> list[Json]:
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": milliseconds(one.start),
            "x1": milliseconds(one.end),
            "y0": 0,
            "y1": 1,
            "fillcolor": KINDS[one.kind],
            "opacity": 0.12,
            "line": {"width": 0},
            "layer": "below",
        }
        for one in spans
    ]


def only_once_in_legend(data: Iterable[Json]) -> None:
    seen: set[str] = set()
    for trace in data:
        group = trace["legendgroup"]
        trace["showlegend"] = group not in seen and bool(trace["x"])
        seen |= {group} if trace["x"] else set()


def ids(results: Results) -> list[str]:
    return [one.tobytes().hex() for one in results.ids]


def rounded(rate: float) -> float:
    return float(f"{rate:.4g}")


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
