"""The answer to a question about one link: all that the page of a link shows, of one moment."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from matrix.answers.conditions import reading
from matrix.answers.conditions.reading import Judgement, open_sizes
from matrix.answers.link import comparison, directions, network, rate_profile, samples, series
from matrix.answers.link.comparison import LinkComparison
from matrix.answers.link.directions import Direction, StateInputs
from matrix.answers.link.link_profiles import (
    CompanySlowdown,
    ProfileSummary,
    profiles_of,
    slowed,
    summaries,
    without_experiments,
)
from matrix.answers.link.network import NetworkTests
from matrix.answers.link.overhead import Overhead, overhead_of
from matrix.answers.link.rate_profile import TransferProfiles
from matrix.answers.link.samples import Results
from matrix.answers.link.series import Cut, TimeSeries
from matrix.answers.link.verdict import LinkNow, ordered
from matrix.answers.matrix.standing import reach, read_marks
from matrix.query.filters import Filter, alternatives, counted, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.store import downtimes, transfers
from matrix.store.conditions import lasting_at
from matrix.store.data_version import snapshot
from matrix.store.downtimes import DeclaredDowntime
from matrix.store.keyset import Cursor
from matrix.store.network import round_trip_ms
from matrix.store.profiles import made_so
from matrix.store.registry import MESH_FIELDS, asks_for_tests
from matrix.store.transfers import CommonError, SimilarFailures, TransferList, TransferSelection
from sonar.models import (
    Condition,
    ConditionLink,
    Downtime,
    Mesh,
    Probe,
    Profile,
    Schedule,
    SizeClass,
    Transfer,
)
from sonar.notation.windows import Window

RESULTS_PER_PAGE = 25
# A picture of more is drawn too slowly; medians and bands are of all.
MOST_POINTS = 5000
MOST_DOWNTIMES = 50
# What holds tests back, so that too little may be known of a link, by the reason of its schedule.
HOLDING = {
    "circuit": "a circuit breaker: an endpoint keeps failing",
    "downtime": "a declared downtime",
    "paused": "a pause",
}


@dataclass(frozen=True)
class Question:
    """What is asked about a link. ``only`` leaves the size class of the query in the lists."""

    source: EndpointInfo
    destination: EndpointInfo
    query: MatrixQuery
    only: bool = False
    after: Cursor | None = None

    @property
    def ends(self) -> tuple[EndpointInfo, EndpointInfo]:
        return self.source, self.destination

    @property
    def filters(self) -> tuple[Filter, Filter]:
        """Return what chooses this direction."""
        return (
            Filter("source_endpoint", self.source.name),
            Filter("destination_endpoint", self.destination.name),
        )

    def rate_profile(self, window: Window) -> TransferProfiles | None:
        """Look into the transfers of its size class in this direction. One SQL query."""
        sites = [endpoint.site for endpoint in self.ends]
        return rate_profile.read(self.query, window, self.ends, self.filters, sites)

    def of_lists(
        self, window: Window, size_class: int | None, *, experiments: bool = False
    ) -> TransferSelection:
        """Return which results its lists have: those of this direction, lost ones too."""
        filters = counted((*self.query.filters, *self.filters), experiments=experiments)
        return TransferSelection(window, size_class, filters, tuple(Transfer.State.values))


@dataclass(frozen=True)
class ClassReport:
    """One size class in both directions: as numbers, in buckets, and as single results.

    ``tests`` are all of the first one, those of experiments too, which count nowhere else.
    """

    size: str
    there: Direction
    back: Direction
    results: Results
    reverse: Results
    tests: Results

    @property
    def left_out(self) -> int:
        """Return how many tests count nowhere."""
        return len(self.tests) - len(self.results)

    @property
    def last_success(self) -> datetime | None:
        """Return when the newest success of the window started."""
        started = self.results.started[self.results.ok]
        return datetime.fromtimestamp(int(started.max()) / 1000, UTC) if started.size else None

    def buckets(self, cut: Cut) -> tuple[TimeSeries, TimeSeries]:
        there, back = self.results, self.reverse
        return (
            series.in_buckets(there.started, there.rates, cut),
            series.in_buckets(back.started, back.rates, cut),
        )


@dataclass(frozen=True)
class LinkReport:
    """The answer. ``classes`` begin with the smallest.

    ``judgement`` has the conditions of the window with this direction as a member, ``of_reverse``
    those of the other one, and both those of the whole grid. ``errors`` are those of the classes
    that fail, by size class, the most common ones first;
    ``comparison`` is there if the question asks for one. ``results`` are those of the direction, of
    every class, those of experiments too; the ``profiles`` they were made with are among others.
    ``rows`` are those of which the list shows some.
    """

    question: Question
    window: Window
    now: datetime
    judgement: Judgement
    of_reverse: Judgement
    classes: list[ClassReport]
    summaries: list[ProfileSummary]
    slowed: list[CompanySlowdown]
    schedules: list[Schedule]
    probes: list[Probe]
    downtimes: list[Downtime]
    rows: QuerySet[Transfer]
    listing: TransferList
    failures: list[SimilarFailures]
    errors: dict[str, list[CommonError]]
    last: datetime | None
    rate_profile: TransferProfiles | None
    comparison: LinkComparison | None
    results: Results
    profiles: list[Profile]
    network: NetworkTests
    reported_round_trip_ms: float | None

    @property
    def now_or_end(self) -> datetime:
        """Return the moment that states are of: now, or the end of a window that is over."""
        return self.judgement.moment

    @property
    def declared(self) -> list[DeclaredDowntime]:
        """Return the downtimes as readers know them."""
        return downtimes.declared(self.downtimes)

    def downtimes_at(self, moment: datetime) -> list[Downtime]:
        return [each for each in self.downtimes if each.starts_at <= moment < each.ends_at]

    def overhead(self) -> Overhead | None:
        """Return what its tests cost beside their bytes, in the direction of the page."""
        return overhead_of((part.size, part.results) for part in self.classes)

    def link_now(self) -> LinkNow:
        """Return what the verdict is made of."""
        source, at = self.question.source, self.now_or_end
        planned = [each for each in self.schedules if each.source_id == source.id]
        reasons = [HOLDING.get(each.skipped_because) for each in planned if at == self.now]
        return LinkNow(
            there=[part.there for part in self.classes],
            back=[part.back for part in self.classes],
            conditions=ordered(of_links(self.judgement)),
            of_reverse=ordered(of_links(self.of_reverse)),
            doubtful=self.judgement.doubtful,
            errors=self.errors,
            succeeded={part.size: last for part in self.classes if (last := part.last_success)},
            at=at,
            is_past=at < self.now,
            downtimes=[each for each in self.downtimes_at(at) if each.stops_tests],
            obstacle=next(filter(None, reasons), ""),
            last=self.last,
            is_scheduled=bool(planned),
            is_filtered=bool(self.question.query.filters),
        )


def answer(question: Question, now: datetime) -> LinkReport:
    """Answer with a number of SQL queries that does not depend on the data."""
    window = question.query.window_at(now)
    ends = question.source.id, question.destination.id
    with snapshot():
        sizes = dict(SizeClass.objects.values_list("id", "name"))
        touching = read_downtimes(question.ends, window)
        planned = schedules(question.ends)
        there, back = judgements(question.ends, window)
        moment = StateInputs.at(there.moment, touching, question.ends)
        everything = samples.read(
            question.ends, reach(window), question.query.filters, experiments=True
        )
        profiles = profiles_of(everything)
        counting = without_experiments(everything, profiles, question.query.filters)
        this_way = everything.during(window).of_link(*question.ends)
        classes = classes_of(
            question,
            window,
            sizes,
            planned,
            now=now,
            moment=moment,
            counting=counting,
            tests=this_way,
        )
        listed = {
            size_class: size
            for size_class, size in sizes.items()
            if not question.only or size == question.query.size
        }
        size_class = next(iter(listed)) if question.only else None
        listed_rows = question.of_lists(window, size_class, experiments=True).rows(question.ends)
        rows = question.of_lists(window, size_class).rows(question.ends)
        return LinkReport(
            question=question,
            window=window,
            now=now,
            judgement=there,
            of_reverse=back,
            classes=classes,
            summaries=summaries(this_way, listed, profiles),
            slowed=slowed(this_way, listed, profiles),
            schedules=planned,
            probes=list(
                Probe.objects.filter(source__in=ends, destination__in=ends)
                .select_related("size_class", "mesh")
                .order_by("requested_at", "id")
            ),
            downtimes=touching,
            rows=listed_rows,
            listing=transfers.listing(listed_rows, RESULTS_PER_PAGE, question.after),
            failures=transfers.failures(rows),
            errors=read_errors(question, there, window, classes, sizes),
            # When the newest test of the link started, whenever that was and however made.
            last=made_so(
                Transfer.objects.filter(source=ends[0], destination=ends[1]),
                counted((), experiments=True),
            )
            .order_by("-started_at")
            .values_list("started_at", flat=True)
            .first(),
            rate_profile=question.rate_profile(window),
            comparison=comparison.compare(
                question.query,
                question.ends,
                {part.size: part.results for part in classes},
                sizes,
                now,
            ),
            results=this_way,
            profiles=profiles,
            network=network.read(question.ends, window),
            reported_round_trip_ms=round_trip_ms(question.ends, window),
        )


def judgements(ends: Sequence[EndpointInfo], window: Window) -> tuple[Judgement, Judgement]:
    """Return the conditions of both directions between two endpoints. Three SQL queries."""
    source, destination = (endpoint.id for endpoint in ends)
    pairs = [(source, destination), (destination, source)]
    both = reading.read_window(window, reading.of_pairs(pairs))
    lasting = Q(part__ended_at=None) | Q(part__ended_at__gt=window.start)
    members = ConditionLink.objects.filter(lasting, source__in=pairs[0], destination__in=pairs[0])
    is_open = ExpressionWrapper(lasting_at(both.moment, "part__"), BooleanField())
    sizes: dict[tuple[int, int], list[str]] = defaultdict(list)
    for end, condition, size, lasts in members.values_list(
        "source", "part__condition", "part__size_class__name", is_open
    ):
        sizes[end, condition] += [size] * lasts
    there, back = (replace(both, conditions=[*_of_direction(both, sizes, end)]) for end in pairs[0])
    return there, back


def _of_direction(
    both: Judgement, sizes: Mapping[tuple[int, int], list[str]], source: int
) -> Iterator[Condition]:
    """Yield the conditions of the grid, and of a direction with the classes where it is open."""
    for each in both.conditions:
        if each.scope == Condition.Scope.GRID:
            yield each
        elif (source, each.pk) in sizes:
            own = copy(each)
            vars(own)["open_sizes"] = sizes[source, each.pk]
            yield own


def of_links(judgement: Judgement) -> list[Condition]:
    """Return what is open, but for the grid and what is a part of its open condition.

    While measurements are doubtful, what began since says nothing of a link.
    """
    return judgement.listed(judgement.open)


def read_downtimes(ends: Sequence[EndpointInfo], window: Window) -> list[Downtime]:
    """Return the downtimes of either end, or of its site, that touch the window."""
    concerned = Q(endpoint__in=[endpoint.id for endpoint in ends])
    concerned |= Q(site__name__in={endpoint.site for endpoint in ends})
    # One that begins with the end of the window counts: the matrix is as of that moment.
    touching = Downtime.objects.filter(
        concerned, starts_at__lte=window.end, ends_at__gt=window.start
    ).order_by("-starts_at", "id")
    return list(touching.select_related("site", "endpoint")[:MOST_DOWNTIMES])


def classes_of(
    question: Question,
    window: Window,
    sizes: dict[int, str],
    planned: Sequence[Schedule],
    *,
    now: datetime,
    moment: StateInputs,
    counting: Results,
    tests: Results,
) -> list[ClassReport]:
    """Return what each size class has of results that count; ``tests`` are of this direction."""
    source, destination = question.ends
    filters = question.query.filters
    links = LinkIndex(tuple(sorted(question.ends, key=lambda endpoint: endpoint.id)))
    marks = read_marks(list(sizes.values()), window, now, links)
    classes = []
    for size_class, size in sizes.items():
        promise = promises(planned, size_class, links, filters)
        results = counting.of_class(size_class)
        both = directions.compare(
            links,
            results,
            marks[size],
            window=window,
            size=size,
            promise=promise,
            moment=moment,
            is_filtered=bool(on_profiles(filters)),
        )
        of_class = ClassReport(
            size=size,
            there=both[source.id, destination.id],
            back=both[destination.id, source.id],
            results=results.during(window).of_link(source, destination),
            reverse=results.during(window).of_link(destination, source),
            tests=tests.of_class(size_class),
        )
        classes.append(of_class)
    return classes


def read_errors(
    question: Question,
    judgement: Judgement,
    window: Window,
    classes: Sequence[ClassReport],
    sizes: dict[int, str],
) -> dict[str, list[CommonError]]:
    """Return the errors of each class that fails, since its condition began, or of the window.

    The most common one first.
    """
    since = {part.size: window.start for part in classes if part.there.state == "failed"}
    for each in reversed(ordered(of_links(judgement))):
        if each.type == Condition.Type.FAILING:
            since |= dict.fromkeys(open_sizes(each), each.since_high)
    if not since:
        return {}
    ids = {size: size_class for size_class, size in sizes.items()}
    of_classes = {ids[size]: start for size, start in since.items() if size in ids}
    whole = Window(min(since.values()), window.end)
    rows = question.of_lists(whole, None).rows(question.ends)
    errors = transfers.common_errors(rows, of_classes)
    return {sizes[size_class]: of_class for size_class, of_class in errors.items()}


def schedules(ends: Sequence[EndpointInfo]) -> list[Schedule]:
    """Return the tests that are scheduled between two endpoints, both ways. Two SQL queries.

    All meshes are named, as the index begins with them: without, millions of rows are read.
    """
    ids = [endpoint.id for endpoint in ends]
    between = Schedule.objects.filter(
        mesh__in=list(Mesh.objects.values_list("id", flat=True)),
        source__in=ids,
        destination__in=ids,
    )
    ordered = between.order_by("size_class__from_bytes", "mesh__name", "id")
    return list(ordered.select_related("mesh", "size_class", "source__site", "destination__site"))


def promises(
    planned: Iterable[Schedule], size_class: int, links: LinkIndex, filters: Sequence[Filter]
) -> Floats:
    """Return what registry.read_promises does, of the schedules that were read already.

    Shape (endpoints, endpoints), seconds; infinity for no promise.
    """
    promise = np.full(links.shape, np.inf)
    if not asks_for_tests(filters):
        return promise
    numbers = {endpoint.id: number for number, endpoint in enumerate(links.places)}
    for schedule in planned:
        if schedule.size_class_id == size_class and passes(schedule.mesh, filters):
            link = numbers[schedule.source_id], numbers[schedule.destination_id]
            promise[link] = min(promise[link], schedule.every_seconds)
    retired = links.ends(endpoint.retired for endpoint in links.places).reshape(links.shape)
    promise[retired] = np.inf
    return promise


def passes(mesh: Mesh, filters: Iterable[Filter]) -> bool:
    """Return whether filters let the tests of a mesh pass; those of the network alone never do."""
    of_mesh = (condition for condition in filters if condition.parameter in MESH_FIELDS)
    return not mesh.mover_description.of_network and all(
        (str(getattr(mesh, MESH_FIELDS[first.parameter])) in {each.value for each in group})
        != first.exclude
        for group in alternatives(of_mesh)
        for first in group[:1]
    )
