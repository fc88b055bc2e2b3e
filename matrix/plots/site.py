"""A row or a column of the matrix of sites as bars, the fastest first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from matrix.answers.site.reports import ReportCell
from matrix.plots.labels import cut
from sonar.units import format_count, three_digits

Json = dict[str, Any]

# A bar without a name says nothing, and more of them with one take screens.
MOST_BARS = 40
LONGEST_NAME = 26
BAR_REM = 1.25
AXIS_REM = 6.5
MOST_DECADES = 3
PARTNER = {"source": "destination", "destination": "source"}
# How the bar of a cell with a rate looks: colour and opacity.
BARS = {
    "measured": ("var(--accent)", 1.0),
    "stale": ("var(--accent)", 0.4),
    "down": ("var(--down)", 1.0),
}
# What stands where there is no rate, or beside one that is not fresh: symbol and colour.
MARKS = {
    "failed": ("x-thin-open", "var(--alarm)"),
    "stale": ("hourglass-open", "var(--ink)"),
    "untested": ("circle", "var(--untested-mark)"),
    "down": ("line-ew-open", "var(--ink)"),
}


def height_rem(count: int) -> float:
    """Return how high the picture of so many cells is, in rem."""
    return AXIS_REM + BAR_REM * min(max(count, 3), MOST_BARS)


def rates_between(cells: Sequence[ReportCell]) -> tuple[float, float]:
    """Return the bounds of an axis that has room for all rates, and their marks and numbers."""
    rates = [cell.mean for cell in cells if cell.mean > 0]
    return (min(rates) / 2, max(rates) * 2.5) if rates else (1.0, 100.0)


def figure(
    cells: Sequence[ReportCell], end: str, site: str, mean: float, bounds: tuple[float, float]
) -> Json:
    """Return data and layout for the cells of a site at one end, with their mean as a line.

    Rates are in MB/s on a logarithmic axis with these bounds. Of more than MOST_BARS cells
    those are drawn that fail, and the slowest.
    """
    drawn = sorted(sorted(cells, key=worst_first)[:MOST_BARS], key=fastest_first)
    partners = [getattr(cell, PARTNER[end]) for cell in drawn]
    data = [
        *(bars(drawn, state) for state in BARS),
        *(marks(drawn, state, bounds[0]) for state in MARKS),
    ]
    own, others = ("from", "to") if end == "source" else ("to", "from")
    title = f"{own} {escape(cut(site, LONGEST_NAME))}<br>{others} each {PARTNER[end]}, mean rate"
    return {
        "data": [trace for trace in data if trace["y"]],
        "layout": layout(partners, title, bounds) | line_at(mean),
    }


def worst_first(cell: ReportCell) -> tuple[bool, bool, float]:
    """Put what fails first, then the slowest, and what was not tested last."""
    blank = math.isnan(cell.mean)
    return cell.state != "failed", blank, 0.0 if blank else cell.mean


def fastest_first(cell: ReportCell) -> tuple[bool, float, str]:
    """Put the fastest first, and what has no rate last."""
    blank = math.isnan(cell.mean)
    return blank, 0.0 if blank else -cell.mean, cell.state


def bars(cells: Sequence[ReportCell], state: str) -> Json:
    colour, opacity = BARS[state]
    rows = [row for row, cell in enumerate(cells) if cell.state == state and cell.mean > 0]
    return {
        "type": "bar",
        "name": state,
        "orientation": "h",
        "x": [cells[row].mean for row in rows],
        "y": rows,
        "text": [three_digits(cells[row].mean) for row in rows],
        # Ink that reads on what is faded there is none in both light and dark.
        "textposition": "auto" if state == "measured" else "outside",
        "insidetextanchor": "end",
        "insidetextfont": {"color": "var(--on-accent)", "size": 11},
        "constraintext": "none",
        "textangle": 0,
        "cliponaxis": False,
        "marker": {"color": colour, "opacity": opacity},
        "hovertext": [hover_text(cells[row]) for row in rows],
        "hoverinfo": "text",
    }


def marks(cells: Sequence[ReportCell], state: str, left: float) -> Json:
    """Mark the state at the left edge, with its name where that is the only text there."""
    symbol, colour = MARKS[state]
    rows = [row for row, cell in enumerate(cells) if cell.state == state]
    words = [f" {state}" if math.isnan(cells[row].mean) else "" for row in rows]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": state,
        "x": [left * 1.08] * len(rows),
        "y": rows,
        "text": words,
        "textposition": "middle right",
        "cliponaxis": False,
        "marker": {
            "symbol": symbol,
            "color": colour,
            "size": 9,
            "line": {"color": colour, "width": 2},
        },
        "hovertext": [hover_text(cells[row]) for row in rows],
        "hoverinfo": "text",
    }


def hover_text(cell: ReportCell) -> str:
    """Say a cell in the lines of its hover; Plotly reads some HTML, names must not become any."""
    rate = "no rate"
    if not math.isnan(cell.mean):
        deviation = "" if math.isnan(cell.std) else f" ± {three_digits(cell.std)}"
        rate = f"mean {three_digits(cell.mean)}{deviation} MB/s"
    counts = f"{format_count(cell.ok)} ok, {format_count(cell.failed)} failed"
    ends = f"from {escape(cell.source)}<br>to {escape(cell.destination)}"
    return f"{ends}<br>{rate}<br>{counts}<br>{cell.state.replace('_', ' ')}"


def line_at(mean: float) -> Json:
    """Draw a line behind the bars, with its name at the foot, where they are shortest."""
    if math.isnan(mean):
        return {}
    line = {"color": "var(--muted)", "width": 1, "dash": "dot"}
    ends = {"yref": "paper", "y0": 0, "y1": 1, "x0": mean, "x1": mean}
    text = {
        "text": f"mean {three_digits(mean)}",
        "x": math.log10(mean),
        "yref": "paper",
        "y": 0,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }
    return {
        "shapes": [{"type": "line", "layer": "below", "line": line} | ends],
        "annotations": [text],
    }


def layout(partners: Sequence[str], title: str, bounds: tuple[float, float]) -> Json:
    return {
        "title": {"text": title, "x": 0, "xref": "container", "font": {"size": 12}},
        "xaxis": rate_axis(bounds),
        "yaxis": partner_axis(partners),
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "dragmode": "zoom",
        "bargap": 0.25,
        "barmode": "overlay",
        "margin": {"l": 8, "r": 8, "t": 42, "b": 8},
        "font": {"family": "var(--font)", "size": 12, "color": "var(--ink)"},
        "paper_bgcolor": "var(--surface)",
        "plot_bgcolor": "var(--surface)",
    }


def rate_axis(bounds: tuple[float, float]) -> Json:
    ticks = ticks_between(*bounds)
    return {
        "type": "log",
        "range": [math.log10(bound) for bound in bounds],
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
        "title": {"text": "MB/s", "standoff": 4},
        "gridcolor": "var(--line)",
        "linecolor": "var(--line)",
        "automargin": True,
    }


def ticks_between(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 of each decade, or where that is too much only 1."""
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    digits = (1, 2, 5) if high <= low * 10**MOST_DECADES else (1,)
    ticks = [digit * 10.0**decade for decade in decades for digit in digits]
    return [tick for tick in ticks if low <= tick <= high]


def partner_axis(partners: Sequence[str]) -> Json:
    return {
        "type": "linear",
        "range": [len(partners) - 0.5, -0.5],
        "tickvals": list(range(len(partners))),
        "ticktext": [escape(cut(name, LONGEST_NAME)) for name in partners],
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "automargin": True,
    }
