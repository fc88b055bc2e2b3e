"""What somebody decides about an incident, as the page and the call are sent it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

from sonar.alerting import decisions, subjects
from sonar.alerting.decisions import DecisionError
from sonar.models import Incident, IncidentEvent

# Each by what it is called, with the kind of its event.
KINDS = {
    "acknowledge": IncidentEvent.Kind.ACKNOWLEDGED,
    "assign": IncidentEvent.Kind.ASSIGNED,
    "mute": IncidentEvent.Kind.MUTED,
    "unmute": IncidentEvent.Kind.UNMUTED,
    "note": IncidentEvent.Kind.NOTE,
    "accept": IncidentEvent.Kind.NEW_NORMAL,
}

# Those that need nothing but what somebody says.
OTHERS = {
    "acknowledge": decisions.acknowledge,
    "unmute": decisions.unmute,
    "note": decisions.note,
    "accept": decisions.accept,
}


@dataclass(frozen=True)
class DecisionRequest:
    """A decision of KINDS; ``assignee`` is the name of an account, empty for nobody."""

    name: str
    text: str = ""
    assignee: str = ""
    until: datetime | None = None


def decide(incident: Incident, user: User, now: datetime, choice: DecisionRequest) -> IncidentEvent:
    """Decide it; raise DecisionError with the name of the field of what cannot be."""
    said = {"text": choice.text}
    if choice.name == "assign":
        return decisions.assign(incident, user, now, account(choice.assignee), **said)
    if choice.name == "mute":
        if choice.until is None:
            raise DecisionError("until", "Say until when, like 2026-11-20T04:00:00Z.")
        return decisions.mute(incident, user, now, choice.until, **said)
    return OTHERS[choice.name](incident, user, now, **said)


def account(name: str) -> User | None:
    """Return the account that something is to be given to; None for no name."""
    if not name:
        return None
    active = User.objects.filter(is_active=True)
    # PostgreSQL takes no zero byte.
    person = active.filter(username=name).first() if "\0" not in name else None
    if person is None:
        raise DecisionError("assignee", f"No active account is called “{name}”.")
    return person


def sites_of(id: int) -> Iterable[int]:  # noqa: A002 - of the route
    """Return the ids of the sites of an incident, none for one that is not there."""
    incident = Incident.objects.filter(pk=id).first()
    return subjects.sites_of(incident) if incident else ()
