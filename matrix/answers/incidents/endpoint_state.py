"""Whether each endpoint can be used as a source and as a destination: confirmed conditions say so.

They have hysteresis: an endpoint does not change its state with each test.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db.models import Max, Min, Q
from django.db.models.functions import Coalesce

from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import LinkIndex
from matrix.store import conditions, downtimes, registry
from matrix.store.conditions import is_late
from sonar.alerting.incidents import CALM
from sonar.models import (
    Assessment,
    Condition,
    ConditionLink,
    Downtime,
    Endpoint,
    HistoryEntry,
    Incident,
    IncidentEvent,
    SizeClass,
)

Scope, Kind = Condition.Scope, HistoryEntry.Kind
OK, DOWN, UNKNOWN = "ok", "down", "unknown"
STATES = (OK, *Incident.Type.values, DOWN, UNKNOWN)
# What one condition says of an endpoint is less than what a worse one does.
BADNESS = {type_: at for at, type_ in enumerate(Incident.Type.values)}
SOURCE, DESTINATION = "source", "destination"
BOTH = (SOURCE, DESTINATION)
# What states follow from; those of single links say nothing of their ends.
JUDGED = Q(confirmed_at__isnull=False, type__in=BADNESS)


@dataclass(frozen=True)
class EndState:
    """The state of one end since then, None if it always was; ``condition`` is what says so."""

    state: str
    since: datetime | None = None
    condition: Condition | None = None


@dataclass(frozen=True)
class EndpointState:
    """Links count once, however many size classes are tested; bad ones are in open conditions."""

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
    def evidence(self) -> list[Condition]:
        open_ones = (end.condition for end in (self.source, self.destination) if end.condition)
        return list({condition.pk: condition for condition in open_ones}.values())


def concerns(condition: Condition, row: Endpoint, end: str) -> bool:
    """Say whether a condition says something of an endpoint at an end; that of a link does not."""
    if condition.scope == Scope.SITE:
        return condition.site_id == row.site_id
    own = condition.source_id if end == SOURCE else condition.destination_id
    return condition.scope != Scope.LINK and own == row.pk


def states(now: datetime, chosen: Q) -> list[EndpointState]:
    """Return the states of chosen endpoints in use, by name.

    The number of SQL queries does not depend on the data, but for one for each size class.
    """
    open_ones = list(Condition.objects.filter(JUDGED, ended_at=None).order_by("id"))
    unknown, down, over = trouble(open_ones, now), down_at(now), ended_at()
    bad, links, listed = bad_links(), tested_links(), []
    rows = Endpoint.objects.in_use().filter(chosen).select_related("site").order_by("name")
    for row in rows:
        counts, ends = links.get(row.pk, (0, 0)), []
        own: list[tuple[str, int | None]] = [("endpoint", row.pk), ("site", row.site_id)]
        since = min((down[key] for key in own if key in down), default=None)
        for end, tested in zip(BOTH, counts, strict=True):
            concerning = [each for each in open_ones if concerns(each, row, end)]
            if since is not None:
                ends.append(EndState(DOWN, since))
            elif unknown or not tested:
                ends.append(unknown or EndState(UNKNOWN))
            elif concerning:
                worst = max(concerning, key=lambda each: (BADNESS[each.type], each.pk))
                ends.append(EndState(worst.type, worst.since, worst))
            else:
                ends.append(EndState(OK, over.get((row.pk, end))))
        source, destination = ends
        many = len(bad.get(row.pk, ()))
        listed.append(EndpointState(row, source, destination, many, sum(counts)))
    return listed


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


def trouble(open_ones: Iterable[Condition], now: datetime) -> EndState | None:
    """Say why nothing can be said of any endpoint: it was not assessed, or Sonar has trouble."""
    as_of = conditions.assessed_at()
    if as_of is None or is_late(as_of, now):
        return EndState(UNKNOWN, as_of)
    of_grid = next((each for each in open_ones if each.scope == Scope.GRID), None)
    return EndState(UNKNOWN, of_grid.since, of_grid) if of_grid else None


def bad_links() -> dict[int, set[tuple[int, int]]]:
    """Return the links of open conditions by each of their ends. One SQL query."""
    lasting = {"part__ended_at": None, "part__condition__ended_at": None}
    links = ConditionLink.objects.filter(
        **lasting, part__condition__confirmed_at__isnull=False, part__condition__type__in=BADNESS
    )
    bad: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for link in links.values_list("source_id", "destination_id").distinct():
        for end in link:
            bad[end].add(link)
    return bad


def ended_at() -> dict[tuple[int, str], datetime]:
    """Return when the last condition of each end was over. Two SQL queries."""
    rows = Condition.objects.filter(JUDGED, ended_at__isnull=False).exclude(scope=Scope.LINK)
    over: dict[tuple[int, str], datetime] = {}
    for end in BOTH:
        last = rows.exclude(**{end: None}).values_list(f"{end}_id").annotate(Max("ended_at"))
        over |= {(endpoint, end): at for endpoint, at in last}
    return over


def changed_since(event: int | None, at: datetime, now: datetime) -> Q:
    """Return which endpoints may have changed since an event or, without one, since a time.

    ``at`` is the time of either. They are more than those that did: who takes the answer for what
    is so loses nothing.
    """
    last = Assessment.objects.aggregate(
        as_of=Min("assessed_at"), awake_since=Max(Coalesce("awake_since", "assessed_at"))
    )
    if last["as_of"] is None or last["awake_since"] > at or is_late(last["as_of"], now):
        return Q()
    events = IncidentEvent.objects.filter(Q(pk__gt=event) if event else Q(at__gte=at))
    # Of what has just ended there is no event until it closes.
    ended = Q(clear_since__gte=at - CALM)
    touched = Incident.objects.filter(Q(pk__in=events.values("incident")) | ended)
    written = HistoryEntry.objects.filter(at__gte=at)
    of_all = Q(kind__in=(Kind.MESH, Kind.SIZE_CLASS))
    if touched.filter(scope=Scope.GRID).exists() or written.filter(of_all).exists():
        return Q()
    turned = Q(starts_at__gt=at, starts_at__lte=now) | Q(ends_at__gt=at, ends_at__lte=now)
    declared = Downtime.objects.filter(turned)
    links = ConditionLink.objects.filter(part__condition__in=touched.values("cause"))
    endpoints = [
        *(touched.values(end) for end in BOTH),
        *(links.values(end) for end in BOTH),
        declared.values("endpoint"),
        written.filter(kind=Kind.ENDPOINT).values("key"),
    ]
    of_sites = written.filter(kind__in=(Kind.SITE, Kind.DOWNTIME))
    sites = [touched.values("site"), declared.values("site"), of_sites.values("site")]
    conditions = [("pk__in", rows) for rows in endpoints] + [("site__in", rows) for rows in sites]
    return Q(*conditions, _connector=Q.OR)
