"""What the link page draws of an answer, and the same as tables for readers without a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from matrix.answers.link.directions import Direction
from matrix.answers.link.report import MOST_POINTS, ClassReport, LinkReport
from matrix.answers.link.samples import Results
from matrix.answers.series import TimeSeries, cut_for_table
from matrix.plots import bands, distribution
from matrix.plots.bands import TimeSpan
from matrix.plots.direction_traces import Line
from matrix.plots.distribution import Shape
from matrix.plots.link import Json, UsualRange, figure, name_of
from matrix.query.catalogue import BAND_WORDS, OF_LINK
from matrix.statistics.arrays import Floats
from matrix.statistics.standing import LEVELS
from sonar.models import Annotation
from sonar.units import MB

# Levels that begin at a moment worth a line.
SHIFTED = LEVELS[2:]
HEIGHT, HEIGHT_OF_DISTRIBUTION = 21, 13


@dataclass(frozen=True)
class DirectionLine:
    """One direction of the size class that is drawn."""

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
    """One size class as pictures and tables.

    ``points`` of ``results`` results are drawn singly; the running median is of all.
    """

    size: str
    rates: Json | None
    distribution: Json | None
    points: int
    results: int
    buckets: list[Bucket]
    bins: list[Bin]
    usual: UsualRange | None
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


def drawn(answer: LinkReport, notes: Sequence[Annotation], *, reverse: bool) -> Drawn:
    """Draw the size class of the query, with the reverse direction if it is asked for.

    Notes, those that the reader may see, stand in the picture as downtimes do.
    """
    part = next(part for part in answer.classes if part.size == answer.question.query.size)
    lines = lines_of(part, answer)[: 1 + reverse]
    since = 0  # from when on (Unix ms) results are drawn as points: not too many of them
    if sum(len(line.results) for line in lines) > MOST_POINTS:
        started = np.sort(np.concatenate([line.results.started for line in lines]))
        since = int(started[-MOST_POINTS])
    newest = [
        Line(line.name, line.results, line.results.taken(line.results.started >= since))
        for line in lines
    ]
    spans = spans_of(part.there, answer, notes)
    usual = usual_of(part.there)
    results = sum(len(line.results) for line in lines)
    return Drawn(
        size=part.size,
        rates=figure(newest, answer.window, spans, usual) if results else None,
        distribution=distribution_of(lines),
        points=sum(len(line.points) for line in newest),
        results=results,
        buckets=list(buckets_of(part.size, lines)),
        bins=list(bins_of(part.size, lines)),
        usual=usual,
    )


def lines_of(part: ClassReport, answer: LinkReport) -> list[DirectionLine]:
    """Return the direction of the page, and then its reverse."""
    there, back = part.buckets(cut_for_table(answer.window))
    source, destination = answer.question.source.name, answer.question.destination.name
    return [
        DirectionLine(source, destination, part.results, there),
        DirectionLine(destination, source, part.reverse, back),
    ]


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
    shapes = [Shape(line.name, line.rates) for line in lines]
    return distribution.figure(shapes) if any(shape.rates.size for shape in shapes) else None


def buckets_of(size: str, lines: Sequence[DirectionLine]) -> Iterator[Bucket]:
    """Yield the buckets that have a test, newest first within each direction."""
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


def bins_of(size: str, lines: Sequence[DirectionLine]) -> Iterator[Bin]:
    """Yield the bins that have a transfer, lowest rates first within each direction."""
    for line in lines:
        if line.rates.size:
            bins = distribution.bins_of(line.rates)
            for at in np.flatnonzero(bins.counts).tolist():
                low, high = bins.edges[at : at + 2].tolist()
                direction = f"{line.source} → {line.destination}"
                yield Bin(size, direction, low, high, int(bins.counts[at]))
