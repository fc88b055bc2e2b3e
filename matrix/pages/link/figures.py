"""What the link page draws of an answer, and the same as tables for readers without a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from matrix.answers.link.report import LinkReport
from matrix.plots import Json, distribution
from matrix.plots.distribution import Shape
from matrix.plots.link import UsualRange
from matrix.plots.link_lines import (
    DirectionLine,
    drawn_class,
    lines_of,
    other_window,
    rates_over_time,
    spans_drawn,
    usual_of,
)
from matrix.plots.over_time import TimeSpan
from matrix.query.catalogue import BAND_WORDS, OF_LINK
from sonar.models import Annotation

HEIGHT, HEIGHT_OF_DISTRIBUTION = 20, 13
# Fewer rates have no distribution that a picture could show.
FEWEST_IN_DISTRIBUTION = 8


@dataclass(frozen=True)
class Drawn:
    """One size class as pictures and tables.

    ``points`` of ``results`` results are drawn singly; the running median is of all. ``first`` is
    when the axis of time begins, None where that is with the window. ``other`` says with what it is
    compared, and ``has_other_times`` whether that has an axis of time of its own.
    """

    size: str
    rates: Json | None
    distribution: Json | None
    points: int
    results: int
    buckets: list[Bucket]
    bins: list[Bin]
    usual: UsualRange | None
    first: datetime | None
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
    part = drawn_class(answer)
    lines = lines_of(answer, reverse=reverse)
    spans = spans_drawn(answer, notes, changes)
    picture = rates_over_time(answer, lines, spans)
    results = sum(len(line.results) for line in lines)
    return Drawn(
        size=part.size,
        rates=picture.figure if results else None,
        distribution=distribution_of(lines),
        points=picture.points,
        results=results,
        buckets=list(buckets_of(lines)),
        bins=list(bins_of(lines)),
        usual=usual_of(part.there),
        first=None if picture.window == answer.window else picture.window.start,
        other=answer.comparison.words if answer.comparison else "",
        has_other_times=other_window(answer) is not None,
    )


def distribution_of(lines: Sequence[DirectionLine]) -> Json | None:
    shapes = [Shape(line.name, line.rates, line.look) for line in lines]
    rates = sum(shape.rates.size for shape in shapes)
    return distribution.figure(shapes) if rates >= FEWEST_IN_DISTRIBUTION else None


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
