"""What the link page draws of an answer, and the same as tables for readers without a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from matrix.answers.link.report import MOST_POINTS, Between, ClassReport
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

    @property
    def columns(self) -> list[str]:
        """Return what the rates of a bucket are called."""
        return [one.label for one in OF_LINK]

    @property
    def rates_height(self) -> int:
        """Return the height of the picture of rates in rem."""
        return 8 + 10 * len(self.shown)

    @property
    def distribution_height(self) -> int:
        return 4 + 7 * len(self.shown)


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


def drawn(found: Between, notes: Sequence[Annotation], *, reverse: bool) -> Drawn:
    """Draw the classes that have a result, with the reverse direction if it is asked for.

    Notes, those that the reader may see, are spans of the picture as downtimes are.
    """
    cut = cut_of(found, reverse=reverse)
    shown = {one.size: ways_of(one, found, cut)[: 1 + reverse] for one in found.classes}
    measured = {size: some for size, some in shown.items() if any(len(one.results) for one in some)}
    ways = [one for some in measured.values() for one in some]
    since = since_when([one.results for one in ways])
    return Drawn(
        rates=rates_of(found, measured, since, spans_of(found, notes)) if measured else None,
        distribution=distribution_of(measured),
        points=sum(int((one.results.started >= since).sum()) for one in ways),
        results=sum(len(one.results) for one in ways),
        buckets=list(buckets_of(measured)),
        bins=list(bins_of(measured)),
        shown=list(measured),
        silent=[size for size in shown if size not in measured],
    )


def cut_of(found: Between, *, reverse: bool) -> Cut:
    """Choose one bucket for all that is drawn, so that most have enough for a median."""
    drawn = [one.results for one in found.classes]
    drawn += [one.reverse for one in found.classes if reverse]
    return cut_to_fill(found.window, [one.started for one in drawn])


def ways_of(one: ClassReport, found: Between, cut: Cut) -> list[DirectionLine]:
    """Return the direction of the page, and then its reverse."""
    there, back = one.buckets(cut)
    source, destination = found.question.source.name, found.question.destination.name
    return [
        DirectionLine(source, destination, one.results, there),
        DirectionLine(destination, source, one.reverse, back),
    ]


def since_when(several: Sequence[Results]) -> int:
    """Return from when on (Unix ms) results are drawn as points, so that there are not too many."""
    if sum(map(len, several)) <= MOST_POINTS:
        return 0
    started = np.sort(np.concatenate([one.started for one in several]))
    return int(started[-MOST_POINTS])


def rates_of(
    found: Between, measured: dict[str, list[DirectionLine]], since: int, spans: list[TimeSpan]
) -> Json:
    panels = [
        Panel(size, [Line(one.name, one.series, newest(one.results, since)) for one in some])
        for size, some in measured.items()
    ]
    return figure(panels, found.window, spans)


def newest(results: Results, since: int) -> Results:
    return results.taken(slice(int(np.searchsorted(results.started, since)), None))


def spans_of(found: Between, notes: Sequence[Annotation]) -> list[TimeSpan]:
    downtimes = [
        TimeSpan(
            "downtime", one.starts_at, one.ends_at, f"{one.site or one.endpoint}: {one.reason}"
        )
        for one in found.downtimes
        if one.starts_at < found.window.end
    ]
    return downtimes + [
        TimeSpan("note", one.starts_at, one.ends_at or found.window.end, one.text) for one in notes
    ]


def distribution_of(measured: dict[str, list[DirectionLine]]) -> Json | None:
    panels = [
        (size, [Shape(one.name, one.rates) for one in some])
        for size, some in measured.items()
        if any(one.rates.size for one in some)
    ]
    return distribution.figure(panels) if panels else None


def buckets_of(measured: dict[str, list[DirectionLine]]) -> Iterator[Bucket]:
    """Yield the buckets that have a test, newest first within each class."""
    for size, some in measured.items():
        for one in some:
            series = one.series
            for at in np.flatnonzero(series.ok + series.failed)[::-1].tolist():
                yield Bucket(
                    start=datetime.fromtimestamp(series.starts[at], UTC),
                    size=size,
                    direction=f"{one.source} → {one.destination}",
                    ok=int(series.ok[at]),
                    failed=int(series.failed[at]),
                    rates=[float(series.rates[stat.name][at]) for stat in OF_LINK],
                )


def bins_of(measured: dict[str, list[DirectionLine]]) -> Iterator[Bin]:
    """Yield the bins that have a transfer, lowest rates first within each direction."""
    for size, some in measured.items():
        for one in some:
            if one.rates.size:
                bins = distribution.bins_of(one.rates)
                for at in np.flatnonzero(bins.counts).tolist():
                    low, high = bins.edges[at : at + 2].tolist()
                    direction = f"{one.source} → {one.destination}"
                    yield Bin(size, direction, low, high, int(bins.counts[at]))
