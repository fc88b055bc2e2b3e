"""The door of incidents: one for each confirmed condition opens, changes and closes here alone.

All of a step is one transaction under one lock, with whatever notifications follow from it: ids of
events are in the order of their commits, so that readers of the stream miss none.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from sonar.alerting import outbox
from sonar.alerting.subjects import Subject
from sonar.database.cursors import lock_until_commit, planned_rows
from sonar.models import Condition, Endpoint, Incident, IncidentEvent

Type = IncidentEvent.Type
LOCK = 0x696E6364
# It closes so long after its condition ended; one that comes back within so long goes on.
CALM = timedelta(hours=1)
COMES_BACK = timedelta(days=1)
# By how much the number of links, or the factor, has to change for an event.
GROWS = 1.5
RANK = {type_: place for place, type_ in enumerate(Incident.Type.values)}
# Events that Sonar itself adds with figures.
SEEN = (Type.OPENED, Type.GREW, Type.SHRANK, Type.WORSE, Type.BETTER, Type.CAUSE, Type.REOPENED)
FIGURES = ("scope", "type", "factor", "links", "of_links")
# What an incident has of its condition: its columns, by those of the condition.
OF_CONDITION = {
    "scope": "scope",
    "source_id": "source_id",
    "destination_id": "destination_id",
    "site_id": "site_id",
    "type": "type",
    "began_at": "since",
    "factor": "factor",
    "low": "factor_low",
    "high": "factor_high",
    "links": "links",
    "of_links": "of_links",
    "sizes": "size_classes",
}
DOES_ANY_DIFFER = f"""
    SELECT EXISTS (
        SELECT
        FROM (SELECT * FROM sonar_condition WHERE ended_at IS NULL AND confirmed_at IS NOT NULL
                  AND type = ANY(%(types)s)) AS found
        FULL JOIN (SELECT * FROM sonar_incident WHERE closed_at IS NULL) AS own
             ON own.cause_id = found.id
        WHERE own.clear_since IS NOT NULL
           OR ({", ".join(f"own.{name}" for name in OF_CONDITION)}) IS DISTINCT FROM
              ({", ".join(f"found.{name}" for name in OF_CONDITION.values())}))
"""  # noqa: S608 - constants


def lock() -> None:
    """Wait until nobody else writes incidents, until the end of the transaction."""
    lock_until_commit(LOCK, 0)


def follow(now: datetime) -> list[IncidentEvent]:
    """Let incidents follow the conditions as they were just assessed; return what happened.

    One SQL query where each is as its condition.
    """
    if not planned_rows(DOES_ANY_DIFFER, {"types": [*RANK]})[0][0]:
        return []
    with transaction.atomic():
        lock()
        return Following(now).run()


class Following:
    """Confirmed conditions that are open now, and the incidents that are open.

    While there is a condition of the grid, results are doubtful: then only that one opens an
    incident, and others stay as they are.
    """

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.events: list[IncidentEvent] = []
        self.untold = set[int]()
        rows = Condition.objects.filter(ended_at=None, confirmed_at__isnull=False, type__in=RANK)
        # A condition whose rate was accepted as the baseline opens no other incident.
        accepted = Incident.objects.filter(
            closed_at__isnull=False, cause=OuterRef("pk"), events__type=Type.ACCEPTED
        )
        every = list(rows.filter(~Exists(accepted)).order_by("since", "id"))
        of_grid = [each for each in every if each.scope == Condition.Scope.GRID]
        self.doubtful_since = min((each.since for each in of_grid), default=None)
        self.conditions = sorted(of_grid or every, key=lambda each: -subject_of(each).size)
        self.open_ids = {each.pk for each in every}
        incidents = Incident.objects.filter(closed_at=None).select_related("cause")
        self.left = {each.pk: each for each in incidents.order_by("opened_at", "id")}
        self.last_figures = {
            event.incident_id: event.values
            for event in IncidentEvent.objects.filter(incident__in=[*self.left], type__in=SEEN)
            .order_by("incident_id", "-id")
            .distinct("incident_id")
        }

    @cached_property
    def site_of(self) -> Mapping[int, int]:
        return dict(Endpoint.objects.values_list("id", "site_id"))

    def run(self) -> list[IncidentEvent]:
        for each in self.left.values():
            # Late results took back its confirmation.
            if each.cause and each.cause.confirmed_at is None:
                self.take(each, None, cause=None)
        following = {row.cause_id: row for row in self.left.values() if row.cause_id}
        # Those that nobody follows any more may go on as another one.
        free = {
            pk: row
            for pk, row in self.left.items()
            if row.cause_id not in self.open_ids
            and (self.doubtful_since is None or row.scope == Incident.Scope.GRID)
        }
        new = [each for each in self.conditions if each.pk not in following]
        followed = [each for each in self.conditions if each.pk in following]
        going_on = [self.change(following[each.pk], each) for each in followed]
        for is_its in (self.is_same, self.is_of_same, self.is_akin):
            for condition in [*new]:
                row = next((row for row in free.values() if is_its(row, condition)), None)
                if row is not None:
                    del free[row.pk]
                    new.remove(condition)
                    going_on.append(self.change(row, condition))
        going_on += [self.begin(condition) for condition in new]
        for row in going_on:
            self.left.pop(row.pk, None)
        for row in self.left.values():
            self.go_without(row, going_on)
        IncidentEvent.objects.bulk_create(self.events)
        outbox.announce([each for each in self.events if each.incident_id not in self.untold])
        return self.events

    def is_same(self, row: Incident, condition: Condition) -> bool:
        return row.type == condition.type and Subject.of(row) == subject_of(condition)

    def is_of_same(self, row: Incident, condition: Condition) -> bool:
        return Subject.of(row) == subject_of(condition)

    def is_akin(self, row: Incident, condition: Condition) -> bool:
        """Say whether a condition is that of an incident seen more widely, or more narrowly.

        A link that turns out to be a part of something becomes a part of that. The whole grid is
        Sonar itself: no part of it was that.
        """
        scopes = {row.scope, condition.scope}
        if Incident.Scope.GRID in scopes or row.scope == Incident.Scope.LINK:
            return False
        end = row.cause.ended_at if row.cause else row.clear_since
        if end is not None and end < condition.since:
            return False
        own, other = Subject.of(row), subject_of(condition)
        return other.covers(own, self.site_of) or own.covers(other, self.site_of)

    def begin(self, condition: Condition) -> Incident:
        """Open an incident, or go on with one of the same subject that is just over.

        Of one that was confirmed long ago, by results that came late, nobody is notified.
        """
        subject = subject_of(condition)
        before = Incident.objects.filter(**subject._asdict(), closed_at__gt=self.now - COMES_BACK)
        for row in before.select_related("merged_into").order_by("-closed_at", "-id"):
            if row.merged_into is None or row.merged_into.scope == Incident.Scope.GRID:
                self.take(row, condition, closed_at=None, clear_since=None, merged_into=None)
                self.tell(row, Type.REOPENED)
                return row
        row = Incident(opened_at=self.now, cause=condition, **figures_of(condition))
        row.save()
        self.tell(row, Type.OPENED)
        if condition.confirmed_at and condition.confirmed_at < self.now - COMES_BACK:
            self.untold.add(row.pk)
        return row

    def change(self, row: Incident, condition: Condition) -> Incident:
        """Take over the figures of a condition, and say so if they differ by much."""
        last = self.last_figures.get(row.pk) or {name: getattr(row, name) for name in FIGURES}
        was, is_back = row.scope, row.clear_since is not None
        self.take(row, condition, clear_since=None)
        worse = RANK[row.type] - RANK[last["type"]]
        more = max(row.links, 1) / max(last["links"], 1)
        slower = (last["factor"] or 1) / (row.factor or 1)
        if was != row.scope:
            self.tell(row, Type.CAUSE, was=was)
            if worse > 0:
                self.tell(row, Type.WORSE)
        elif worse:
            self.tell(row, Type.WORSE if worse > 0 else Type.BETTER)
        elif is_back:
            self.tell(row, Type.REOPENED)
        elif max(more, 1 / more, slower, 1 / slower) >= GROWS:
            is_links = max(more, 1 / more) >= GROWS
            self.tell(row, Type.GREW if (more if is_links else slower) > 1 else Type.SHRANK)
        return row

    def go_without(self, row: Incident, going_on: Sequence[Incident]) -> None:
        """See to an open incident whose condition has ended, or is not found any more.

        It becomes a part of a larger one that explains it, or closes some time later. While results
        are doubtful, one that began before stays as it is, unless its condition was a mistake.
        """
        cause, since = row.cause, self.doubtful_since
        is_doubtful = since is not None and row.scope != Incident.Scope.GRID
        if since and is_doubtful and cause and row.began_at < since:
            self.take(row, cause if cause.pk in self.open_ids else None)
            return
        for whole in going_on:
            if whole.scope == Incident.Scope.GRID:
                explains = is_doubtful
            else:
                covers = Subject.of(whole).covers(Subject.of(row), self.site_of)
                explains = cause is None and covers and RANK[whole.type] >= RANK[row.type]
            if explains:
                self.take(row, None, closed_at=self.now, merged_into=whole)
                self.tell(row, Type.MERGED, into=whole.pk)
                return
        if row.clear_since is None:
            self.take(row, cause, clear_since=cause.ended_at if cause else self.now)
        if row.clear_since and self.now - row.clear_since >= CALM:
            self.take(row, None, closed_at=self.now)
            self.tell(row, Type.CLOSED)

    def take(self, row: Incident, condition: Condition | None, **values: object) -> None:
        """Set what differs; each statement makes all answers new."""
        if condition is not None:
            values |= figures_of(condition) | {"cause": condition}
        differing = {name: each for name, each in values.items() if getattr(row, name) != each}
        for name, each in differing.items():
            setattr(row, name, each)
        if differing:
            row.save(update_fields=differing)

    def tell(self, row: Incident, type_: str, **more: object) -> None:
        self.events.append(event_of(row, type_, self.now, **more))


def subject_of(condition: Condition) -> Subject:
    names = ("scope", "source_id", "destination_id", "site_id")
    return Subject(*(getattr(condition, name) for name in names))


def figures_of(condition: Condition) -> dict[str, Any]:
    return {own: getattr(condition, name) for own, name in OF_CONDITION.items()}


def event_of(incident: Incident, type_: str, at: datetime, **more: object) -> IncidentEvent:
    """Return an event with what is so of an incident now; it is not stored yet."""
    values = {name: getattr(incident, name) for name in FIGURES}
    return IncidentEvent(incident=incident, type=type_, at=at, values=values | more)
