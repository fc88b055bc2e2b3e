"""The answer to a question about one link: all that the page of a link shows, of one moment."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.utils.text import capfirst

from matrix.answers.comparison import all_links
from matrix.answers.conditions import reading
from matrix.answers.conditions.reading import Judgement, open_sizes
from matrix.answers.link import directions, link_profiles, network, rate_profile, samples
from matrix.answers.link.directions import Direction
from matrix.answers.link.network import NetworkTests
from matrix.answers.link.overhead import Overhead, overhead_of
from matrix.answers.link.rate_profile import TransferProfiles
from matrix.answers.link.samples import Results
from matrix.answers.link.verdict import LinkNow, ordered
from matrix.answers.matrix.standing import reach, read_marks
from matrix.answers.words.phrases import counted
from matrix.answers.words.ratios import PairRatio
from matrix.query.filters import Filter, alternatives, on_profiles
from matrix.query.filters import counted as counted_filters
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.statistics.compare.two_samples import FEWEST_TESTS
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
from sonar.notation.units import format_count, three_digits
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
SUCCESS = "successful transfer"
Ends = tuple[EndpointInfo, EndpointInfo]
HEADLINES = {
    "slower": "slower than {other}",
    "faster": "faster than {other}",
    "perhaps": "perhaps {direction} than {other}, but not significantly ({tests} tests)",
    "same": "no significant difference from {other}",
    "": "too few results to compare with {other}",
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
        return (
            Filter("source_endpoint", self.source.name),
            Filter("destination_endpoint", self.destination.name),
        )

    def rate_profile(self, window: Window) -> TransferProfiles | None:
        sites = [endpoint.site for endpoint in self.ends]
        return rate_profile.read(self.query, window, self.ends, self.filters, sites)

    def of_lists(
        self, window: Window, size_class: int | None, *, sweeps: bool = False
    ) -> TransferSelection:
        """Return which results its lists have: those of this direction, lost ones too."""
        filters = counted_filters((*self.query.filters, *self.filters), sweeps=sweeps)
        return TransferSelection(window, size_class, filters, tuple(Transfer.State.values))


@dataclass(frozen=True)
class ClassReport:
    """One size class in both directions; ``tests`` of the first include those of sweeps."""

    size: str
    there: Direction
    back: Direction
    results: Results
    reverse: Results
    tests: Results


@dataclass(frozen=True)
class ComparedClass:
    """One size class against another or itself; ``results`` are those of the other side."""

    size: str
    other_size: str
    results: Results
    pair: PairRatio


@dataclass(frozen=True)
class LinkComparison:
    """A link and what its question is compared with; ``classes`` are those that can be, by name."""

    query: MatrixQuery
    window: Window
    link: Ends
    ends: Ends
    of: str
    classes: dict[str, ComparedClass]

    @property
    def words(self) -> str:
        """Say what the link is compared with: `the 7 days before`."""
        return self.query.other_words()

    def headline(self, size: str) -> str:
        pair = self.classes[size].pair
        tests = f"{format_count(pair.ok)} and {format_count(pair.other_ok)}"
        about = {"other": self.words, "direction": pair.direction, "tests": tests}
        words = HEADLINES[pair.kind].format(**about)
        return f"{capfirst(size)} files: {words}"

    def sentence(self, size: str) -> str:
        """Say both rates of a class, then their ratio, its interval, n and p, to be quoted."""
        pair, (source, destination) = self.classes[size].pair, self.link
        subject = f"{capfirst(size)} files from {source.name} to {destination.name}"
        when = f"{'from' if self.query.bounds else 'in'} {self.query.window_words()}"
        if not pair.kind:
            here, there = (counted(count, SUCCESS) for count in (pair.ok, pair.other_ok))
            counts = f"{here} {when}, {there} for {self.words}"
            return f"{subject}: {counts}; a ratio needs at least {FEWEST_TESTS} on each side."
        here, there = (f"{three_digits(rate)} MB/s" for rate in (pair.value, pair.other))
        rates = f"{self.of} {here} {when}, {there} for {self.words}"
        return f"{subject}: {rates}. Ratio {pair.words}."


@dataclass(frozen=True)
class LinkReport:
    """The answer. ``classes`` begin with the smallest.

    ``judgement`` has the conditions of the window with this direction as a member, ``of_reverse``
    those of the other one, and both those of the whole grid. ``errors`` are those of the classes
    that fail, by size class, the most common ones first. ``results`` are those of the direction, of
    every class, those of sweeps too; the ``profiles`` they were made with are among others.
    ``rows`` are those of which the list shows some.
    """

    question: Question
    window: Window
    now: datetime
    judgement: Judgement
    of_reverse: Judgement
    classes: list[ClassReport]
    summaries: list[link_profiles.ProfileSummary]
    slowed: list[link_profiles.ConcurrentSlowdown]
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
    def chosen(self) -> ClassReport:
        size = self.question.query.size
        return next(part for part in self.classes if part.size == size)

    @property
    def declared(self) -> list[DeclaredDowntime]:
        return downtimes.declared(self.downtimes)

    @property
    def planned(self) -> list[Schedule]:
        source = self.question.source
        return [each for each in self.schedules if each.source_id == source.id]

    def downtimes_at(self, moment: datetime) -> list[Downtime]:
        return [each for each in self.downtimes if each.starts_at <= moment < each.ends_at]

    def overhead(self) -> Overhead | None:
        return overhead_of((part.size, part.results) for part in self.classes)

    def link_now(self) -> LinkNow:
        at = self.now_or_end
        succeeded = {}
        for part in self.classes:
            started = part.results.started[part.results.ok]
            if started.size:
                succeeded[part.size] = datetime.fromtimestamp(int(started.max()) / 1000, UTC)
        reasons = [HOLDING.get(each.skipped_because) for each in self.planned if at == self.now]
        return LinkNow(
            there=[part.there for part in self.classes],
            back=[part.back for part in self.classes],
            conditions=ordered(of_links(self.judgement)),
            of_reverse=ordered(of_links(self.of_reverse)),
            doubtful=self.judgement.doubtful,
            errors=self.errors,
            succeeded=succeeded,
            at=at,
            is_past=at < self.now,
            downtimes=[each for each in self.downtimes_at(at) if each.stops_tests],
            obstacle=next(filter(None, reasons), ""),
            last=self.last,
            is_scheduled=bool(self.planned),
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
        everything = samples.read(question.ends, reach(window), question.query.filters, sweeps=True)
        profiles = link_profiles.profiles_of(everything)
        counting = link_profiles.without_sweeps(everything, profiles, question.query.filters)
        this_way = everything.during(window).of_link(*question.ends)
        classes = classes_of(
            question,
            window,
            sizes,
            planned,
            now=now,
            moment=there.moment,
            downtimes=touching,
            counting=counting,
            tests=this_way,
        )
        listed = {
            size_class: size
            for size_class, size in sizes.items()
            if not question.only or size == question.query.size
        }
        size_class = next(iter(listed)) if question.only else None
        listed_rows = question.of_lists(window, size_class, sweeps=True).rows(question.ends)
        rows = question.of_lists(window, size_class).rows(question.ends)
        return LinkReport(
            question=question,
            window=window,
            now=now,
            judgement=there,
            of_reverse=back,
            classes=classes,
            summaries=link_profiles.summaries(this_way, listed, profiles),
            slowed=link_profiles.slowed(this_way, listed, profiles),
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
                counted_filters((), sweeps=True),
            )
            .order_by("-started_at")
            .values_list("started_at", flat=True)
            .first(),
            rate_profile=question.rate_profile(window),
            comparison=compare(
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
    of_direction: dict[int, list[Condition]] = {source: [], destination: []}
    for end, conditions in of_direction.items():
        for each in both.conditions:
            own = copy(each)
            if each.scope != Condition.Scope.GRID:
                if (end, each.pk) not in sizes:
                    continue
                # The classes in which it is open, of this direction.
                vars(own)["open_sizes"] = sizes[end, each.pk]
            conditions.append(own)
    there, back = (replace(both, conditions=of_direction[end]) for end in pairs[0])
    return there, back


def of_links(judgement: Judgement) -> list[Condition]:
    """Return what is open, but for the grid and what began while measurements are doubtful."""
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
    moment: datetime,
    downtimes: Sequence[Downtime],
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
            downtimes=downtimes,
            is_filtered=bool(on_profiles(filters)),
        )
        classes.append(
            ClassReport(
                size=size,
                there=both[source.id, destination.id],
                back=both[destination.id, source.id],
                results=results.during(window).of_link(source, destination),
                reverse=results.during(window).of_link(destination, source),
                tests=tests.of_class(size_class),
            )
        )
    return classes


def read_errors(
    question: Question,
    judgement: Judgement,
    window: Window,
    classes: Sequence[ClassReport],
    sizes: dict[int, str],
) -> dict[str, list[CommonError]]:
    """Return the errors of each class since it fails, or of the window, the most common first."""
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
    """Return what registry.read_promises does, in seconds, of schedules that were read already."""
    promise = np.full(links.shape, np.inf)
    if not asks_for_tests(filters):
        return promise
    numbers = {endpoint.id: number for number, endpoint in enumerate(links.places)}
    of_mesh = alternatives(filters, MESH_FIELDS)
    for schedule in planned:
        mesh = schedule.mesh
        # Filters let none of the network alone pass.
        passes = not mesh.mover_description.of_network and all(
            (str(getattr(mesh, MESH_FIELDS[first.parameter])) in {each.value for each in group})
            != first.exclude
            for group in of_mesh
            for first in group[:1]
        )
        if schedule.size_class_id == size_class and passes:
            link = numbers[schedule.source_id], numbers[schedule.destination_id]
            promise[link] = min(promise[link], schedule.every_seconds)
    retired = links.ends(endpoint.retired for endpoint in links.places).reshape(links.shape)
    promise[retired] = np.inf
    return promise


def compare(
    query: MatrixQuery,
    link: Ends,
    here: Iterable[str],
    sizes: Mapping[int, str],
    now: datetime,
) -> LinkComparison | None:
    """Compare the results of a link in the size classes ``here``, as the query asks for it.

    Nothing if it compares with nothing. ``sizes`` are the names of the classes by id; with another
    one than its own it is the class of the query alone which is compared.
    """
    if query.compare is None:
        return None
    other = query.other(now)
    ends = (link[1], link[0]) if query.compare.reverse else link
    window = other.window_at(now)
    there = samples.read(ends, window, other.filters).of_link(*ends)
    ids = {name: size_class for size_class, name in sizes.items()}
    of = query.compare.of
    classes = {}
    for size in [query.size] if query.compare.size else here:
        other_size = query.compare.size or size
        results = there.of_class(ids[other_size])
        of_class = query.replace(size=size)
        pair = all_links.link_ratio(of_class, now, link[0].name, link[1].name)
        classes[size] = ComparedClass(size, other_size, results, pair)
    return LinkComparison(query, window, link, ends, of, classes)
