"""The rates of a sweep over the values of its variable."""

from collections.abc import Sequence

import numpy as np

from matrix.answers.ordering.sweeps import SweepReport, ValueResults
from matrix.plots import AXIS, LEGEND_ABOVE, MARGIN, ON_PAGE, Json, log_axis
from matrix.plots.scales import decades
from sonar.notation.units import format_bytes, three_digits

TITLES = {
    "streams": "streams (TCP connections)",
    "size": "file size",
    "mode": "mode (pull or push)",
}
# Rates that differ by less are drawn from this much below the lowest to as much above the highest.
ROOM = 1.3


def figure(report: SweepReport) -> Json | None:
    """Return data and layout: a point for each test, and a line through the medians.

    Both axes are logarithmic, so that rates in proportion to the variable make a straight line;
    a dotted one shows what that would be. Nothing where no test has succeeded.
    """
    values = [value for value in report.values if value.rates.size]
    if not values:
        return None
    variable = report.sweep.variable
    data = [points(values, variable), medians(values, variable)]
    if variable == "streams" and len(values) > 1:
        data.append(proportion(values[0], values[-1], variable))
    return {"data": data, "layout": layout(report)}


def points(values: Sequence[ValueResults], variable: str) -> Json:
    """Draw each test that succeeded; a point leads to its transfer."""
    steps = [(value, step) for value in values for step in value.steps if step.rate > 0]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "one test",
        "x": [position(value, variable) for value, _ in steps],
        "y": [round(step.rate, 4) for _, step in steps],
        "customdata": [str(step.step.test_id) for _, step in steps],
        "marker": {"color": "var(--there)", "size": 8, "opacity": 0.6},
        "hovertemplate": "%{y:.3r} MB/s<extra></extra>",
    }


def medians(values: Sequence[ValueResults], variable: str) -> Json:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "median",
        "x": [position(value, variable) for value in values],
        "y": [round(value.median, 4) for value in values],
        "line": {"color": "var(--there)", "width": 2},
        "hovertemplate": "median %{y:.3r} MB/s<extra></extra>",
    }


def proportion(first: ValueResults, last: ValueResults, variable: str) -> Json:
    """Draw where rates would be that are in proportion to the variable."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "proportional to streams",
        "x": [position(first, variable), position(last, variable)],
        "y": [first.median, first.median * last.number / first.number],
        "line": {"color": "var(--muted)", "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
    }


def position(value: ValueResults, variable: str) -> float:
    """Return where a value stands: pull and push side by side, a number by its logarithm."""
    return value.number if variable == "mode" else float(np.log10(value.number))


def layout(report: SweepReport) -> Json:
    rates = report.rates
    low, high = float(rates.min()) / ROOM, float(rates.max()) * ROOM
    ticks = {tick: three_digits(tick) for tick in decades(low, high) if low <= tick <= high}
    return {
        "xaxis": variable_axis(report),
        "yaxis": {
            **log_axis(low, high, ticks),
            "title": {"text": "MB/s"},
            "gridcolor": "var(--line)",
            "automargin": True,
        },
        "legend": LEGEND_ABOVE,
        "hovermode": "closest",
        "dragmode": False,
        "margin": MARGIN,
        **ON_PAGE,
    }


def variable_axis(report: SweepReport) -> Json:
    """Return the axis of the variable, with a tick for each value."""
    variable = report.sweep.variable
    values = [value for value in report.values if value.number > 0 or variable == "mode"]
    at = [position(value, variable) for value in values]
    room = 0.15 * max(at[-1] - at[0], 1.0)
    return {
        "title": {"text": TITLES[variable]},
        "tickmode": "array",
        "tickvals": at,
        "ticktext": [
            f"{value.value}, {format_bytes(value.number)}" if variable == "size" else value.value
            for value in values
        ],
        "range": [at[0] - room, at[-1] + room],
        **AXIS,
    }
