"""One link over time: a panel for each size class over one axis of time, downtimes and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

import numpy as np

from matrix.plots.direction_traces import Line, band, crosses, median, singles
from matrix.plots.labels import cut
from matrix.plots.scales import decades
from sonar.units import MB
from sonar.windows import Window

Json = dict[str, Any]

LONGEST_NAME = 16
# Ticks of a panel stand at least this part of its height apart.
LEAST_APART = 0.12
# Parts of the height: of a strip with marks, and between two panels.
STRIP, GAP = 0.05, 0.03
KINDS = {"downtime": "var(--downtime)", "note": "var(--note)"}


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
    panel_domains = domains(len(panels), has_spans=bool(spans))
    points = sum(len(line.points) for panel in panels for line in panel.lines)
    data: list[Json] = []
    layout = frame(window)
    annotations: list[Json] = []
    for number, (panel, (rates_domain, strip_domain)) in enumerate(
        zip(panels, panel_domains, strict=True)
    ):
        rates, strip = f"y{2 * number + 2}", f"y{2 * number + 3}"
        for direction, line in enumerate(panel.lines):
            # The band stands behind, the median in front.
            data.append(band(line, direction, rates))
            data.append(singles(line, direction, rates, points))
            data.append(median(line, direction, rates))
        data += [crosses(line, direction, strip) for direction, line in enumerate(panel.lines)]
        layout |= {
            f"yaxis{rates[1:]}": rate_axis(panel, rates_domain),
            f"yaxis{strip[1:]}": strip_axis("failed", strip_domain, len(panel.lines)),
        }
        if not any(line.points.ok.any() for line in panel.lines):
            text = {"text": "no transfer came through", "showarrow": False}
            annotations.append(text | {"xref": "paper", "x": 0.5, "yref": rates, "y": 0.5})
    # The first axis has the spans, which may be none.
    data += [bars(spans, kind, window) for kind in KINDS]
    layout |= {"yaxis": strip_axis("", [1 - STRIP, 1], 1), "shapes": shades(spans)}
    layout["annotations"] = annotations
    show_once_in_legend(data)
    return {"data": data, "layout": layout}


def domains(count: int, *, has_spans: bool) -> list[tuple[list[float], list[float]]]:
    """Return for each panel, from the top, where its rates and its failures stand."""
    top = 1 - (STRIP + GAP / 2) * has_spans
    height = (top + GAP) / count
    tops = [top - number * height for number in range(count)]
    return [
        ([top - height + GAP + STRIP, top], [top - height + GAP, top - height + GAP + STRIP])
        for top in tops
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
    spaced: list[float] = []
    for tick in sorted(ticks, key=lambda tick: (f"{tick:e}"[0] not in "125", tick)):
        if all(abs(np.log10(tick / other)) >= least for other in spaced):
            spaced.append(tick)
    return sorted(spaced)


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


def bars(spans: Sequence[TimeSpan], kind: str, window: Window) -> Json:
    """Draw the spans as bars above the panels, which say under the pointer what they are."""
    of_kind = [span for span in spans if span.kind == kind]
    inside = [(max(span.start, window.start), min(span.end, window.end)) for span in of_kind]
    return {
        "type": "bar",
        "orientation": "h",
        "name": kind,
        "legendgroup": kind,
        "base": [milliseconds(start) for start, _ in inside],
        "x": [milliseconds(end) - milliseconds(start) for start, end in inside],
        "y": [0] * len(of_kind),
        "width": 0.8,
        "marker": {"color": KINDS[kind]},
        "hovertext": [f"{kind}: {escape(span.text)}" for span in of_kind],
        "hoverinfo": "text",
    }


def shades(spans: Sequence[TimeSpan]) -> list[Json]:
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": milliseconds(span.start),
            "x1": milliseconds(span.end),
            "y0": 0,
            "y1": 1,
            "fillcolor": KINDS[span.kind],
            "opacity": 0.12,
            "line": {"width": 0},
            "layer": "below",
        }
        for span in spans
    ]


def show_once_in_legend(data: Sequence[Json]) -> None:
    groups: set[str] = set()
    for trace in data:
        group = trace["legendgroup"]
        trace["showlegend"] = group not in groups and bool(trace["x"])
        groups |= {group} if trace["x"] else set()


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
