"""What the link page draws of an answer, and the same as tables for readers without a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from matrix.answers.link.report import MOST_POINTS, ClassReport, LinkReport
from matrix.answers.link.samples import Results
from matrix.answers.series import Cut, TimeSeries, cut_to_fill
from matrix.plots import distribution
from matrix.plots.direction_traces import Line
from matrix.plots.distribution import Shape
from matrix.plots.link import Json, Panel, TimeSpan, figure, name_of
from matrix.query.catalogue import OF_LINK
from matrix.statistics.arrays import Floats
from sonar.models import Annotation
from sonar.units import MB


@dataclass(frozen=True)
class DirectionLine:
    """One direction of one size class as it is drawn."""

    source: str
    destination: str
    results: Results
    series: TimeSeries

    @property
    def name(self) -> str:
        return name_of(self.source, self.destination)

    @property
    def rates(self) -> Floats:
        rates: Floats = self.results.rates[self.results.ok] / np.float64(MB)
        return rates


@dataclass(frozen=True)
class Drawn:
    """``points`` of ``results`` results are drawn singly; the rest only in medians and bands."""

    rates: Json | None
    distribution: Json | None
    points: int
    results: int
    buckets: list[Bucket]
    bins: list[Bin]
    shown: list[str]
    silent: list[str]
    # Heights of the pictures in rem.
    rates_height: int
    distribution_height: int

    @property
    def columns(self) -> list[str]:
        """Return what the rates of a bucket are called."""
        return [statistic.label for statistic in OF_LINK]


@dataclass(frozen=True)
class Bucket:
    """A line of the table that stands for the picture: one bucket of one direction of a class.

    ``rates`` are the statistics of a link in the order of the catalogue.
    """

    start: datetime
    size: str
    direction: str
    ok: int
    failed: int
    rates: list[float]


@dataclass(frozen=True)
class Bin:
    """A line of the table that stands for the distribution: how many rates lie between two."""

    size: str
    direction: str
    low: float
    high: float
    count: int


def drawn(answer: LinkReport, notes: Sequence[Annotation], *, reverse: bool) -> Drawn:
    """Draw the classes that have a result, with the reverse direction if it is asked for.

    Notes, those that the reader may see, are spans of the picture as downtimes are.
    """
    # One bucket for all that is drawn, so that most have enough for a median.
    results = [part.results for part in answer.classes]
    results += [part.reverse for part in answer.classes if reverse]
    cut = cut_to_fill(answer.window, [part.started for part in results])
    shown = {part.size: lines_of(part, answer, cut)[: 1 + reverse] for part in answer.classes}
    measured = {
        size: lines for size, lines in shown.items() if any(len(line.results) for line in lines)
    }
    every_line = [line for lines in measured.values() for line in lines]
    since = 0  # from when on (Unix ms) results are drawn as points: not too many of them
    if sum(len(line.results) for line in every_line) > MOST_POINTS:
        started = np.sort(np.concatenate([line.results.started for line in every_line]))
        since = int(started[-MOST_POINTS])
    spans = spans_of(answer, notes)
    return Drawn(
        rates=rates_of(answer, measured, since, spans) if measured else None,
        distribution=distribution_of(measured),
        points=sum(int((line.results.started >= since).sum()) for line in every_line),
        results=sum(len(line.results) for line in every_line),
        buckets=list(buckets_of(measured)),
        bins=list(bins_of(measured)),
        shown=list(measured),
        silent=[size for size in shown if size not in measured],
        rates_height=8 + 10 * len(measured),
        distribution_height=4 + 7 * len(measured),
    )


def lines_of(part: ClassReport, answer: LinkReport, cut: Cut) -> list[DirectionLine]:
    """Return the direction of the page, and then its reverse."""
    there, back = part.buckets(cut)
    source, destination = answer.question.source.name, answer.question.destination.name
    return [
        DirectionLine(source, destination, part.results, there),
        DirectionLine(destination, source, part.reverse, back),
    ]


def rates_of(
    answer: LinkReport, measured: dict[str, list[DirectionLine]], since: int, spans: list[TimeSpan]
) -> Json:
    panels = []
    for size, lines in measured.items():
        newest = [
            line.results.taken(slice(int(np.searchsorted(line.results.started, since)), None))
            for line in lines
        ]
        drawn_lines = zip(lines, newest, strict=True)
        panels.append(
            Panel(size, [Line(line.name, line.series, points) for line, points in drawn_lines])
        )
    return figure(panels, answer.window, spans)


def spans_of(answer: LinkReport, notes: Sequence[Annotation]) -> list[TimeSpan]:
    end = answer.window.end
    downtimes = [
        TimeSpan(
            "downtime",
            downtime.starts_at,
            downtime.ends_at,
            f"{downtime.site or downtime.endpoint}: {downtime.reason}",
        )
        for downtime in answer.downtimes
        if downtime.starts_at < end
    ]
    return downtimes + [
        TimeSpan("note", note.starts_at, note.ends_at or end, note.text) for note in notes
    ]


def distribution_of(measured: dict[str, list[DirectionLine]]) -> Json | None:
    panels = [
        (size, [Shape(line.name, line.rates) for line in lines])
        for size, lines in measured.items()
        if any(line.rates.size for line in lines)
    ]
    return distribution.figure(panels) if panels else None


def buckets_of(measured: dict[str, list[DirectionLine]]) -> Iterator[Bucket]:
    """Yield the buckets that have a test, newest first within each class."""
    for size, lines in measured.items():
        for line in lines:
            series = line.series
            for at in np.flatnonzero(series.ok + series.failed)[::-1].tolist():
                yield Bucket(
                    start=datetime.fromtimestamp(series.starts[at], UTC),
                    size=size,
                    direction=f"{line.source} → {line.destination}",
                    ok=int(series.ok[at]),
                    failed=int(series.failed[at]),
                    rates=[float(series.rates[statistic.name][at]) for statistic in OF_LINK],
                )


def bins_of(measured: dict[str, list[DirectionLine]]) -> Iterator[Bin]:
    """Yield the bins that have a transfer, lowest rates first within each direction."""
    for size, lines in measured.items():
        for line in lines:
            if line.rates.size:
                bins = distribution.bins_of(line.rates)
                for at in np.flatnonzero(bins.counts).tolist():
                    low, high = bins.edges[at : at + 2].tolist()
                    direction = f"{line.source} → {line.destination}"
                    yield Bin(size, direction, low, high, int(bins.counts[at]))
