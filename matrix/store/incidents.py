"""Incidents as they are read: which there are, the links that each explains, what happened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import (
    Case,
    DateTimeField,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from matrix.store.conditions import is_late
from sonar.database.cursors import planned_rows
from sonar.models import (
    Condition,
    ConditionLink,
    ConditionPart,
    Endpoint,
    Incident,
    IncidentEvent,
    Site,
    SizeClass,
)

OPEN = Q(closed_at=None)
Scope = Incident.Scope
OF_GRID = Q(scope=Scope.GRID)
# Open ones first, of them the grid's, and the worst; and the newest of those that are alike.
ORDER = ("rank", "-at", "-id")
CLOSED_RANK = 4
RANK = Case(
    When(~OPEN, then=Value(CLOSED_RANK)),
    When(scope=Scope.GRID, then=Value(0)),
    When(Q(type=Incident.Type.FAILING), then=Value(1)),
    When(Q(type=Incident.Type.SILENT), then=Value(2)),
    default=Value(3),
)
NEWEST = Coalesce("closed_at", "opened_at", output_field=DateTimeField())
PEOPLE = ("acknowledged_by", "assignee")


def rows() -> QuerySet[Incident]:
    """Return all with what they are of and who is at them, and what ORDER orders by.

    `tests` and `failed` are counts of all size classes of its condition, None without one.
    """
    parts = ConditionPart.objects.filter(condition=OuterRef("cause")).order_by()
    counts = {
        name: Subquery(parts.values("condition").annotate(total=Sum(name)).values("total"))
        for name in ("tests", "failed")
    }
    subjects = ("source__site", "destination__site", "site", "cause", *PEOPLE)
    return Incident.objects.select_related(*subjects).annotate(rank=RANK, at=NEWEST, **counts)


def by_id(number: int) -> Incident | None:
    return rows().filter(pk=number).first()


def of_sites(names: Sequence[str]) -> Q:
    """Return what is of one of these sites, or of its endpoints and links."""
    ends = Q(source__site__name__in=names) | Q(destination__site__name__in=names)
    return ends | Q(site__name__in=names)


@dataclass(frozen=True)
class Member:
    """A link that an incident explains, with one size class; ``until`` is None while it does.

    ``baseline`` is its rate before it began, ``rate`` the one since (bytes/s), None where it is not
    known.
    """

    source: Endpoint
    destination: Endpoint
    size_class: SizeClass
    type: str
    since: datetime
    until: datetime | None
    baseline: float | None
    rate: float | None = None

    @property
    def share(self) -> float | None:
        return self.rate / self.baseline if self.rate and self.baseline else None


def members(incident: Incident, most: int) -> tuple[list[Member], int]:
    """Return its links, those that usually reach the highest rate first, and how many there are.

    Of an incident from before there were conditions, those that were noted then. Two SQL queries.
    """
    ends = ("source__site", "destination__site")
    if incident.cause_id is None:
        noted = incident.members.select_related(*ends, "size_class")
        noted = noted.order_by(F("until").desc(nulls_first=True), "since", "id")
        names = tuple(Member.__dataclass_fields__)
        rows = [Member(*(getattr(row, name) for name in names)) for row in noted[:most]]
        return rows, noted.count()
    links = ConditionLink.objects.filter(part__condition=incident.cause_id)
    links = links.select_related(*ends, "part__size_class")
    links = links.order_by(F("baseline").desc(nulls_last=True), "id")
    rows = [
        Member(
            row.source,
            row.destination,
            row.part.size_class,
            incident.type,
            row.part.since,
            row.part.ended_at,
            row.baseline,
        )
        for row in links[:most]
    ]
    return rows, links.count()


def events_of(incident: Incident) -> list[IncidentEvent]:
    """Return what happened to it, the first thing first. One SQL query."""
    return list(incident.events.select_related("by").order_by("id"))


def last_event() -> int:
    """Return the id of the last event, 0 before any. One SQL query."""
    return IncidentEvent.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


@dataclass(frozen=True)
class OpenNow:
    """The worst incidents that are open, of how ``many``, and as of when.

    ``is_late`` says that results should have been assessed again since.
    """

    worst: Sequence[Incident]
    many: int
    as_of: datetime | None
    is_late: bool


# There is a row even where no incident is open, or nothing was assessed yet.
OPEN_NOW = """
    SELECT (SELECT min(assessed_at) FROM sonar_assessment), count(incident.id) OVER (),
           incident.id, incident.scope, incident.type, incident.began_at,
           incident.clear_since, incident.factor, incident.low, incident.high,
           incident.source_id, incident.destination_id, incident.acknowledged_at,
           incident.muted_until, source.name, destination.name, site.name,
           acknowledged.username, assignee.username, cause.id, cause.since_low, cause.since_high
    FROM (SELECT 1) AS once
    LEFT JOIN sonar_incident AS incident ON incident.closed_at IS NULL
    LEFT JOIN sonar_endpoint AS source ON source.id = incident.source_id
    LEFT JOIN sonar_endpoint AS destination ON destination.id = incident.destination_id
    LEFT JOIN sonar_site AS site ON site.id = incident.site_id
    LEFT JOIN auth_user AS acknowledged ON acknowledged.id = incident.acknowledged_by_id
    LEFT JOIN auth_user AS assignee ON assignee.id = incident.assignee_id
    LEFT JOIN sonar_condition AS cause ON cause.id = incident.cause_id
    ORDER BY incident.scope <> 'grid', incident.muted_until > %(now)s IS TRUE,
             array_position(ARRAY['failing', 'silent', 'slow'], incident.type::text),
             incident.opened_at DESC, incident.id DESC
    LIMIT %(most)s
"""


def open_now(now: datetime, most: int) -> OpenNow:
    """Read the worst that are open, those that nobody mutes first. One SQL query."""
    lines = planned_rows(OPEN_NOW, {"now": now, "most": most})
    as_of, many = lines[0][:2]
    columns = (
        *("id", "scope", "type", "began_at", "clear_since", "factor", "low", "high"),
        *("source_id", "destination_id", "acknowledged_at", "muted_until"),
    )
    worst = []
    for line in lines if lines[0][2] is not None else ():
        *own, source, destination, site, acknowledged, assignee, cause, low, high = line[2:]
        incident = Incident(**dict(zip(columns, own, strict=True)))
        related = {
            "source": source and Endpoint(id=incident.source_id, name=source),
            "destination": destination and Endpoint(id=incident.destination_id, name=destination),
            "site": site and Site(name=site),
            "acknowledged_by": acknowledged and User(username=acknowledged),
            "assignee": assignee and User(username=assignee),
            "cause": cause and Condition(id=cause, since_low=low, since_high=high),
        }
        for name, row in related.items():
            if row:
                setattr(incident, name, row)
        worst.append(incident)
    return OpenNow(worst, many, as_of, is_late(as_of, now))
