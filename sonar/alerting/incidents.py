"""The door for what an evaluation found: incidents open, change, merge and close here alone.

All of an evaluation is one transaction under one lock, with whatever calls follow from it: ids of
events are in the order of their commits, so that readers of the stream miss none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from sonar.alerting import outbox
from sonar.alerting.evaluation import (
    RANK,
    WHOSE,
    Evaluation,
    FoundCause,
    FoundLink,
    Whose,
    columns_of,
)
from sonar.alerting.subjects import Subject
from sonar.models import EvaluationRun, HeldLevel, Incident, IncidentEvent, IncidentLink

Kind = IncidentEvent.Kind
# Beside the names of other locks (advisory).
LOCK = 0x696E6364
# One that is well again for so long is closed; one that comes back within so long goes on.
CALM = timedelta(hours=1)
COMES_BACK = timedelta(days=1)
# A link may not be tested for so long.
STRAGGLING = timedelta(days=7)
# By how much the number of links changes for an event.
GROWS = 1.5
# After a longer incident a level is held on: until the weeks before have none of it.
LONG = timedelta(days=1)
HELD_ON = timedelta(days=28)


def lock() -> None:
    """Wait until nobody else writes incidents, until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, 0)", [LOCK])


def still_open() -> list[Incident]:
    return list(Incident.objects.filter(closed_at=None).order_by("opened_at", "id"))


@transaction.atomic
def record(evaluation: Evaluation, run: EvaluationRun | None = None) -> list[IncidentEvent]:
    """Store what an evaluation found, and that it ran; return what happened."""
    lock()
    if run is not None:
        run.pk = 1
        run.save()
    return Recording(evaluation).run()


class Recording:
    """One evaluation, beside the incidents that are open."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.now = evaluation.at
        self.left = {Subject.of(incident): incident for incident in still_open()}
        self.events: list[IncidentEvent] = []

    def run(self) -> list[IncidentEvent]:
        causes = sorted(self.evaluation.causes, key=lambda cause: -cause.subject.size)
        same = {cause.subject: self.left.pop(cause.subject, None) for cause in causes}
        going_on: list[Incident] = []
        for cause in causes:
            incident = same[cause.subject]
            if incident is None and not self.absorbs(cause, going_on):
                incident = self.begin(cause)
            elif incident is not None:
                self.change(incident, cause)
            if incident is not None:
                going_on.append(incident)
                self.merge_into(incident, cause)
        for incident in self.left.values():
            self.go_on(incident)
        IncidentEvent.objects.bulk_create(self.events)
        outbox.announce(self.events)
        return self.events

    def absorbs(self, cause: FoundCause, going_on: Iterable[Incident]) -> bool:
        """Say whether an incident covers a cause and is as bad: one that goes on, or is just over.

        One that is over explains links that have not been tested since, and so still look bad.
        """
        lasting = [row for row in self.left.values() if row.clear_since is None]
        if any(self.explains(row, cause) for row in (*going_on, *lasting)):
            return True
        if cause.subject.level != Incident.Level.LINK:
            return False
        closed = Incident.objects.filter(closed_at__gt=self.now - STRAGGLING, merged_into=None)
        over = [row for row in self.left.values() if row.clear_since is not None]
        return any(
            self.explains(row, cause) and row.clear_since and cause.began_at <= row.clear_since
            for row in (*over, *closed)
        )

    def explains(self, incident: Incident, cause: FoundCause) -> bool:
        covers = Subject.of(incident).covers(cause.subject, self.evaluation.site_of)
        return covers and RANK[incident.condition] >= RANK[cause.condition]

    def begin(self, cause: FoundCause) -> Incident:
        """Open an incident, or go on with one that was of a part of the cause or is just over.

        The whole grid is Sonar itself: no part of it was that.
        """
        parts = [part for part in self.parts_of(cause) if part.level != Incident.Level.LINK]
        if parts and cause.subject.level != Incident.Level.GRID:
            return self.widen(min(parts, key=lambda part: part.opened_at), cause)
        before = (
            Incident.objects.filter(
                **cause.subject.columns,
                merged_into=None,
                closed_at__gt=self.now - COMES_BACK,
            )
            .order_by("-closed_at", "-id")
            .first()
        )
        if before is not None:
            return self.come_back(before, cause)
        incident = Incident.objects.create(
            **cause.subject.columns,
            **cause.figures,
            began_at=cause.began_at,
            opened_at=self.now,
        )
        self.keep_links(incident, cause.members)
        self.tell(incident, Kind.OPENED)
        return incident

    def widen(self, incident: Incident, cause: FoundCause) -> Incident:
        del self.left[Subject.of(incident)]
        before = incident.level
        self.take(incident, {**cause.subject.columns, **cause.figures, "clear_since": None})
        self.keep_links(incident, cause.members)
        self.tell(incident, Kind.CAUSE, was=before)
        return incident

    def come_back(self, incident: Incident, cause: FoundCause) -> Incident:
        self.take(incident, {**cause.figures, "closed_at": None, "clear_since": None})
        self.keep_links(incident, cause.members)
        self.tell(incident, Kind.REOPENED)
        return incident

    def change(self, incident: Incident, cause: FoundCause) -> None:
        """Take over what is new of an incident, if it matters."""
        worse = RANK[cause.condition] - RANK[incident.condition]
        more = cause.links / max(incident.links, 1)
        kind = None
        if worse:
            kind = Kind.WORSE if worse > 0 else Kind.BETTER
        elif not 1 / GROWS < more < GROWS:
            kind = Kind.GREW if more > 1 else Kind.SHRANK
        if kind is not None:
            self.take(incident, {**cause.figures, "clear_since": None})
            self.tell(incident, kind)
        elif incident.clear_since is not None:
            self.take(incident, {"clear_since": None})
        self.keep_links(incident, cause.members)

    def merge_into(self, incident: Incident, cause: FoundCause) -> None:
        """End the incidents of what is a part of the cause: it explains them."""
        for part in self.parts_of(cause):
            del self.left[Subject.of(part)]
            self.take(part, {"closed_at": self.now, "merged_into": incident})
            part.members.filter(until=None).update(until=self.now)
            self.tell(part, Kind.MERGED, into=incident.pk)

    def parts_of(self, cause: FoundCause) -> list[Incident]:
        """Return the open incidents that a cause explains."""
        return [
            incident
            for subject, incident in self.left.items()
            if cause.subject.covers(subject, self.evaluation.site_of)
            and (cause.subject.level != Incident.Level.GRID or began_with(cause, incident))
        ]

    def go_on(self, incident: Incident) -> None:
        """See to one that was not found again: it goes on while its links are not well."""
        rest = self.evaluation.standing.get(incident.pk)
        if rest is not None:
            self.change(incident, rest)
        elif incident.clear_since is None:
            self.take(incident, {"clear_since": self.now})
        elif self.now - incident.clear_since >= CALM:
            self.take(incident, {"closed_at": self.now})
            incident.members.filter(until=None).update(until=incident.clear_since)
            self.tell(incident, Kind.CLOSED)

    def keep_links(self, incident: Incident, links: Iterable[FoundLink]) -> None:
        """Let the open rows of an incident be these links."""
        members = {link.whose: link for link in links}
        rows = by_link(incident.members.filter(until=None).values_list(*WHOSE, "pk", "condition"))
        same = {
            whose
            for whose, (_, condition) in rows.items()
            if whose in members and members[whose].condition == condition
        }
        if gone := [pk for whose, (pk, _) in rows.items() if whose not in same]:
            IncidentLink.objects.filter(pk__in=gone).update(until=self.now)
        IncidentLink.objects.bulk_create(
            IncidentLink(
                incident=incident,
                **columns_of(whose),
                condition=link.condition,
                since=link.since,
                expected=link.expected,
                rate=link.rate,
            )
            for whose, link in members.items()
            if whose not in same
        )

    def take(self, incident: Incident, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            setattr(incident, name, value)
        incident.save(update_fields=list(values))

    def tell(self, incident: Incident, kind: str, **more: object) -> None:
        self.events.append(event_of(incident, kind, self.now, **more))


def began_with(cause: FoundCause, incident: Incident) -> bool:
    """Say whether an incident is the first sign of a grid that is bad as a whole.

    Of silence it is not known when it began.
    """
    silent = Incident.Condition.SILENT
    are_silent = cause.condition == incident.condition == silent
    return incident.began_at >= cause.began_at or (
        are_silent and incident.opened_at >= cause.began_at
    )


def event_of(incident: Incident, kind: str, at: datetime, **more: object) -> IncidentEvent:
    """Return an event with what is so of an incident now; it is not stored yet."""
    figures = ("level", "condition", "factor", "links", "of_links")
    values = {name: getattr(incident, name) for name in figures}
    return IncidentEvent(incident=incident, kind=kind, at=at, values=values | more)


def whose_of(row: IncidentLink | HeldLevel) -> Whose:
    return row.source_id, row.destination_id, row.size_class_id


@transaction.atomic
def hold(levels: Mapping[Whose, float], now: datetime) -> None:
    """Hold the usual rates (bytes/s) of the links of open incidents, and let go of the others.

    What is held already stays as it is.
    """
    lock()
    # Each statement raises the version of all pages, even one that changes no row.
    past = HeldLevel.objects.filter(until__lte=now)
    if past.exists():
        past.delete()
    columns = ("pk", "since", "until", "by_id")
    rows = by_link(HeldLevel.objects.values_list(*WHOSE, *columns))
    HeldLevel.objects.bulk_create(
        HeldLevel(**columns_of(whose), rate=rate, since=now)
        for whose, rate in levels.items()
        if whose not in rows
    )
    long, short, again = list[int](), list[int](), list[int]()
    for whose, (pk, since, until, by) in rows.items():
        if until is None and whose not in levels:
            (long if now - since > LONG else short).append(pk)
        elif until is not None and by is None and whose in levels:
            again.append(pk)
    for keys, values in ((long, {"until": now + HELD_ON}), (again, {"until": None})):
        if keys:
            HeldLevel.objects.filter(pk__in=keys).update(**values)
    if short:
        HeldLevel.objects.filter(pk__in=short).delete()


def by_link(rows: Iterable[tuple[Any, ...]]) -> dict[Whose, tuple[Any, ...]]:
    """Return the rest of rows by the columns that name their link, which come first."""
    return {row[:3]: row[3:] for row in rows}
