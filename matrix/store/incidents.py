"""Incidents as they are read: which there are, the links that each explains, what happened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Case, DateTimeField, F, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce

from sonar.database.cursors import planned_rows
from sonar.models import Endpoint, EvaluationRun, Incident, IncidentEvent, IncidentLink, Site

# An evaluation that is later than this many of its intervals is not coming.
LATE = 3
OPEN = Q(closed_at=None)
Level, Condition = Incident.Level, Incident.Condition
OF_GRID = Q(level=Level.GRID)
# Open ones first, of them the grid's, and the worst; and the newest of those that are alike.
ORDER = ("rank", "-at", "-id")
CLOSED_RANK = 4
RANK = Case(
    When(~OPEN, then=Value(CLOSED_RANK)),
    When(level=Level.GRID, then=Value(0)),
    When(Q(condition=Condition.FAILING), then=Value(1)),
    When(Q(condition=Condition.SILENT), then=Value(2)),
    default=Value(3),
)
NEWEST = Coalesce("closed_at", "opened_at", output_field=DateTimeField())
PEOPLE = ("acknowledged_by", "assignee")


def rows() -> QuerySet[Incident]:
    """Return all with what they are of and who is at them, and what ORDER orders by."""
    subjects = ("source__site", "destination__site", "site", *PEOPLE)
    return Incident.objects.select_related(*subjects).annotate(rank=RANK, at=NEWEST)


def by_id(number: int) -> Incident | None:
    """Return one by its id. One SQL query."""
    return rows().filter(pk=number).first()


def of_sites(names: Sequence[str]) -> Q:
    """Return what is of one of these sites, or of its endpoints and links."""
    ends = Q(source__site__name__in=names) | Q(destination__site__name__in=names)
    return ends | Q(site__name__in=names)


def members(incident: Incident) -> QuerySet[IncidentLink]:
    """Return its links: those that are still bad first, of these failing and slow ones."""
    is_over = Case(When(until=None, then=Value(0)), default=Value(1))
    badness = Case(
        When(Q(condition=Condition.FAILING), then=Value(0)),
        When(Q(condition=Condition.SILENT), then=Value(1)),
        default=Value(2),
    )
    ratio = (F("rate") / F("expected")).asc(nulls_last=True)
    links = incident.members.select_related("source__site", "destination__site", "size_class")
    return links.order_by(is_over, badness, ratio, "since", "id")


def events_of(incident: Incident) -> list[IncidentEvent]:
    """Return what happened to it, the first thing first. One SQL query."""
    return list(incident.events.select_related("by").order_by("id"))


def last_event() -> int:
    """Return the id of the last event, 0 before any. One SQL query."""
    return IncidentEvent.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


@dataclass(frozen=True)
class OpenNow:
    """The worst incidents that are open, of how ``many``, and when Sonar last looked for some.

    ``is_late`` says that it should have looked again since.
    """

    worst: Sequence[Incident]
    many: int
    looked_at: datetime | None
    is_late: bool


# There is a row even where no incident is open, or nobody has looked for any yet.
OPEN_NOW = """
    SELECT run.evaluated_at, count(incident.id) OVER (),
           incident.id, incident.level, incident.condition, incident.began_at,
           incident.source_id, incident.destination_id, incident.acknowledged_at,
           incident.muted_until, source.name, destination.name, site.name,
           acknowledged.username, assignee.username
    FROM (SELECT 1) AS once
    LEFT JOIN sonar_evaluationrun AS run ON TRUE
    LEFT JOIN sonar_incident AS incident ON incident.closed_at IS NULL
    LEFT JOIN sonar_endpoint AS source ON source.id = incident.source_id
    LEFT JOIN sonar_endpoint AS destination ON destination.id = incident.destination_id
    LEFT JOIN sonar_site AS site ON site.id = incident.site_id
    LEFT JOIN auth_user AS acknowledged ON acknowledged.id = incident.acknowledged_by_id
    LEFT JOIN auth_user AS assignee ON assignee.id = incident.assignee_id
    ORDER BY incident.level <> 'grid', incident.muted_until > %(now)s IS TRUE,
             array_position(ARRAY['failing', 'silent', 'slow'], incident.condition::text),
             incident.opened_at DESC, incident.id DESC
    LIMIT %(most)s
"""


def open_now(now: datetime, most: int) -> OpenNow:
    """Read the worst that are open, those that nobody mutes first. One SQL query."""
    lines = planned_rows(OPEN_NOW, {"now": now, "most": most})
    looked_at, many = lines[0][:2]
    worst = [incident_of(line[2:]) for line in lines if line[2] is not None]
    return OpenNow(worst, many, looked_at, looked_at is not None and is_late(looked_at, now))


def is_late(looked_at: datetime, now: datetime) -> bool:
    """Say whether Sonar should have looked for incidents again since."""
    return now - looked_at > timedelta(seconds=LATE * settings.SONAR_INCIDENTS_SECONDS)


def last_run() -> EvaluationRun | None:
    """Return when Sonar last looked, None if it never has. One SQL query."""
    return EvaluationRun.objects.first()


def incident_of(line: Sequence[Any]) -> Incident:
    """Return an incident with what a line of OPEN_NOW has of it."""
    columns = (
        *("id", "level", "condition", "began_at", "source_id", "destination_id"),
        *("acknowledged_at", "muted_until"),
    )
    *own, source, destination, site, acknowledged, assignee = line
    related = {
        "source": source and Endpoint(id=own[4], name=source),
        "destination": destination and Endpoint(id=own[5], name=destination),
        "site": site and Site(name=site),
        "acknowledged_by": acknowledged and User(username=acknowledged),
        "assignee": assignee and User(username=assignee),
    }
    incident = Incident(**dict(zip(columns, own, strict=True)))
    for name, row in related.items():
        if row:
            setattr(incident, name, row)
    return incident
