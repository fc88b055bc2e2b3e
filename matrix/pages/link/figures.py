"""What the link page draws of an answer, and the same as tables for readers without a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

import numpy as np

from matrix.answers import series
from matrix.answers.link.directions import Direction
from matrix.answers.link.report import MOST_POINTS, ClassReport, LinkReport
from matrix.answers.link.samples import Results
from matrix.answers.series import TimeSeries, cut_for_table
from matrix.plots import bands, distribution
from matrix.plots.bands import TimeSpan
from matrix.plots.direction_traces import Line
from matrix.plots.distribution import Shape
from matrix.plots.link import Json, UsualRange, figure, name_of
from matrix.plots.looks import BACK, THERE, Look, other_look
from matrix.query.catalogue import BAND_WORDS, OF_LINK
from matrix.statistics.arrays import Floats
from matrix.statistics.standing import LEVELS
from sonar.models import Annotation
from sonar.windows import Window

# Levels that begin at a moment worth a line.
SHIFTED = LEVELS[2:]
HEIGHT, HEIGHT_OF_DISTRIBUTION = 21, 13


@dataclass(frozen=True)
class DirectionLine:
    """One direction of the size class that is drawn, or what it is compared with, in ``words``."""

    source: str
    destination: str
    size: str
    results: Results
    series: TimeSeries
    look: Look = THERE
    words: str = ""

    @property
    def name(self) -> str:
        name = name_of(self.source, self.destination)
        return f"{name}, {escape(self.words)}" if self.words else name

    @property
    def direction(self) -> str:
        """Say the direction, and of what it is compared with what that is."""
        return ", ".join(filter(None, (f"{self.source} → {self.destination}", self.words)))

    @property
    def rates(self) -> Floats:
        return self.results.successes


@dataclass(frozen=True)
class Drawn:
    """One size class as pictures and tables.

    ``points`` of ``results`` results are drawn singly; the running median is of all. ``other`` says
    with what it is compared, and ``has_other_times`` whether that has an axis of time of its own.
    """

    size: str
    rates: Json | None
    distribution: Json | None
    points: int
    results: int
    buckets: list[Bucket]
    bins: list[Bin]
    usual: UsualRange | None
    other: str
    has_other_times: bool
    # Heights of the pictures in rem.
    rates_height: int = HEIGHT
    distribution_height: int = HEIGHT_OF_DISTRIBUTION

    # What the usual range is called, as the band of a bucket.
    band_words: str = BAND_WORDS

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


def drawn(
    answer: LinkReport,
    notes: Sequence[Annotation],
    changes: Sequence[TimeSpan] = (),
    *,
    reverse: bool,
) -> Drawn:
    """Draw the size class of the query, with the reverse direction if it is asked for.

    Notes, those that the reader may see, and changes stand in the picture as downtimes do.
    """
    part = next(part for part in answer.classes if part.size == answer.question.query.size)
    lines = [*lines_of(part, answer)[: 1 + reverse], *other_lines(answer, part.size)]
    spans = [*spans_of(part.there, answer, notes), *changes]
    usual = usual_of(part.there)
    newest = newest_of(lines)
    window, results = other_window(answer), sum(len(line.results) for line in lines)
    return Drawn(
        size=part.size,
        rates=figure(newest, answer.window, spans, usual, window) if results else None,
        distribution=distribution_of(lines),
        points=sum(len(line.points) for line in newest),
        results=results,
        buckets=list(buckets_of(lines)),
        bins=list(bins_of(lines)),
        usual=usual,
        other=answer.comparison.words if answer.comparison else "",
        has_other_times=window is not None,
    )


def newest_of(lines: Sequence[DirectionLine]) -> list[Line]:
    """Return what is drawn of each line: as points not too many, of each window as many."""
    axes = {line.look.axis for line in lines}
    most, since = MOST_POINTS // len(axes), dict.fromkeys(axes, 0)
    for axis in axes:
        started = np.concatenate([line.results.started for line in lines if line.look.axis == axis])
        if started.size > most:
            since[axis] = int(np.sort(started)[-most])
    return [
        Line(
            line.name,
            line.results,
            line.results.taken(line.results.started >= since[line.look.axis]),
            line.look,
        )
        for line in lines
    ]


def lines_of(part: ClassReport, answer: LinkReport) -> list[DirectionLine]:
    """Return the direction of the page, and then its reverse."""
    there, back = part.buckets(cut_for_table(answer.window))
    source, destination = answer.question.source.name, answer.question.destination.name
    return [
        DirectionLine(source, destination, part.size, part.results, there),
        DirectionLine(destination, source, part.size, part.reverse, back, BACK),
    ]


def other_lines(answer: LinkReport, size: str) -> list[DirectionLine]:
    """Return what the class is compared with, if it is compared with anything."""
    comparison = answer.comparison
    if comparison is None:
        return []
    compared, (source, destination) = comparison.classes[size], comparison.ends
    results, window = compared.results, comparison.window
    buckets = series.in_buckets(results.started, results.rates, cut_for_table(window))
    look = other_look(comparison.words, has_own_times=other_window(answer) is not None)
    return [
        DirectionLine(
            source.name,
            destination.name,
            compared.other_size,
            results,
            buckets,
            look,
            comparison.words,
        )
    ]


def other_window(answer: LinkReport) -> Window | None:
    """Return the window that the link is compared with, if that is another one."""
    window = answer.comparison.window if answer.comparison else answer.window
    return None if window == answer.window else window


def usual_of(there: Direction) -> UsualRange | None:
    return None if np.isnan(there.usual) else UsualRange(there.usual, there.low, there.high)


def spans_of(there: Direction, answer: LinkReport, notes: Sequence[Annotation]) -> list[TimeSpan]:
    """Return downtimes, notes, and since when the class fails or has another rate than usual."""
    spans = bands.spans_of(answer.downtimes, notes, answer.window)
    kind = there.state if there.state == "failing" else there.level
    if kind in ("failing", *SHIFTED):
        since = datetime.fromtimestamp(there.since, UTC)
        words = f"{kind} since {since:%Y-%m-%d %H:%M}"
        spans.append(TimeSpan(kind, since, None, words))
    return spans


def distribution_of(lines: Sequence[DirectionLine]) -> Json | None:
    shapes = [Shape(line.name, line.rates, line.look) for line in lines]
    return distribution.figure(shapes) if any(shape.rates.size for shape in shapes) else None


def buckets_of(lines: Sequence[DirectionLine]) -> Iterator[Bucket]:
    """Yield the buckets that have a test, newest first within each direction."""
    for line in lines:
        buckets = line.series
        for at in np.flatnonzero(buckets.ok + buckets.failed)[::-1].tolist():
            yield Bucket(
                start=datetime.fromtimestamp(buckets.starts[at], UTC),
                size=line.size,
                direction=line.direction,
                ok=int(buckets.ok[at]),
                failed=int(buckets.failed[at]),
                rates=[float(buckets.rates[statistic.name][at]) for statistic in OF_LINK],
            )


def bins_of(lines: Sequence[DirectionLine]) -> Iterator[Bin]:
    """Yield the bins that have a transfer, lowest rates first within each direction."""
    for line in lines:
        if line.rates.size:
            bins = distribution.bins_of(line.rates)
            for at in np.flatnonzero(bins.counts).tolist():
                low, high = bins.edges[at : at + 2].tolist()
                yield Bin(line.size, line.direction, low, high, int(bins.counts[at]))
