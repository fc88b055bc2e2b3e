"""Decisions about incidents: each one is stored as an event with the name of its author."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial, wraps

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from sonar.alerting import outbox
from sonar.alerting.incidents import event_of, lock
from sonar.alerting.subjects import Whose, sites_of
from sonar.models import ConditionLink, HeldLevel, Incident, IncidentEvent
from sonar.people import roles
from sonar.people.roles import Anyone

Type = IncidentEvent.Type
RIGHT = "sonar.change_incident"
# The kind of event that each decision adds.
EVENT_TYPES = {
    "acknowledge": Type.ACKNOWLEDGED,
    "assign": Type.ASSIGNED,
    "mute": Type.MUTED,
    "unmute": Type.UNMUTED,
    "note": Type.NOTE,
    "accept": Type.ACCEPTED,
}
LONGEST_TEXT = 1000
LONGEST_NOTE = 500
# Longer mutes would be forgotten.
LONGEST_MUTE = timedelta(days=90)
# An accepted rate is the baseline until the weeks that the baseline is computed from have it.
HELD_ON = timedelta(days=28)
NOT_ACTIVE = "assignee “{}” is not an active account. Give the name of an active account."
NO_REASON = "“{}” is empty. Give the reason why the current rate is the new baseline."
WHOSE = ("source_id", "destination_id", "size_class_id")


class DecisionError(ValueError):
    """A decision is refused: ``parameter`` names the wrong field, the sentence gives the reason."""

    def __init__(self, parameter: str, sentence: str) -> None:
        self.parameter = parameter
        super().__init__(sentence)


Decision = Callable[..., IncidentEvent]


def decision(decide: Decision, *, of_closed: bool = False) -> Decision:
    """Run a decision about an open incident in a transaction, under the lock of incidents.

    With ``of_closed`` the incident may be closed.
    """

    @wraps(decide)
    @transaction.atomic
    def under_lock(incident: Incident, *args: object, **kwargs: object) -> IncidentEvent:
        lock()
        incident.refresh_from_db()
        if not incident.is_open and not of_closed:
            sentence = f"Incident {incident.pk} is closed. Closed incidents accept only notes."
            raise DecisionError("incident", sentence)
        event = decide(incident, *args, **kwargs)
        incident.save()
        event.save()
        outbox.announce([event])
        return event

    return under_lock


@decision
def acknowledge(incident: Incident, user: User, now: datetime, text: str = "") -> IncidentEvent:
    """Acknowledge an incident; the first acknowledgement is kept."""
    if incident.acknowledged_at is None:
        incident.acknowledged_at, incident.acknowledged_by = now, user
    return by_person(incident, Type.ACKNOWLEDGED, user, now, text)


@decision
def assign(
    incident: Incident, user: User, now: datetime, to: User | None, text: str = ""
) -> IncidentEvent:
    """Assign an incident to a user; None unassigns it."""
    if to is not None and not to.is_active:
        raise DecisionError("assignee", NOT_ACTIVE.format(to.username))
    incident.assignee = to
    name = to.username if to else ""
    return by_person(incident, Type.ASSIGNED, user, now, text, assignee=name)


@decision
def mute(
    incident: Incident, user: User, now: datetime, until: datetime, text: str = ""
) -> IncidentEvent:
    """Send no notifications until then, unless the incident gets worse."""
    if not now < until <= now + LONGEST_MUTE:
        sentence = f"“until” must be in the future and at most {LONGEST_MUTE.days} days ahead."
        raise DecisionError("until", sentence)
    incident.muted_until = until
    return by_person(incident, Type.MUTED, user, now, text, until=until.isoformat())


@decision
def unmute(incident: Incident, user: User, now: datetime, text: str = "") -> IncidentEvent:
    if incident.muted_until is None:
        raise DecisionError("incident", f"Incident {incident.pk} is not muted.")
    incident.muted_until = None
    return by_person(incident, Type.UNMUTED, user, now, text)


@partial(decision, of_closed=True)
def note(incident: Incident, user: User, now: datetime, text: str) -> IncidentEvent:
    """Add a note to an open or closed incident."""
    if not text.strip():
        raise DecisionError("text", "“text” is empty. A note must contain text.")
    return by_person(incident, Type.NOTE, user, now, text)


@decision
def accept(incident: Incident, user: User, now: datetime, text: str) -> IncidentEvent:
    """Accept the current rates of its links as their baselines, and close the incident."""
    if not text.strip():
        raise DecisionError("text", NO_REASON.format("text"))
    if incident.type != Incident.Type.SLOW:
        sentence = (
            f"Incident {incident.pk} is {incident.type}. Only the rates of an incident of the type "
            "“slow” can be accepted as baselines."
        )
        raise DecisionError("incident", sentence)
    links = ConditionLink.objects.filter(part__condition=incident.cause_id)
    rates = links.annotate(
        size_class_id=F("part__size_class"), rate=F("baseline") * F("part__factor")
    )
    members = incident.members.filter(until=None)
    accepted = {
        (source, destination, size_class): rate
        for rows in (rates, members)
        for source, destination, size_class, rate in rows.values_list(*WHOSE, "rate")
        if rate is not None
    }
    hold_accepted(accepted, user, now, text)
    members.update(until=now)
    incident.closed_at = now
    return by_person(incident, Type.ACCEPTED, user, now, text)


def may_accept(user: Anyone, sites: Iterable[int]) -> bool:
    return roles.may(user, RIGHT, sites)


@transaction.atomic
def accept_link(whose: Whose, rate: float, user: User, now: datetime, text: str) -> None:
    """Accept a rate (bytes/s) of one link as its baseline, without an incident.

    A trigger adds the decision to the history, with its author and reason.
    """
    if not text.strip():
        raise DecisionError("note", NO_REASON.format("note"))
    if len(text) > LONGEST_NOTE:
        sentence = f"“note” has {len(text)} characters. At most {LONGEST_NOTE} are allowed."
        raise DecisionError("note", sentence)
    lock()
    hold_accepted({whose: rate}, user, now, text)


def hold_accepted(accepted: Mapping[Whose, float], user: User, now: datetime, text: str) -> None:
    """Replace the held rates (bytes/s) of these links; the caller has the lock."""
    rows = HeldLevel.objects.values_list("pk", *WHOSE)
    before = [pk for pk, *whose in rows if tuple(whose) in accepted]
    HeldLevel.objects.filter(pk__in=before).delete()
    HeldLevel.objects.bulk_create(
        HeldLevel(
            **dict(zip(WHOSE, whose, strict=True)),
            rate=rate,
            since=now,
            until=now + HELD_ON,
            by=user,
            note=text.strip()[:LONGEST_NOTE],
        )
        for whose, rate in accepted.items()
    )


def by_person(
    incident: Incident, type_: str, user: User, now: datetime, text: str, **more: object
) -> IncidentEvent:
    if len(text) > LONGEST_TEXT:
        sentence = f"“text” has {len(text)} characters. At most {LONGEST_TEXT} are allowed."
        raise DecisionError("text", sentence)
    event = event_of(incident, type_, now, **more)
    event.by, event.text = user, text.strip()
    return event


# Decisions that need nothing but a text.
OTHERS = {"acknowledge": acknowledge, "unmute": unmute, "note": note, "accept": accept}


@dataclass(frozen=True)
class DecisionRequest:
    """A decision of EVENT_TYPES, as the page and the API receive it.

    ``assignee`` is the name of an account; empty unassigns the incident.
    """

    name: str
    text: str = ""
    assignee: str = ""
    until: datetime | None = None


def decide(incident: Incident, user: User, now: datetime, choice: DecisionRequest) -> IncidentEvent:
    """Take a decision; raise DecisionError with the name of the wrong field."""
    if choice.name == "mute":
        if choice.until is None:
            sentence = "“until” is missing. Give the end of the mute, such as 2026-11-20T04:00:00Z."
            raise DecisionError("until", sentence)
        return mute(incident, user, now, choice.until, choice.text)
    if choice.name != "assign":
        return OTHERS[choice.name](incident, user, now, text=choice.text)
    person, name = None, choice.assignee
    # PostgreSQL takes no zero byte.
    if name and "\0" not in name:
        person = User.objects.filter(username=name, is_active=True).first()
    if name and person is None:
        raise DecisionError("assignee", NOT_ACTIVE.format(name))
    return assign(incident, user, now, person, choice.text)


def sites_of_incident(id: int) -> Iterable[int]:  # noqa: A002 - of the route
    """Return the ids of the sites of an incident; none if the incident does not exist."""
    incident = Incident.objects.filter(pk=id).first()
    return sites_of(incident) if incident else ()
