"""Whether each endpoint can be used as a source and as a destination, as incidents say.

They have hysteresis: an endpoint does not change its state with each test.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db.models import Max, Q

from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import LinkIndex
from matrix.store import downtimes, incidents, registry
from matrix.store.incidents import OPEN
from sonar.models import (
    Downtime,
    Endpoint,
    HistoryEntry,
    Incident,
    IncidentEvent,
    IncidentLink,
    SizeClass,
)

Level, Kind = Incident.Level, HistoryEntry.Kind
OK, DOWN, UNKNOWN = "ok", "down", "unknown"
STATES = (OK, *Incident.Condition.values, DOWN, UNKNOWN)
# What one incident says of an endpoint is less than what a worse one does.
BADNESS = {condition: at for at, condition in enumerate(Incident.Condition.values)}
SOURCE, DESTINATION = "source", "destination"
BOTH = (SOURCE, DESTINATION)
OF_LEVELS = {Level.SOURCE: (SOURCE,), Level.DESTINATION: (DESTINATION,)}


@dataclass(frozen=True)
class EndState:
    """The state of one end since then, None if it always was; ``incident`` is what says so."""

    state: str
    since: datetime | None = None
    incident: Incident | None = None


@dataclass(frozen=True)
class EndpointState:
    """Links count once, however many size classes are tested; bad ones are in open incidents."""

    endpoint: Endpoint
    source: EndState
    destination: EndState
    links_bad: int
    links_all: int

    @property
    def as_source(self) -> str:
        return self.source.state

    @property
    def as_destination(self) -> str:
        return self.destination.state

    @property
    def since(self) -> datetime | None:
        """Return since when both states are as they are, None if nothing is known to be before."""
        return max(filter(None, (self.source.since, self.destination.since)), default=None)

    @property
    def evidence(self) -> list[Incident]:
        open_ones = (end.incident for end in (self.source, self.destination) if end.incident)
        return list({incident.pk: incident for incident in open_ones}.values())


@dataclass(frozen=True)
class EndpointSituation:
    """What the states of all endpoints follow from, at a moment.

    ``trouble`` is what makes all of them unknown. ``down`` has since when endpoints and sites are,
    ``over`` when the last incident of an end was closed, ``bad`` the links of open incidents by
    each of their ends, ``links`` how many are tested from each endpoint, and to it.
    """

    trouble: EndState | None
    open: Sequence[Incident]
    down: Mapping[tuple[str, int | None], datetime]
    over: Mapping[tuple[int, str], datetime]
    bad: Mapping[int, set[tuple[int, int]]]
    links: Mapping[int, tuple[int, int]]

    def of(self, row: Endpoint) -> EndpointState:
        counts = self.links.get(row.pk, (0, 0))
        source, destination = (self.end(row, *each) for each in zip(BOTH, counts, strict=True))
        bad = len(self.bad.get(row.pk, ()))
        return EndpointState(row, source, destination, bad, sum(counts))

    def end(self, row: Endpoint, end: str, links: int) -> EndState:
        """Return the state of an endpoint at one end, which has so many links."""
        own: list[tuple[str, int | None]] = [("endpoint", row.pk), ("site", row.site_id)]
        if downs := [self.down[key] for key in own if key in self.down]:
            return EndState(DOWN, min(downs))
        if self.trouble or not links:
            return self.trouble or EndState(UNKNOWN)
        concerning = [each for each in self.open if concerns(each, row, end)]
        if not concerning:
            return EndState(OK, self.over.get((row.pk, end)))
        worst = max(concerning, key=lambda each: (BADNESS[each.condition], each.pk))
        return EndState(worst.condition, worst.began_at, worst)


def concerns(incident: Incident, row: Endpoint, end: str) -> bool:
    """Say whether an incident says something of an endpoint at an end; that of a link does not."""
    if incident.level == Level.SITE:
        return incident.site_id == row.site_id
    own = incident.source_id if end == SOURCE else incident.destination_id
    return incident.level != Level.LINK and own == row.pk


def states(now: datetime, chosen: Q) -> list[EndpointState]:
    """Return the states of chosen endpoints in use, by name.

    The number of SQL queries does not depend on the data, but for one for each size class.
    """
    open_ones = list(incidents.rows().filter(OPEN))
    situation = EndpointSituation(
        trouble(open_ones, now), open_ones, down_at(now), closed_at(), bad_links(), tested_links()
    )
    rows = Endpoint.objects.in_use().filter(chosen).select_related("site").order_by("name")
    return [situation.of(row) for row in rows]


def tested_links() -> dict[int, tuple[int, int]]:
    """Return how many links meshes test from each endpoint, and to it, by its id."""
    version = registry.read_versions()
    places = registry.read_places(version)
    index, tested = LinkIndex(tuple(places)), np.zeros(len(places) ** 2, dtype=bool)
    for size in SizeClass.objects.values_list("name", flat=True):
        tested |= np.isfinite(registry.read_promises(MatrixQuery(size=size), index, version))
    links = tested.reshape(len(places), len(places))
    counts = zip(links.sum(axis=1).tolist(), links.sum(axis=0).tolist(), strict=True)
    return {place.id: both for place, both in zip(places, counts, strict=True)}


def down_at(now: datetime) -> dict[tuple[str, int | None], datetime]:
    """Return since when endpoints and sites are in a downtime that stops tests. One SQL query."""
    first: dict[tuple[str, int | None], datetime] = {}
    for row in downtimes.within(now, now):
        key = ("site", row.site_id) if row.site_id else ("endpoint", row.endpoint_id)
        if row.stops_tests:
            first.setdefault(key, row.starts_at)
    return first


def trouble(open_ones: Iterable[Incident], now: datetime) -> EndState | None:
    """Say why nothing can be said of any endpoint: nobody looks, or Sonar itself has trouble."""
    run = incidents.last_run()
    if run is None or incidents.is_late(run.evaluated_at, now):
        return EndState(UNKNOWN, run.evaluated_at if run else None)
    of_grid = next((each for each in open_ones if each.level == Level.GRID), None)
    return EndState(UNKNOWN, of_grid.began_at, of_grid) if of_grid else None


def bad_links() -> dict[int, set[tuple[int, int]]]:
    """Return the links of open incidents by each of their ends. One SQL query."""
    links = IncidentLink.objects.filter(until=None, incident__closed_at=None)
    bad: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for link in links.values_list("source_id", "destination_id").distinct():
        for end in link:
            bad[end].add(link)
    return bad


def closed_at() -> dict[tuple[int, str], datetime]:
    """Return when the last incident of each end was over. Two SQL queries."""
    rows = Incident.objects.filter(~OPEN, merged_into=None).exclude(level=Level.LINK)
    over: dict[tuple[int, str], datetime] = {}
    for end in BOTH:
        last = rows.exclude(**{end: None}).values_list(f"{end}_id").annotate(Max("closed_at"))
        over |= {(endpoint, end): at for endpoint, at in last}
    return over


def changed_since(event: int | None, at: datetime, now: datetime) -> Q:
    """Return which endpoints may have changed since an event or, without one, since a time.

    ``at`` is the time of either. They are more than those that did: who takes the answer for what
    is so loses nothing.
    """
    run = incidents.last_run()
    if run is None or run.awake_since > at or incidents.is_late(run.evaluated_at, now):
        return Q()
    events = IncidentEvent.objects.filter(Q(pk__gt=event) if event else Q(at__gte=at))
    touched = Incident.objects.filter(pk__in=events.values("incident"))
    written = HistoryEntry.objects.filter(at__gte=at)
    of_all = Q(kind__in=(Kind.MESH, Kind.SIZE_CLASS))
    if touched.filter(level=Level.GRID).exists() or written.filter(of_all).exists():
        return Q()
    turned = Q(starts_at__gt=at, starts_at__lte=now) | Q(ends_at__gt=at, ends_at__lte=now)
    declared = Downtime.objects.filter(turned)
    endpoints = [
        *(touched.values(end) for end in BOTH),
        *(IncidentLink.objects.filter(incident__in=touched).values(end) for end in BOTH),
        declared.values("endpoint"),
        written.filter(kind=Kind.ENDPOINT).values("key"),
    ]
    of_sites = written.filter(kind__in=(Kind.SITE, Kind.DOWNTIME))
    sites = [touched.values("site"), declared.values("site"), of_sites.values("site")]
    conditions = [("pk__in", rows) for rows in endpoints] + [("site__in", rows) for rows in sites]
    return Q(*conditions, _connector=Q.OR)
