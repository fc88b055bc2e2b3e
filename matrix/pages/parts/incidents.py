"""Incidents on any page: what is open in the whole grid, and those that concern what it shows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from django.db.models import Exists, OuterRef, Q

from matrix.answers.conditions import words as condition_words
from matrix.answers.conditions.reading import Judgement
from matrix.answers.incidents import words
from matrix.answers.words.names import short_names_of
from matrix.query.addresses import address
from matrix.store import downtimes, incidents, registry
from matrix.store.incidents import OF_GRID, OPEN
from sonar.models import ConditionLink, Endpoint, Incident, IncidentLink
from sonar.notation.units import format_span
from sonar.people.roles import Anyone

Names = Mapping[str, str]
OPEN_GRID = OPEN & OF_GRID
# In one line; the page of all has the others.
MOST_NOW = 3
# Of a link, a site or an endpoint.
MOST_OF = 10
# What pages colour a condition by.
LOOKS = {
    Incident.Type.SLOW: "slower",
    Incident.Type.FAILING: "failing",
    Incident.Type.SILENT: "silent",
}


def names_in_lists() -> Names:
    """Return the short names of all endpoints. One SQL query once the registry is known."""
    return short_names_of(registry.read_places(registry.read_versions()))


@dataclass(frozen=True)
class IncidentLine:
    """An incident as one line of a page, for one reader at a moment.

    ``short`` is its title with the short names of endpoints; ``response`` says who responds.
    ``marks`` are reasons why it sends no notifications: muted, in a downtime.
    """

    incident: Incident
    title: str
    short: str
    url: str
    look: str
    response: str
    lasts: str
    since: str
    marks: Sequence[str] = ()

    @property
    def response_or_link(self) -> str:
        """Return who responds to the incident, or the text of a link to its page."""
        has_response = self.incident.assignee or self.incident.acknowledged_at
        return self.response if has_response else "incident"

    @classmethod
    def of(
        cls, incident: Incident, now: datetime, reader: Anyone, names: Names, *marks: str
    ) -> Self:
        condition = words.condition_of(incident)
        # An incident stays open for an hour after its condition has ended.
        end = condition.ended_at
        span = format_span((end or now) - incident.began_at)
        return cls(
            incident,
            condition_words.title(condition),
            condition_words.title(condition, names),
            words.path(incident),
            LOOKS[Incident.Type(incident.type)],
            words.response(incident, reader),
            f"lasted {span}" if end else f"for {span}",
            condition_words.since(condition),
            [mark for mark in (words.muted(incident, now), *marks) if mark and incident.is_open],
        )


def with_marks(
    several: Sequence[Incident], now: datetime, reader: Anyone, names: Names
) -> Iterator[IncidentLine]:
    """Yield lines of incidents, and which of them are of what is in a downtime. One SQL query."""
    rows = [row for row in downtimes.within(now, now) if row.stops_tests] if several else []
    ends = {row.endpoint_id for row in rows if row.endpoint_id}
    sites = {row.site_id for row in rows if row.site_id}
    for incident in several:
        own = [end for end in (incident.source, incident.destination) if end]
        is_down = any(end.pk in ends or end.site_id in sites for end in own)
        is_down = is_down or incident.site_id in sites
        mark = "in a declared downtime" if is_down else ""
        yield IncidentLine.of(incident, now, reader, names, mark)


@dataclass(frozen=True)
class IncidentsNow:
    """The worst of ``many`` open incidents, how many ``more`` there are, and as of when."""

    lines: Sequence[IncidentLine]
    many: int
    more: int
    as_of: str
    is_late: bool

    @classmethod
    def read(cls, now: datetime, reader: Anyone, names: Names) -> Self:
        """Read them with one SQL query; ``names`` are the short ones of endpoints."""
        present = incidents.open_now(now, MOST_NOW)
        judgement = Judgement([], present.as_of, present.is_late, now)
        return cls(
            [IncidentLine.of(each, now, reader, names) for each in present.worst],
            present.many,
            present.many - len(present.worst),
            condition_words.as_of(judgement),
            present.is_late,
        )

    def without(self, conditions: Collection[int]) -> Self:
        """Leave out the lines of conditions that are told elsewhere."""
        return replace(self, lines=[x for x in self.lines if x.incident.cause_id not in conditions])

    @property
    def all_url(self) -> str:
        return f"{address('incidents')}?open=yes"


@dataclass(frozen=True)
class IncidentsOf:
    """The incidents that concern what a page shows, open ones and the last that were."""

    open: Sequence[IncidentLine]
    closed: Sequence[IncidentLine]

    @classmethod
    def read(cls, chosen: Q, now: datetime, reader: Anyone) -> Self:
        """Read those that are chosen. One SQL query, and those of names_in_lists() if any are."""
        rows = list(incidents.rows().filter(chosen).order_by(*incidents.ORDER)[: 2 * MOST_OF])
        names = names_in_lists() if rows else {}
        lines = [IncidentLine.of(each, now, reader, names) for each in rows]
        return cls(
            [line for line in lines if line.incident.is_open],
            [line for line in lines if not line.incident.is_open][:MOST_OF],
        )


def of_link(source: int, destination: int) -> Q:
    """Return what concerns a link, given by the ids of its ends, now and before."""
    links = Q(source=source, destination=destination)
    members = ConditionLink.objects.filter(links, part__condition=OuterRef("cause"))
    # Incidents from before there were conditions.
    before = IncidentLink.objects.filter(links, incident=OuterRef("pk"))
    return Q(Exists(members)) | Q(Exists(before)) | OPEN_GRID


def of_site(name: str) -> Q:
    """Return what concerns a site, now and before."""
    return incidents.of_sites([name]) | OPEN_GRID


def of_endpoint(endpoint: Endpoint) -> Q:
    """Return what concerns an endpoint and is open."""
    own = Q(source=endpoint) | Q(destination=endpoint) | Q(site=endpoint.site_id)
    return OPEN & own | OPEN_GRID
