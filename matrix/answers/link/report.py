"""The answer to a question about one link: all that the page of a link shows, of one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from matrix.answers import series
from matrix.answers.link import directions, samples, scheduled
from matrix.answers.link.directions import Direction, StateInputs
from matrix.answers.link.link_profiles import (
    CompanySlowdown,
    ProfileSummary,
    profiles_of,
    slowed,
    summaries,
)
from matrix.answers.link.samples import Results
from matrix.answers.series import Cut, TimeSeries
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.axes import EndpointInfo, LinkIndex
from matrix.store import transfers
from matrix.store.snapshot import snapshot
from matrix.store.transfers import Cursor, SimilarFailures, TransferList, TransferSelection
from sonar.models import Downtime, Probe, Schedule, SizeClass, Transfer
from sonar.windows import Window

RESULTS_PER_PAGE = 50
# A picture of more is drawn too slowly; medians and bands are of all.
MOST_POINTS = 5000
MOST_DOWNTIMES = 50


@dataclass(frozen=True)
class Question:
    """What is asked about a link. ``only`` leaves one size class, that of the query."""

    source: EndpointInfo
    destination: EndpointInfo
    query: MatrixQuery
    only: bool = False
    after: Cursor | None = None

    @property
    def ends(self) -> tuple[EndpointInfo, EndpointInfo]:
        return self.source, self.destination

    def of_lists(self, window: Window, size_class: int | None) -> TransferSelection:
        """Return which results its lists have: those of this direction, lost ones too."""
        ends = (
            Filter("source_endpoint", self.source.name),
            Filter("destination_endpoint", self.destination.name),
        )
        states = tuple(Transfer.State.values)
        return TransferSelection(window, size_class, (*self.query.filters, *ends), states)


@dataclass(frozen=True)
class ClassReport:
    """One size class in both directions: as numbers, in buckets, and as single results."""

    size: str
    there: Direction
    back: Direction
    results: Results
    reverse: Results

    def buckets(self, cut: Cut) -> tuple[TimeSeries, TimeSeries]:
        there, back = (
            series.in_buckets(results.started, results.rates, cut)
            for results in (self.results, self.reverse)
        )
        return there, back


@dataclass(frozen=True)
class LinkReport:
    """The answer. ``classes`` begin with the smallest."""

    question: Question
    window: Window
    now: datetime
    classes: list[ClassReport]
    summaries: list[ProfileSummary]
    slowed: list[CompanySlowdown]
    schedules: list[Schedule]
    probes: list[Probe]
    downtimes: list[Downtime]
    listing: TransferList
    failures: list[SimilarFailures]
    last: datetime | None


def answer(question: Question, now: datetime) -> LinkReport:
    """Answer with a number of SQL queries that does not depend on the data."""
    window = question.query.window_at(now)
    with snapshot():
        sizes = dict(SizeClass.objects.values_list("id", "name"))
        if question.only:
            sizes = {key: name for key, name in sizes.items() if name == question.query.size}
        downtimes = read_downtimes(question.ends, window)
        planned = scheduled.schedules(question.ends)
        moment = StateInputs.at(min(now, window.end), downtimes, question.ends)
        classes, results = read_classes(question, window, sizes, planned, moment)
        size_class = next(iter(sizes)) if question.only else None
        rows = question.of_lists(window, size_class).rows(question.ends)
        this_way = results.of_link(*question.ends)
        profiles = profiles_of(this_way)
        return LinkReport(
            question=question,
            window=window,
            now=now,
            classes=classes,
            summaries=summaries(this_way, sizes, profiles),
            slowed=slowed(this_way, sizes, profiles),
            schedules=planned,
            probes=scheduled.open_probes(question.ends),
            downtimes=downtimes,
            listing=transfers.listing(rows, RESULTS_PER_PAGE, question.after),
            failures=transfers.failures(rows),
            last=read_last(question),
        )


def read_downtimes(ends: Sequence[EndpointInfo], window: Window) -> list[Downtime]:
    """Return the downtimes of either end, or of its site, that touch the window."""
    concerned = Q(endpoint__in=[endpoint.id for endpoint in ends])
    concerned |= Q(site__name__in={endpoint.site for endpoint in ends})
    # One that begins with the end of the window counts: the matrix is as of that moment.
    touching = Downtime.objects.filter(
        concerned, starts_at__lte=window.end, ends_at__gt=window.start
    )
    return list(touching.select_related("site", "endpoint")[:MOST_DOWNTIMES])


def read_classes(
    question: Question,
    window: Window,
    sizes: dict[int, str],
    planned: Sequence[Schedule],
    moment: StateInputs,
) -> tuple[list[ClassReport], Results]:
    """Return what each size class has, and all results of the window."""
    source, destination = question.ends
    before = Window(window.start - samples.USUAL, window.start)
    filters = question.query.filters
    both_windows = samples.read(question.ends, Window(before.start, window.end), filters)
    links = LinkIndex(tuple(sorted(question.ends, key=lambda endpoint: endpoint.id)))
    results, earlier = both_windows.during(window), both_windows.during(before)
    classes = []
    for size_class, size in sizes.items():
        promise = scheduled.promises(planned, size_class, links, filters)
        of_class, usual = results.of_class(size_class), earlier.of_class(size_class)
        both = directions.compare(links, of_class, usual, size=size, promise=promise, moment=moment)
        report = ClassReport(
            size=size,
            there=both[source.id, destination.id],
            back=both[destination.id, source.id],
            results=of_class.of_link(source, destination),
            reverse=of_class.of_link(destination, source),
        )
        classes.append(report)
    return classes, results


def read_last(question: Question) -> datetime | None:
    """Return when the newest result of the link started, whenever that was and however made."""
    of_link = Transfer.objects.filter(
        source=question.source.id, destination=question.destination.id
    )
    newest = of_link.order_by("-started_at").values_list("started_at", flat=True)
    return newest.first()
