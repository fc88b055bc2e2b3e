"""The door for what people decide about an incident: each decision is an event with their name."""

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

Kind = IncidentEvent.Kind
RIGHT = "sonar.change_incident"
# Each decision by what it is called, with the kind of its event.
KINDS = {
    "acknowledge": Kind.ACKNOWLEDGED,
    "assign": Kind.ASSIGNED,
    "mute": Kind.MUTED,
    "unmute": Kind.UNMUTED,
    "note": Kind.NOTE,
    "accept": Kind.NEW_NORMAL,
}
LONGEST_TEXT = 1000
LONGEST_NOTE = 500
# Nobody comes back to what is muted for longer.
LONGEST_MUTE = timedelta(days=90)
# A rate that was accepted is held until the weeks that say what is usual are all of the new level.
HELD_ON = timedelta(days=28)
WHOSE = ("source_id", "destination_id", "size_class_id")


class DecisionError(ValueError):
    """What cannot be decided so: ``parameter`` is what is wrong, the sentence says why."""

    def __init__(self, parameter: str, sentence: str) -> None:
        self.parameter = parameter
        super().__init__(sentence)


Decision = Callable[..., IncidentEvent]


def decision(decide: Decision, *, of_closed: bool = False) -> Decision:
    """Run a decision about an open incident in a transaction, under the lock of the door.

    Or about any, if it is one ``of_closed`` ones, too.
    """

    @wraps(decide)
    @transaction.atomic
    def under_lock(incident: Incident, *args: object, **kwargs: object) -> IncidentEvent:
        lock()
        incident.refresh_from_db()
        if not incident.is_open and not of_closed:
            raise DecisionError("incident", "This incident is closed already.")
        event = decide(incident, *args, **kwargs)
        incident.save()
        event.save()
        outbox.announce([event])
        return event

    return under_lock


@decision
def acknowledge(incident: Incident, user: User, now: datetime, text: str = "") -> IncidentEvent:
    """Say that somebody has seen it; the first to do so stays the one."""
    if incident.acknowledged_at is None:
        incident.acknowledged_at, incident.acknowledged_by = now, user
    return by_person(incident, Kind.ACKNOWLEDGED, user, now, text)


@decision
def assign(
    incident: Incident, user: User, now: datetime, to: User | None, text: str = ""
) -> IncidentEvent:
    """Say who works on it; None for nobody."""
    if to is not None and not to.is_active:
        raise DecisionError("assignee", f"The account {to.username} is not active.")
    incident.assignee = to
    name = to.username if to else ""
    return by_person(incident, Kind.ASSIGNED, user, now, text, assignee=name)


@decision
def mute(
    incident: Incident, user: User, now: datetime, until: datetime, text: str = ""
) -> IncidentEvent:
    """Call nobody for it until then, but for a worse state."""
    if not now < until <= now + LONGEST_MUTE:
        sentence = f"until must be in the future, and at most {LONGEST_MUTE.days} days ahead."
        raise DecisionError("until", sentence)
    incident.muted_until = until
    return by_person(incident, Kind.MUTED, user, now, text, until=until.isoformat())


@decision
def unmute(incident: Incident, user: User, now: datetime, text: str = "") -> IncidentEvent:
    if incident.muted_until is None:
        raise DecisionError("incident", "This incident is not muted.")
    incident.muted_until = None
    return by_person(incident, Kind.UNMUTED, user, now, text)


@partial(decision, of_closed=True)
def note(incident: Incident, user: User, now: datetime, text: str) -> IncidentEvent:
    """Say something about it, be it closed or not."""
    if not text.strip():
        raise DecisionError("text", "A note has a text.")
    return by_person(incident, Kind.NOTE, user, now, text)


@decision
def accept(incident: Incident, user: User, now: datetime, text: str) -> IncidentEvent:
    """Take the rates of its links for what is usual from now on, and close it."""
    if not text.strip():
        raise DecisionError("text", "Say why this is the new normal.")
    if incident.condition != Incident.Condition.SLOW:
        raise DecisionError("incident", "Only a rate can be the new normal, not tests that fail.")
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
    return by_person(incident, Kind.NEW_NORMAL, user, now, text)


def may_accept(user: Anyone, sites: Iterable[int]) -> bool:
    return roles.may(user, RIGHT, sites)


@transaction.atomic
def accept_link(whose: Whose, rate: float, user: User, now: datetime, text: str) -> None:
    """Take a rate (bytes/s) of one link for what is usual from now on, without an incident.

    It stands in the history as a new normal (migration 0046), with who said so and why.
    """
    if not text.strip():
        raise DecisionError("note", "Say why this is the new normal.")
    if len(text) > LONGEST_NOTE:
        sentence = f"note has at most {LONGEST_NOTE} characters, not {len(text)}."
        raise DecisionError("note", sentence)
    lock()
    hold_accepted({whose: rate}, user, now, text)


def hold_accepted(accepted: Mapping[Whose, float], user: User, now: datetime, text: str) -> None:
    """Hold rates (bytes/s) in the place of whatever is held of these links; under the lock."""
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
    incident: Incident, kind: str, user: User, now: datetime, text: str, **more: object
) -> IncidentEvent:
    if len(text) > LONGEST_TEXT:
        sentence = f"text has at most {LONGEST_TEXT} characters, not {len(text)}."
        raise DecisionError("text", sentence)
    event = event_of(incident, kind, now, **more)
    event.by, event.text = user, text.strip()
    return event


# Those that need nothing but what somebody says.
OTHERS = {"acknowledge": acknowledge, "unmute": unmute, "note": note, "accept": accept}


@dataclass(frozen=True)
class DecisionRequest:
    """A decision of KINDS, as the page and the call are sent it.

    ``assignee`` is the name of an account, empty for nobody.
    """

    name: str
    text: str = ""
    assignee: str = ""
    until: datetime | None = None


def decide(incident: Incident, user: User, now: datetime, choice: DecisionRequest) -> IncidentEvent:
    """Decide it; raise DecisionError with the name of the field of what cannot be."""
    if choice.name == "mute":
        if choice.until is None:
            raise DecisionError("until", "Say until when, like 2026-11-20T04:00:00Z.")
        return mute(incident, user, now, choice.until, choice.text)
    if choice.name != "assign":
        return OTHERS[choice.name](incident, user, now, text=choice.text)
    person, name = None, choice.assignee
    # PostgreSQL takes no zero byte.
    if name and "\0" not in name:
        person = User.objects.filter(username=name, is_active=True).first()
    if name and person is None:
        raise DecisionError("assignee", f"No active account is called “{name}”.")
    return assign(incident, user, now, person, choice.text)


def sites_of_incident(id: int) -> Iterable[int]:  # noqa: A002 - of the route
    """Return the ids of the sites of an incident, none for one that is not there."""
    incident = Incident.objects.filter(pk=id).first()
    return sites_of(incident) if incident else ()
