"""A size class of a link over time: directions, what is usual, failures, downtimes and notes."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from matrix.answers.conditions import words
from matrix.answers.conditions.lines import KIND_OF
from matrix.answers.link.directions import Direction
from matrix.answers.link.report import MOST_POINTS, LinkReport
from matrix.answers.link.samples import Results
from matrix.answers.link.series import TimeSeries, cut_for_table, in_buckets
from matrix.answers.words.names import cut
from matrix.plots import AXIS, MARGIN, Json, log_axis, over_time
from matrix.plots.over_time import BACK, THERE, Look, Noted, TimeSpan, filled, other_look
from matrix.plots.scales import decades
from matrix.query import filters
from matrix.query.attributes import ORIGIN
from matrix.statistics.arrays import Floats
from matrix.statistics.samples.quantiles import running_median
from sonar.notation.units import MB, format_factor, three_digits
from sonar.notation.windows import Window

MANY = 1500
# Results of other origins than tests, where they are asked for.
ORIGIN_MARKS = {"production": "square-open", "external": "triangle-up-open"}
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
class DirectionLine:
    """One direction of the size class that is drawn, or what it is compared with, in ``words``.

    Of its results those are drawn singly that began ``since`` then, in Unix ms. ``others`` are the
    ids of profiles by the origin of results that are no tests, if these are drawn apart; the legend
    calls each of the rest ``point_name``.
    """

    source: str
    destination: str
    size: str
    results: Results
    window: Window
    look: Look = THERE
    words: str = ""
    since: int = 0
    others: Mapping[str, Sequence[int]] = field(default_factory=dict)
    point_name: str = "each test"

    @property
    def name(self) -> str:
        """Name it for a picture: Plotly reads some HTML, names must not become any."""
        ends = (cut(name, LONGEST_NAME) for name in (self.source, self.destination))
        return escape(", ".join(filter(None, (" → ".join(ends), self.words))))

    @property
    def direction(self) -> str:
        """Say the direction, and of what it is compared with what that is."""
        return ", ".join(filter(None, (f"{self.source} → {self.destination}", self.words)))

    @property
    def series(self) -> TimeSeries:
        return in_buckets(self.results.started, self.results.rates, cut_for_table(self.window))

    @cached_property
    def points(self) -> Results:
        return self.results.taken(self.results.started >= self.since)

    def parts(self) -> Iterator[tuple[str, str, Results, str, str, str]]:
        """Yield the points of tests, then of each other origin, with names, marks and a colour."""
        ids = [profile for profiles in self.others.values() for profile in profiles]
        tests = self.points.taken(~np.isin(self.points.profiles, ids))
        yield self.point_name, "failed", tests, self.look.point, self.look.cross, self.look.colour
        for origin, profiles in self.others.items():
            results = self.points.taken(np.isin(self.points.profiles, profiles))
            names = f"each {origin} result", f"failed, {origin}"
            mark = ORIGIN_MARKS[origin]
            yield *names, results, mark, mark, "var(--other)"


def lines_of(answer: LinkReport, *, reverse: bool = False) -> list[DirectionLine]:
    """Return this direction, the reverse if it is asked for, and what it is compared with."""
    part, comparison = answer.chosen, answer.comparison
    source, destination = answer.question.source.name, answer.question.destination.name
    others: dict[str, list[int]] = {}
    for profile in answer.profiles:
        if profile.origin in ORIGIN_MARKS:
            others.setdefault(profile.origin, []).append(profile.id)
    there = part.size, part.results, answer.window
    lines = [DirectionLine(source, destination, *there, others=others)]
    if reverse:
        back = part.size, part.reverse, answer.window
        lines.append(DirectionLine(destination, source, *back, BACK, others=others))
    if comparison:
        compared, query = comparison.classes[part.size], comparison.query
        of_other = query.compare.filters_of(query.filters) if query.compare else ()
        origins = {each for each in of_other if each.parameter == ORIGIN}
        lines.append(
            DirectionLine(
                comparison.ends[0].name,
                comparison.ends[1].name,
                compared.other_size,
                compared.results,
                comparison.window,
                other_look(comparison.words, has_own_times=other_window(answer) is not None),
                comparison.words,
                point_name="each transfer" if origins.difference(filters.TESTS) else "each test",
            )
        )
    return lines


@dataclass(frozen=True)
class RatesPicture:
    """A figure over time, the window of its axis, and how many points it draws singly."""

    figure: Json
    window: Window
    points: int


def rates_over_time(
    answer: LinkReport, lines: Sequence[DirectionLine], spans: Sequence[TimeSpan]
) -> RatesPicture:
    """Draw the lines over the window of the answer, or the part of it that has anything."""
    window = answer.window
    started = np.concatenate([line.results.started for line in lines])
    if started.size and not answer.comparison:
        first = datetime.fromtimestamp(int(started.min()) / 1000, UTC)
        window = filled(window, min([first, *(span.start for span in spans)]))
    # Each window draws as many points, its newest ones.
    axes = {line.look.axis for line in lines}
    most, since = MOST_POINTS // len(axes), dict.fromkeys(axes, 0)
    for axis in axes:
        started = np.concatenate([line.results.started for line in lines if line.look.axis == axis])
        if started.size > most:
            since[axis] = int(np.sort(started)[-most])
    newest = [dataclasses.replace(line, since=since[line.look.axis]) for line in lines]
    usual = usual_of(answer.chosen.there)
    drawn = figure(newest, window, spans, usual, other_window(answer))
    return RatesPicture(drawn, window, sum(len(line.points) for line in newest))


def spans_drawn(answer: LinkReport, notes: Sequence[Noted]) -> list[TimeSpan]:
    """Return downtimes, notes, and the conditions of the size class that is drawn.

    A condition of more than the link is named. Its factor comes first, as long words are cut.
    """
    spans = over_time.spans_of(answer.declared, notes, answer.window)
    for each in answer.judgement.conditions:
        if answer.question.query.size not in each.size_classes and each.scope != "grid":
            continue
        text = f"at {format_factor(each.factor)}" if each.factor else words.predicate(each)
        if each.scope != "link":
            text = f"{text}: {words.subject(each)}"
        if each.confirmed_at is None:
            text = f"unconfirmed: {text}"
        spans.append(TimeSpan(KIND_OF[each.type], each.since, each.ended_at, text))
    return spans


def other_window(answer: LinkReport) -> Window | None:
    """Return the window that the link is compared with, if that is another one."""
    window = answer.comparison.window if answer.comparison else answer.window
    return None if window == answer.window else window


def usual_of(there: Direction) -> Direction | None:
    """Return a direction if its usual rate and range are known."""
    return None if np.isnan(there.usual + there.low + there.high) else there


def trace(line: DirectionLine, kind: str, name: str, /, **own: Any) -> Json:  # noqa: ANN401
    """Return what the traces of a line have in common; those of one ``kind`` go together."""
    look = line.look
    return {
        "type": "scatter",
        "name": f"{look.prefix}{name}",
        "legendgroup": f"{kind} {look.prefix}",
        "xaxis": look.axis,
        "showlegend": bool(own["x"]),
        **own,
    }


def marks_of(line: DirectionLine, kind: str, name: str, results: Results, **own: Any) -> Json:  # noqa: ANN401
    """Mark results, each with the id of its transfer, for static/js/link.js."""
    return trace(
        line,
        kind,
        name,
        mode="markers",
        x=results.started.tolist(),
        customdata=[identifier.tobytes().hex() for identifier in results.ids],
        cliponaxis=False,  # the newest stand at the edge
        **own,
    )


def singles(line: DirectionLine, count: int) -> Iterator[Json]:
    """Draw each success; ``count`` is that of all points in the picture."""
    # Many are smaller and fainter, so that the median can be seen among them.
    size, opacity = (5.5, 0.65) if count <= MANY else (3.5, 0.35)
    opacity *= FAINTER if line.look.faint else 1
    for name, _, results, mark, _, colour in line.parts():
        done = results.taken(results.ok)
        yield marks_of(
            line,
            "points" if mark == line.look.point else name,
            name,
            done,
            y=[rounded(rate / MB) for rate in done.rates.tolist()],
            yaxis="y",
            marker={"symbol": mark, "color": colour, "size": size, "opacity": opacity},
            hovertemplate=f"{line.name}<br>%{{y:.3r}} MB/s<br>%{{x|%-d %b %H:%M:%S}} UTC"
            "<extra></extra>",
        )


def crosses(line: DirectionLine, height: int) -> Iterator[Json]:
    """Mark failures on a strip of their own: a failed transfer has no rate, not even 0."""
    red = "var(--failing)"
    for _, name, results, _, mark, _ in line.parts():
        failed = results.taken(~results.ok)
        yield marks_of(
            line,
            name,
            name,
            failed,
            y=[height] * len(failed),
            yaxis="y2",
            marker={"symbol": mark, "size": 8, "color": red, "line": {"width": 2, "color": red}},
            hovertemplate=f"{line.name}<br>{name}<br>%{{x|%-d %b %H:%M:%S}} UTC<extra></extra>",
        )


def median(line: DirectionLine) -> Json:
    """Draw the running median, with a gap where nothing came through for long."""
    done, look = line.results.taken(line.results.ok), line.look
    running = running_median(done.started, done.rates / np.float64(MB))
    words = f"median of {running.around} tests"
    return trace(
        line,
        "median",
        words,
        mode="lines",
        x=running.started.tolist(),
        y=[None if np.isnan(rate) else rounded(rate) for rate in running.values.tolist()],
        yaxis="y",
        line={"color": look.colour, "width": 2, "dash": look.dash},
        hovertemplate=f"{line.name}<br>%{{y:.3r}} MB/s, {words}<br>"
        "around %{x|%-d %b %H:%M} UTC<extra></extra>",
    )


def rounded(rate: float) -> float:
    return float(f"{rate:.4g}")


def figure(
    lines: Sequence[DirectionLine],
    window: Window,
    spans: Sequence[TimeSpan],
    usual: Direction | None,
    other: Window | None,
) -> Json:
    """Return data and layout; ``other`` is the window of lines on the second axis of time."""
    points = sum(len(line.points) for line in lines)
    strip = STRIP * len(lines)
    data = [trace for line in lines for trace in (*singles(line, points), median(line))]
    data += [trace for height, line in enumerate(lines) for trace in crosses(line, height)]
    layout = over_time.layout_of(spans, window, other, TIME_AXIS)
    rows = max((1 + each["yshift"] // -over_time.ROW for each in layout["annotations"]), default=0)
    drawn = [line.points.successes for line in lines]
    rates = np.concatenate([*drawn, [usual.low, usual.high] if usual else []])
    axis = rate_axis(rates, ROOM + ROOM_OF_ROW * rows)
    layout |= {
        "legend": {
            "orientation": "h",
            "y": LEGEND_WITH_OTHER if other else LEGEND,
            "yanchor": "bottom",
            "x": 0,
            "font": {"size": 11},
            "itemwidth": 30,
        },
        "margin": MARGIN,
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
    }
    if usual:
        draw_usual(layout, usual)
    if not any(line.points.ok.any() for line in lines):
        text = {"text": "no transfer succeeded", "showarrow": False}
        layout["annotations"] += [text | {"xref": "paper", "x": 0.5, "yref": "paper", "y": 0.5}]
    return {"data": data, "layout": layout}


def draw_usual(layout: Json, usual: Direction) -> None:
    """Draw the usual range as a band, and the usual rate as a dotted line in it."""
    rate, low, high = map(three_digits, (usual.usual, usual.low, usual.high))
    is_logarithmic = layout["yaxis"].get("type") == "log"
    across = {"xref": "paper", "yref": "y", "x0": 0, "x1": 1, "layer": "below", "name": "usual"}
    layout["shapes"] += [
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
            "y0": usual.usual,
            "y1": usual.usual,
            "line": {"color": "var(--there)", "width": 1.5, "dash": "dot"},
        },
    ]
    layout["annotations"] += [
        {
            "name": "usual",
            "text": f"baseline {rate}",
            "hovertext": f"baseline: {rate} MB/s, mostly {low} to {high}",
            "xref": "paper",
            "yref": "y",
            "x": 1,
            # On an axis of logarithms shapes stand at values, but annotations at logarithms.
            "y": float(np.log10(usual.usual)) if is_logarithmic else usual.usual,
            "xanchor": "right",
            "yanchor": "bottom",
            "showarrow": False,
            "font": {"color": "var(--muted)", "size": 11},
            "bgcolor": "var(--surface)",
            "borderpad": 1,
        }
    ]


def rate_axis(rates: Floats, room: float) -> Json:
    """Return an axis on which all rates are in sight, with room above the fastest."""
    axis = {"title": {"text": "MB/s"}, **AXIS}
    if not rates.size:
        return axis | {"range": [0, 1], "tickvals": [], "ticktext": []}
    low, high = float(rates.min()), float(rates.max())
    if high <= LINEAR_UP_TO * low:
        return axis | {"type": "linear", "range": [0, room * high]}
    low, high = low / 1.25, high * (high / low) ** (room - 1)
    ticks = apart(decades(low, high), low, high)
    return axis | log_axis(low, high, {tick: f"{tick:g}" for tick in ticks})


def apart(ticks: Sequence[float], low: float, high: float) -> list[float]:
    """Leave out ticks without room beside rounder ones: those of 1, 2 and 5 come first."""
    least = LEAST_APART * np.log10(high / low)
    spaced: list[float] = []
    for tick in sorted(ticks, key=lambda tick: (f"{tick:e}"[0] not in "125", tick)):
        if all(abs(np.log10(tick / other)) >= least for other in spaced):
            spaced.append(tick)
    return sorted(spaced)
