"""A site at both ends of its links over time: rates, against their usual if known, and failures."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from matrix.answers.events.event import Event
from matrix.answers.site.history import EndHistory, RatioSeries, rates_over_time
from matrix.answers.site.reports import Report
from matrix.answers.site.site_now import EndComparison, SiteNow
from matrix.answers.words.names import short_names_of
from matrix.answers.words.phrases import counted
from matrix.plots import Json, over_time
from matrix.plots.sparkline import marks_of
from matrix.query.catalogue import RATE
from matrix.statistics.arrays import Flags, Floats, Integers
from sonar.notation.units import format_count, format_factor, three_digits
from sonar.notation.windows import Window, format_minute

# The axis shows at least this far from usual, either way, and no further than this.
NARROWEST, WIDEST = 2.5, 64.0
TICKS = [2.0**power for power in range(-6, 7)]
# No tick is nearer to an end of the axis than this part of it: the words of other axes are there.
FROM_EDGE = 0.1
# Parts of the height: rates above, failed tests at the foot.
RATES, FAILED = [0.24, 1.0], [0.0, 0.17]
SLOWER, OTHERS = "var(--slower)", "var(--there)"
USUAL_LINE: Json = {
    "type": "line",
    "name": "usual",
    "layer": "below",
    "line": {"color": "var(--ink)", "width": 1, "dash": "dot"},
    "xref": "paper",
    "x0": 0,
    "x1": 1,
    "yref": "y",
    "y0": 1,
    "y1": 1,
}
TIME_AXIS = {
    "anchor": "y2",
    "gridcolor": "var(--line)",
    "showgrid": False,
    "automargin": True,
    "tickformatstops": [
        {"dtickrange": [None, 43_200_000], "value": "%H:%M<br>%-d %b"},
        {"dtickrange": [43_200_000, None], "value": "%-d %b"},
    ],
    "nticks": 9,
}


@dataclass(frozen=True)
class Axes:
    """The same for both ends: they are compared.

    ``rates`` is the axis of rates, ``failed`` the most tests that failed in a bucket, ``lines``
    are what is drawn across. ``written`` says a value of the axis with its unit.
    """

    rates: Json
    failed: int
    lines: tuple[Json, ...]
    written: Callable[[float], str]


def axes_of_ratios(ends: Sequence[RatioSeries]) -> Axes:
    """Put usual in the middle, and leave room for the lines and their middle halves."""
    ratios = np.concatenate([spread_of(ends), [1.0]])
    furthest = float(np.exp(np.abs(np.log(ratios[ratios > 0])).max())) * 1.15
    bound = min(max(furthest, NARROWEST), WIDEST)
    # No tick is near an end of the axis: the words of other axes are there.
    furthest = bound ** (1 - 2 * FROM_EDGE)
    ticks = [tick for tick in TICKS if 1 / furthest <= tick <= furthest]
    axis = {
        "type": "log",
        "range": [-math.log10(bound), math.log10(bound)],
        "tickvals": ticks,
        "ticktext": ["usual " if tick == 1 else f"{tick:g}× " for tick in ticks],
    }
    lines = (USUAL_LINE,)
    return Axes(
        axis, most_failed(ends), lines, lambda ratio: f"{format_factor(ratio)} the usual rate"
    )


def axes_of_rates(ends: Sequence[RatioSeries]) -> Axes:
    """Begin at 0, as rates do that nothing is known to compare with; without a rate, end at 1."""
    top = float(spread_of(ends).max(initial=0)) * 1.15 or 1.0
    axis = {"range": [0, top], "nticks": 5, "ticksuffix": f" {RATE.name}", "automargin": True}
    return Axes(axis, most_failed(ends), (), lambda rate: f"{three_digits(rate)} {RATE.name}")


def spread_of(ends: Sequence[RatioSeries]) -> Floats:
    spread = [values[series.links > 0] for series in ends for values in (series.low, series.high)]
    return np.concatenate(spread)


def most_failed(ends: Sequence[RatioSeries]) -> int:
    return max(int(series.failed.max(initial=0)) for series in ends)


def figure(
    series: RatioSeries,
    window: Window,
    spans: Sequence[over_time.TimeSpan],
    axes: Axes,
    *,
    is_slower: bool = False,
    other: EndComparison | None = None,
) -> Json:
    """Return data and layout; ``other`` is what links are compared with, and may have own times."""
    colour = SLOWER if is_slower else OTHERS
    line = median(series, over_time.THERE, colour, axes.written)
    data = [middle_half(series, colour), line, failures(series)]
    shown = None
    if other:
        look = over_time.other_look(other.words, has_own_times=other.window != window)
        data.insert(1, median(other.series, look, over_time.OTHER.colour, axes.written))
        shown = other.window if look.axis == over_time.SECOND_AXIS else None
    layout = over_time.layout_of(spans, window, shown, TIME_AXIS) | {
        "showlegend": False,
        "bargap": 0.1,
        "margin": {"l": 48, "r": 8, "t": 24 if shown else 8, "b": 24},
        "yaxis": {"domain": RATES, "gridcolor": "var(--line)", "zeroline": False} | axes.rates,
        "yaxis2": {
            "domain": FAILED,
            "range": [0, max(axes.failed, 1) * 1.05],
            "tickvals": [axes.failed],
            "ticktext": [f"{format_count(axes.failed)} failed" if axes.failed else "none failed"],
            "tickfont": {"size": 11, "color": "var(--muted)"},
            "showgrid": False,
            "zeroline": True,
            "zerolinecolor": "var(--line)",
            "fixedrange": True,
            "automargin": True,
        },
    }
    layout["shapes"] += axes.lines
    return {"data": data, "layout": layout}


def median(
    series: RatioSeries, look: over_time.Look, colour: str, written: Callable[[float], str]
) -> Json:
    """Draw the median as steps as wide as their buckets, with gaps where no link was measured."""
    x: list[int | None] = []
    y: list[float | None] = []
    texts: list[str] = []
    for stretch in stretches_of(series.links > 0):
        x += [*edges(series, stretch), None]
        for bucket in stretch.tolist():
            low, middle, high = (
                float(values[bucket]) for values in (series.low, series.median, series.high)
            )
            number = counted(int(series.links[bucket]), "link")
            half = f"middle 50 %: {written(low)} to {written(high)}"
            # At its beginning and at its end.
            y += [digits(middle)] * 2
            texts += [f"{written(middle)}, median of {number}<br>{half}"] * 2
        y.append(None)
        texts.append("")
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{look.prefix}median link",
        "x": x,
        "xaxis": look.axis,
        "y": y,
        "text": texts,
        "line": {"color": colour, "width": 2, "dash": look.dash},
        "hovertemplate": f"{look.prefix}%{{text}}<br>{series.bucket} from %{{x|%-d %b %H:%M}} UTC"
        "<extra></extra>",
    }


def middle_half(series: RatioSeries, colour: str) -> Json:
    x: list[int | None] = []
    y: list[float | None] = []
    for stretch in stretches_of(series.links > 1):
        there = edges(series, stretch)
        x += [*there, *reversed(there), None]
        high, low = (np.repeat(values[stretch], 2) for values in (series.high, series.low))
        y += [*map(digits, high.tolist()), *map(digits, low[::-1].tolist()), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "middle 50 % of the links",
        "x": x,
        "y": y,
        "fill": "toself",
        "fillcolor": colour,
        "opacity": 0.2,
        "line": {"width": 0, "color": colour},
        "hoverinfo": "skip",
    }


def failures(series: RatioSeries) -> Json:
    buckets = np.flatnonzero(series.failed).tolist()
    texts = []
    for bucket in buckets:
        failed = int(series.failed[bucket])
        tests = format_count(failed + int(series.ok[bucket]))
        begin = format_minute(datetime.fromtimestamp(int(series.starts[bucket]), UTC))
        of_all = f"{format_count(failed)} of {tests} tests failed"
        texts.append(f"{of_all}<br>{series.bucket} from {begin}")
    half = series.seconds / 2
    return {
        "type": "bar",
        "name": "failed tests",
        "x": [round((float(series.starts[bucket]) + half) * 1000) for bucket in buckets],
        "width": round(series.seconds * 1000 * 0.9),
        "y": [int(series.failed[bucket]) for bucket in buckets],
        "yaxis": "y2",
        "marker": {"color": "var(--failing)"},
        "hovertext": texts,
        "hoverinfo": "text",
    }


def stretches_of(drawn: Flags) -> list[Integers]:
    """Return the buckets that are drawn, those that follow each other together."""
    buckets = np.flatnonzero(drawn)
    parts = np.split(buckets, np.flatnonzero(np.diff(buckets) > 1) + 1)
    return [part for part in parts if part.size]


def edges(series: RatioSeries, buckets: Integers) -> list[int]:
    """Return where each bucket begins and ends, in milliseconds since 1970."""
    starts = np.round(series.starts[buckets] * 1000).astype(np.int64)
    ends = starts + round(series.seconds * 1000)
    both: list[int] = np.stack([starts, ends], axis=1).ravel().tolist()
    return both


def digits(ratio: float) -> float:
    return float(f"{ratio:.3g}")


def end_figures(
    report: Report,
    site_is: SiteNow,
    downtimes: Sequence[over_time.Declared],
    notes: Sequence[over_time.Noted],
    events: Sequence[Event],
) -> dict[str, Json]:
    """Return a figure for each end, with downtimes, notes and jumps of its links."""
    window, short = report.window, short_names_of(report.all_endpoints)
    during = [downtime for downtime in downtimes if downtime.ends_at > window.start]
    spans = over_time.spans_of(during, notes, window)
    histories = histories_drawn(site_is)
    lines = [history.series for history in histories.values()]
    others = {} if is_of_rates(site_is) else site_is.comparisons
    if is_of_rates(site_is):
        axes = axes_of_rates(lines)
    else:
        axes = axes_of_ratios([*lines, *(other.series for other in others.values())])
    return {
        end: figure(
            history.series,
            history.window,
            [*spans, *marks_of(events, report.query.size, end, short)],
            axes,
            is_slower=any(link.level == "slower" for link in site_is.links[end]),
            other=others.get(end),
        )
        for end, history in histories.items()
    }


def is_of_rates(site_is: SiteNow) -> bool:
    """Say whether nothing is usual yet: rates are drawn then."""
    own = [history.series for history in site_is.histories.values()]
    others = [comparison.series for comparison in site_is.comparisons.values()]
    return not any(series.links.any() for series in (*own, *others))


def histories_drawn(site_is: SiteNow) -> Mapping[str, EndHistory]:
    """Return the line of each end: of ratios to usual, or of rates."""
    return rates_over_time(site_is.histories) if is_of_rates(site_is) else site_is.histories
