"""Incidents, subscriptions and a channel for tests of what is told: all that it sends is kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import uuid5

from django.contrib.auth.models import User
from django.db import transaction

from sonar.alerting import outbox, sending, subscriptions
from sonar.alerting.channels.base import ChannelError, Message, Occurrence, Target
from sonar.alerting.incidents import event_of
from sonar.models import Endpoint, Incident, IncidentEvent, Notification, Subscription

NOW = datetime(2026, 11, 20, 4, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
URL, KEY = "https://hooks.example.org/secret-path", "a-key-that-is-long-enough"


def subscription(name: str = "shift", **values: object) -> Subscription:
    """A list that is told of everything by a webhook, or as it is described."""
    values = {"channel": "webhook", "confirmed_at": NOW} | values
    row = Subscription(name=name, **values)
    if row.channel != "email":
        subscriptions.seal(row, {"url": URL, "key": KEY})
    row.save()
    return row


def of_person(name: str, **values: object) -> Subscription:
    owner, _ = User.objects.get_or_create(username=name, defaults={"email": f"{name}@example.org"})
    values = {"owner": owner, "channel": "email", "address": owner.email} | values
    return subscription(values.pop("title", name), **values)


def incident(end: Endpoint, at: datetime = NOW, **values: object) -> Incident:
    """An incident of an endpoint as a destination that opened, and was announced."""
    row = Incident.objects.create(**(described(end, at) | values))
    happens(row, "opened", at)
    return row


def described(end: Endpoint, at: datetime) -> dict[str, object]:
    return {
        "scope": "destination", "destination": end, "type": "slow", "began_at": at - HOUR,
        "opened_at": at, "links": 3, "of_links": 4, "sizes": ["large"], "factor": 0.45,
        "low": 0.4, "high": 0.51,
    }  # fmt: skip


def happens(row: Incident, type_: str, at: datetime, **changes: object) -> IncidentEvent:
    """Let something happen to an incident, as the door does."""
    if type_ == "closed":
        changes |= {"closed_at": at}
    if type_ == "reopened":
        changes |= {"closed_at": None}
    for name, value in changes.items():
        setattr(row, name, value)
    event = event_of(row, type_, at)
    with transaction.atomic():
        row.save()
        event.save()
        outbox.announce([event])
    return event


@dataclass
class Post:
    """A channel that keeps what it sends by the name of the subscription; ``dead`` ones refuse."""

    sent: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)

    def send(self, message: Message, target: Target) -> str:
        if target.name in self.dead:
            raise ChannelError(f"{target.name} answers 500.")
        types = tuple(event.type for event in message.events)
        self.sent.append((target.name, message.subject, types))
        return "200 OK"

    def taken(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Return what was sent since this was asked last."""
        taken, self.sent = self.sent, []
        return taken


class Plain:
    """Words that are no more than ids and types."""

    def message(self, row: Subscription, told: Sequence[Notification], now: datetime) -> Message:
        events = IncidentEvent.objects.filter(pk__in=[pk for each in told for pk in each.events])
        said = [Occurrence(event.pk, event.type, event.at, event.incident_id) for event in events]
        missed = sum(each.missed for each in told)
        number = f"{[event.id for event in said]}{missed}{[each.pk for each in told]}"
        subject = f"{missed} missed" if missed else f"{len(told)} incidents"
        return Message(str(uuid5(row.key, number)), now, "incident", subject, "", events=said)

    def matters(self, *_: object) -> list[object]:
        return []


def send_at(now: datetime) -> None:
    """Send all that is due at this time, one after the other."""
    while sending.send_next(Plain(), lambda: now):
        pass
