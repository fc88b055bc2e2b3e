"""Looking at the newest tests of all links: what is not as expected becomes an incident."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import cached_property

import numpy as np
from django.conf import settings

from matrix.answers.incidents import expectations
from matrix.answers.matrix.standing import ResultsOfLinks
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells import standing
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.standing import UsualRates
from matrix.statistics.incidents.link_states import LinkStates, LinkTimes
from matrix.statistics.incidents.naming import NamedFault, name_faults, what_is_left
from matrix.statistics.incidents.shared_ends import GRID, Place
from matrix.store import data_version, downtimes, registry
from matrix.store.data_version import DataVersion, snapshot
from matrix.store.read_plan import moment
from sonar.alerting import incidents
from sonar.alerting.evaluation import RANK, WHOSE, Evaluation, FoundCause, FoundLink, Whose
from sonar.alerting.subjects import Subject
from sonar.models import (
    Downtime,
    Endpoint,
    EvaluationRun,
    Expectation,
    HeldLevel,
    HistoryEntry,
    Incident,
    IncidentEvent,
    SizeClass,
)
from sonar.notation.windows import Window

# Runs that are further apart than this, or than so many of their intervals, do not follow each
# other: Sonar was away.
AWAY, AWAY_INTERVALS = timedelta(minutes=15), 3
# For so long after a pause or a downtime no link is called silent by what was before it.
LONGEST_SILENCE = timedelta(days=7)
# The first moment that tests show is that of an early one of them: some are slow by chance.
EARLY = 0.25


def evaluate(now: datetime) -> list[IncidentEvent]:
    """Look at all size classes, store what is new, and hold what is usual; return what happened."""
    with snapshot():
        grid = GridNow.read(now)
        rows = incidents.still_open()
        classes = [look_at(size_class, grid, rows) for size_class in SizeClass.objects.all()]
    causes = together([cause for each in classes for cause in each.causes], grid.site_ids)
    events = incidents.record(
        Evaluation(now, causes, dict(still_standing(rows, classes, grid)), grid.site_ids),
        EvaluationRun(
            evaluated_at=now,
            awake_since=grid.awake_since,
            links=sum(each.judged for each in classes),
        ),
    )
    incidents.hold(levels_to_hold(incidents.still_open(), classes, grid), now)
    return events


@dataclass(frozen=True)
class ClassLook:
    """What a size class says: the causes in it, and what is left of incidents, by their ids.

    ``kept_back`` are those of which nothing can be tested now. ``usual`` has the usual rates
    (bytes/s) of all links, shape (places, places), of which so many were ``judged``.
    """

    size_class: SizeClass
    causes: Sequence[FoundCause]
    left: Mapping[int, FoundCause]
    kept_back: Set[int]
    usual: Floats
    judged: int


def look_at(size_class: SizeClass, grid: GridNow, rows: Sequence[Incident]) -> ClassLook:
    """Look at a size class; of a million links it takes some 100 MB until this returns."""
    of_class = ClassNow.read(size_class, grid)
    left = {row.pk: cause for row in rows if (cause := left_of(row, of_class)) is not None}
    return ClassLook(
        size_class,
        list(of_class.causes()),
        left,
        {row.pk for row in rows if is_kept_back(row, grid)},
        of_class.usual,
        int(of_class.states.judged.sum()),
    )


@dataclass(frozen=True)
class GridNow:
    """What all size classes share: places, what is expected, and which links can be tested.

    ``free_since`` (Unix s) is since when nothing known has kept Sonar from testing a link, and
    ``testable`` says which links nothing keeps from it now; both of shape (places, places).
    ``held`` has the rates (bytes/s) that are held, by size class and link.
    """

    now: datetime
    version: DataVersion
    links: LinkIndex
    expectations: Sequence[Expectation]
    held: Mapping[Whose, float]
    free_since: Floats
    testable: Flags
    awake_since: datetime
    site_ids: Mapping[int, int]

    @classmethod
    def read(cls, now: datetime) -> GridNow:
        version = registry.read_versions()
        links = LinkIndex(registry.read_places(version))
        held = HeldLevel.objects.exclude(until__lte=now).values_list(*WHOSE, "rate")
        awake_since = awake(EvaluationRun.objects.first(), now)
        down = Downtime.endpoints_down(now)
        kept_back = links.ends(
            place.retired or place.id in down or place.is_paused(now) for place in links.places
        )
        free = np.maximum(free_since(links, now), awake_since.timestamp())
        return cls(
            now=now,
            version=version,
            links=links,
            expectations=expectations.read(),
            held={whose: rate for *ends, rate in held for whose in [tuple(ends)]},
            free_since=np.maximum(free[:, None], free[None, :]),
            testable=links.matching(()).reshape(links.shape) & ~kept_back.reshape(links.shape),
            awake_since=awake_since,
            site_ids=dict(Endpoint.objects.values_list("id", "site_id")),
        )

    @cached_property
    def sites(self) -> list[str]:
        return [place.site for place in self.links.places]

    @cached_property
    def ids(self) -> list[int]:
        return [place.id for place in self.links.places]

    def place(self, incident: Incident) -> Place | None:
        """Return what an incident is of as places; None where that is not registered any more."""
        ends = [incident.source_id, incident.destination_id]
        if any(end is not None and end not in self.ids for end in ends):
            return None
        source, destination = (None if end is None else self.ids.index(end) for end in ends)
        site = incident.site.name if incident.site else None
        return Place(incident.level, source, destination, site)

    def links_of(self, place: Place) -> Flags:
        return place.links(self.links.shape, self.sites)


def awake(last: EvaluationRun | None, now: datetime) -> datetime:
    """Return since when runs follow each other closely."""
    interval = timedelta(seconds=settings.SONAR_INCIDENTS_SECONDS)
    longest = max(AWAY, AWAY_INTERVALS * interval)
    if last is None or not timedelta() <= now - last.evaluated_at <= longest:
        return now
    return last.awake_since


def free_since(links: LinkIndex, now: datetime) -> Floats:
    """Return by place since when no downtime and no pause has kept its tests back, in Unix s."""
    free = np.zeros(len(links.places))
    number = {place.id: at for at, place in enumerate(links.places)}
    of_site: dict[str, list[int]] = {}
    for place in links.places:
        of_site.setdefault(place.site, []).append(place.id)
    ends = [
        (row.endpoint_id, row.site and row.site.name, row.ends_at)
        for row in downtimes.within(now - LONGEST_SILENCE, now)
        if row.stops_tests
    ]
    entries = HistoryEntry.objects.filter(
        kind__in=[HistoryEntry.Kind.SITE, HistoryEntry.Kind.ENDPOINT],
        at__gt=now - LONGEST_SILENCE,
        at__lte=now,
        changes__has_any_keys=["paused_since", "enabled", "retired_at"],
    )
    ends += [
        (entry.key, None, entry.at)
        if entry.kind == HistoryEntry.Kind.ENDPOINT
        else (None, entry.name, entry.at)
        for entry in entries
    ]
    for endpoint, site, end in ends:
        for each in [endpoint] if endpoint else of_site.get(site or "", []):
            if each in number:
                at = number[each]
                free[at] = max(free[at], min(end, now).timestamp())
    return free


@dataclass(frozen=True)
class ClassNow:
    """How the links of a size class are now."""

    size_class: SizeClass
    states: LinkStates
    faults: Sequence[NamedFault]
    usual: Floats
    grid: GridNow

    @classmethod
    def read(cls, size_class: SizeClass, grid: GridNow) -> ClassNow:
        """Read the newest tests of a class; what whole days tell is kept from run to run."""
        midnight = datetime.combine(grid.now, time(), UTC)
        window = Window(midnight, grid.now + timedelta(minutes=1))
        usual_days = standing.usual_window(window)
        recent_days, rest = standing.recent_windows(window, grid.now)
        of_usual, of_recent = data_version.read_results(size_class.name, [usual_days, recent_days])
        results = ResultsOfLinks.of(size_class.name, (), grid.links)
        numbering = grid.links.numbering
        newest = results.newest(recent_days, rest, of_recent, numbering)
        usual = results.usual(usual_days, of_usual, numbering)
        usual = with_held(usual, size_class, grid)
        query = MatrixQuery(size=size_class.name)
        every = registry.read_promises(query, grid.links, grid.version).reshape(grid.links.shape)
        states = LinkStates.of(
            newest,
            usual,
            expectations.rules_of(size_class, grid.expectations, grid.links),
            LinkTimes(grid.now.timestamp(), grid.free_since, every, grid.testable),
            numbering,
        )
        return cls(size_class, states, name_faults(states, grid.sites), usual.median, grid)

    def causes(self) -> Iterator[FoundCause]:
        for fault in self.faults:
            yield self.cause(fault)

    def cause(self, fault: NamedFault) -> FoundCause:
        """Return a fault with ids in the place of places."""
        links = np.argwhere(fault.links)
        members = [] if fault.place.level == "grid" else [*self.members(fault)]
        return FoundCause(
            subject=self.subject(fault.place),
            condition=fault.condition,
            began_at=self.began(fault),
            links=len(links),
            of_links=fault.of_links,
            sizes=(self.size_class.name,),
            factor=known_number(fault.factor),
            low=known_number(fault.low),
            high=known_number(fault.high),
            members=members,
        )

    def subject(self, place: Place) -> Subject:
        ids = self.grid.ids
        site = None
        if place.site is not None:
            site = self.grid.site_ids[ids[self.grid.sites.index(place.site)]]
        source, destination = (
            None if end is None else ids[end] for end in (place.source, place.destination)
        )
        return Subject(place.level, source, destination, site)

    def members(self, fault: NamedFault) -> Iterator[FoundLink]:
        ids, where = self.grid.ids, np.nonzero(fault.links)
        states, slow = self.states, fault.condition == Incident.Condition.SLOW
        columns = (states.since, states.expected, states.rate)
        rows = zip(*where, *(values[where].tolist() for values in columns), strict=True)
        for source, destination, since, expected, rate in rows:
            yield FoundLink(
                whose=(ids[source], ids[destination], self.size_class.id),
                condition=fault.condition,
                since=moment(since),
                expected=known_number(expected) if slow else None,
                rate=known_number(rate) if slow else None,
            )

    def began(self, fault: NamedFault) -> datetime:
        """Return when the tests that show it began: the first failure after the last success."""
        since = self.states.since[fault.links]
        if not since.size:
            return self.grid.now
        is_of_grid = fault.place == GRID
        if fault.condition == Incident.Condition.FAILING and not is_of_grid:
            last_ok = int(self.states.last_ok[fault.links].max())
            after = since[since > last_ok]
            return moment(int((after if after.size else since).min()))
        return moment(int(np.quantile(since, EARLY)))


def known_number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def with_held(usual: UsualRates, size_class: SizeClass, grid: GridNow) -> UsualRates:
    """Put the rates that are held in the place of what is usual."""
    own = {whose: rate for whose, rate in grid.held.items() if whose[2] == size_class.id}
    if not own:
        return usual
    median = usual.median.copy()
    number = {each: at for at, each in enumerate(grid.ids)}
    for (source, destination, _), rate in own.items():
        if source in number and destination in number:
            median[number[source], number[destination]] = rate
    return replace(usual, median=median)


def together(causes: Iterable[FoundCause], site_of: Mapping[int, int]) -> list[FoundCause]:
    """Make one cause of what several size classes say of the same subject, or of a part of it."""
    merged: dict[Subject, FoundCause] = {}
    for cause in sorted(causes, key=lambda cause: -cause.subject.size):
        larger = (
            subject
            for subject, other in merged.items()
            if subject == cause.subject
            or (
                subject.covers(cause.subject, site_of)
                and RANK[other.condition] >= RANK[cause.condition]
            )
        )
        subject = next(larger, cause.subject)
        merged[subject] = joined(merged[subject], cause) if subject in merged else cause
    return list(merged.values())


def joined(first: FoundCause, second: FoundCause) -> FoundCause:
    """Return one cause of two: the worse one's figures, the links and size classes of both."""
    same = first.subject == second.subject
    main = second if same and RANK[second.condition] > RANK[first.condition] else first
    sizes = (*first.sizes, *(size for size in second.sizes if size not in first.sizes))
    members = {link.whose: link for link in (*second.members, *first.members)}
    return replace(
        main,
        subject=first.subject,
        began_at=min(first.began_at, second.began_at),
        links=max(first.links, second.links) if same else first.links,
        of_links=max(first.of_links, second.of_links) if same else first.of_links,
        sizes=sizes,
        members=list(members.values()),
    )


def still_standing(
    rows: Iterable[Incident], classes: Sequence[ClassLook], grid: GridNow
) -> Iterator[tuple[int, FoundCause]]:
    """Yield the ids of open incidents that are not well again, with what is left of each."""
    for row in rows:
        rest = [each.left[row.pk] for each in classes if row.pk in each.left]
        if rest:
            yield row.pk, together(rest, grid.site_ids)[0]
        elif any(row.pk in each.kept_back for each in classes):
            yield row.pk, as_it_was(row)


def left_of(row: Incident, of_class: ClassNow) -> FoundCause | None:
    place = of_class.grid.place(row)
    if place is None or of_class.size_class.name not in row.sizes:
        return None
    fault = what_is_left(place, row.condition, of_class.states, of_class.grid.sites)
    return None if fault is None else of_class.cause(fault)


def is_kept_back(row: Incident, grid: GridNow) -> bool:
    """Say whether nothing of an incident can be judged while its tests are kept back."""
    place = grid.place(row)
    if place is None:
        return False
    own = grid.links_of(place)
    in_use = ~grid.links.ends(each.retired for each in grid.links.places).reshape(own.shape)
    return bool((own & in_use).any()) and not (own & grid.testable).any()


def as_it_was(row: Incident) -> FoundCause:
    """Return the cause of an incident of which nothing new is known."""
    members = [
        FoundLink(incidents.whose_of(link), link.condition, link.since, link.expected, link.rate)
        for link in row.members.filter(until=None)
    ]
    return FoundCause(
        Subject.of(row),
        row.condition,
        row.began_at,
        row.links,
        row.of_links,
        tuple(row.sizes),
        row.factor,
        row.low,
        row.high,
        members,
    )


def levels_to_hold(
    rows: Iterable[Incident], classes: Sequence[ClassLook], grid: GridNow
) -> dict[Whose, float]:
    """Return the usual rates of all links of open incidents but those of the whole grid."""
    levels: dict[Whose, float] = {}
    for row in rows:
        place = grid.place(row)
        if place is None or row.level == Incident.Level.GRID:
            continue
        for each in classes:
            where = np.nonzero(grid.links_of(place) & (each.usual > 0))
            for source, destination, rate in zip(*where, each.usual[where].tolist(), strict=True):
                levels[grid.ids[source], grid.ids[destination], each.size_class.id] = rate
    return levels
