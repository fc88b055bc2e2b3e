"""The outbox: queues notifications of incident events in the same transaction as the events.

Sonar notifies when an incident opens, gets worse, reopens, closes, or widens to a whole site or the
grid. A person gets at most three messages for one incident, and none for one that closes and
reopens within a day. One message has all events that were not sent yet.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import cast

from django.db.models import Exists, F, OuterRef, QuerySet

from sonar.alerting import subscriptions
from sonar.alerting.channels.catalogue import BOARDS
from sonar.alerting.subjects import sites_of
from sonar.alerting.subscriptions import Subscribed
from sonar.models import Incident, IncidentEvent, LastSent, Notification, Subscription
from sonar.models.notifications import DAY

Type, Scope, State = IncidentEvent.Type, Incident.Scope, Notification.State
ENDS = frozenset({Type.CLOSED, Type.ACCEPTED})
# They close and reopen an incident: a pair of them that was not sent cancels out.
SWITCHES = ENDS | {Type.REOPENED}
NOTIFYING = SWITCHES | {Type.OPENED, Type.WORSE}
LARGE = frozenset({Scope.SITE, Scope.GRID})
# Messages to one person for one incident, within this time.
MOST_MESSAGES = 3
REMEMBERED = timedelta(days=28)
# At most this many incidents wait for a subscription; of others only the number is kept.
MOST_WAITING = 200


def notifies(event: IncidentEvent) -> bool:
    """Return whether an event is sent; a muted incident sends only that it gets worse."""
    if event.type == Type.WORSE:
        return True
    if event.incident.is_muted(event.at):
        return False
    return event.type in NOTIFYING or (event.type == Type.CAUSE and event.incident.scope in LARGE)


def announce(events: Sequence[IncidentEvent]) -> None:
    """Queue notifications of stored events for each subscription."""
    merged = [event.incident_id for event in events if event.type == Type.MERGED]
    if merged:  # the incidents that explain them are sent
        waiting = Notification.objects.filter(incident__in=merged, state=State.WAITING)
        waiting.filter(urgent=False).delete()
    to_send = [event for event in events if notifies(event)]
    if not to_send:
        return
    rows = Subscription.objects.filter(subscriptions.ACTIVE, report="").exclude(channel__in=BOARDS)
    everybody = [
        Subscribed(row, subscriptions.sites_of(row))
        for row in rows.select_related("owner").prefetch_related("sites").order_by("id")
    ]
    for event in to_send if everybody else []:
        announce_to(everybody, event)


def read_unsent(row: Subscription, now: datetime) -> list[IncidentEvent]:
    """Return the opening of each open incident that a subscription matches and did not send.

    Muted incidents are left out, and those that another subscription sent to the same person. Two
    SQL queries, and those of the sites of the subscription.
    """
    if row.report or row.channel in BOARDS or not row.enabled or row.confirmed_at is None:
        return []
    earlier = notes_of_person(row).filter(incident=OuterRef("incident"))
    opened = IncidentEvent.objects.filter(type=Type.OPENED, incident__closed_at=None)
    opened = opened.filter(~Exists(earlier)).order_by("id")
    to = Subscribed(row, subscriptions.sites_of(row))
    return [
        event
        for event in opened.select_related("incident__source", "incident__destination")
        if not event.incident.is_muted(now)
        and to.concerns(event.incident, sites_of(event.incident))
    ]


def send_now(row: Subscription, opened: Sequence[IncidentEvent], now: datetime) -> None:
    """Queue incidents for a subscription, several in one message.

    ``opened`` is from `read_unsent` in the same transaction, which has the lock of incidents.
    """
    Notification.objects.bulk_create(
        Notification(
            subscription=row,
            incident=event.incident,
            events=[event.pk],
            event_types=[event.type],
            together=len(opened) > 1,
            created_at=now,
            due_at=now,
        )
        for event in opened[:MOST_WAITING]
    )


def announce_to(everybody: Iterable[Subscribed], event: IncidentEvent) -> None:
    """Queue an event once for each person with a matching subscription."""
    incident = event.incident
    sites = sites_of(incident)
    matching = [subscribed for subscribed in everybody if subscribed.concerns(incident, sites)]
    rows = list(incident.notifications.select_for_update().filter(
        created_at__gt=event.at - REMEMBERED).order_by("id"))  # fmt: skip
    owner_of = {subscribed.row.pk: subscribed.row.owner_id for subscribed in everybody}
    notified = set[int]()
    earlier = {each.subscription_id for each in rows}
    # Of the subscriptions of one person: the one that sent the incident before, then the soonest.
    matching.sort(
        key=lambda to: (to.row.pk not in earlier, to.row.due_at(event.at) - event.at, to.row.pk)
    )
    for to in (subscribed.row for subscribed in matching):
        owner = to.owner_id
        if owner in notified:
            continue
        notified |= {owner} if owner else set()
        mine = {to.pk} | {pk for pk in owner_of if owner and owner_of[pk] == owner}
        past = [row for row in rows if row.state == State.SENT and row.subscription_id in mine]
        waiting = (
            row for row in rows if row.state == State.WAITING and row.subscription_id == to.pk
        )
        count = len(past) + count_by_deleted(to, incident.pk, event.at)
        queue(to, event, past, next(waiting, None), count)


def queue(
    to: Subscription,
    event: IncidentEvent,
    past: Sequence[Notification],
    row: Notification | None,
    count: int,
) -> None:
    """Add an event to the waiting row, or delete the row if the event cancels it.

    ``past`` are the messages about the incident to the person, by any subscription. ``count`` is
    their number within `REMEMBERED`, including those of deleted subscriptions.
    """
    types = {*(row.event_types if row else ()), event.type}
    knows_it_open = bool(past) and past[-1].event_types[-1] not in ENDS
    if types <= SWITCHES and (event.type not in ENDS) == knows_it_open:
        if row is not None:
            row.delete()
        return
    if count >= MOST_MESSAGES or (event.type == Type.CAUSE and count == MOST_MESSAGES - 1):
        return
    if row is None and to.notifications.filter(state=State.WAITING).count() >= MOST_WAITING:
        miss(to, 1, event.at)
        return
    row = row or Notification(
        subscription=to,
        incident=event.incident,
        created_at=event.at,
        due_at=event.at + 2 * REMEMBERED,
    )
    moment, worse = event.at, event.type == Type.WORSE
    last = past[-1].ended_at if past else None
    if event.type == Type.REOPENED and last is not None:
        moment = max(moment, last + DAY)
    due = event.at if worse else to.due_at(moment)
    row.together = not worse and (row.together or due > moment)
    row.urgent |= worse
    row.due_at = min(row.due_at, due)
    row.events, row.event_types = [*row.events, event.pk], [*row.event_types, event.type]
    row.save()


def may_notify_again(row: Notification, now: datetime) -> bool:
    """Return whether the person of a row may get another message about its incident."""
    to, since = row.subscription, now - REMEMBERED
    past = notes_of_person(to).filter(
        incident=row.incident_id, state=State.SENT, created_at__gt=since
    )
    deleted = count_by_deleted(to, cast(int, row.incident_id), now)
    return past.count() + deleted < MOST_MESSAGES


def notes_of_person(row: Subscription) -> QuerySet[Notification]:
    """Return the notifications by all subscriptions of the person of a subscription."""
    person = {"subscription__owner": row.owner_id} if row.owner_id else {"subscription": row}
    return Notification.objects.filter(**person)


def count_by_deleted(row: Subscription, incident: int, now: datetime) -> int:
    """Count the messages about an incident that deleted subscriptions sent to the same person."""
    prefix = subscriptions.call_prefix(row, incident)
    return len(subscriptions.sent_by_deleted(prefix, now - REMEMBERED))


def miss(row: Subscription, count: int, now: datetime) -> None:
    """Count messages of a subscription that could not be sent, for its next digest."""
    missed, is_new = Notification.objects.get_or_create(
        subscription=row,
        incident=None,
        kind=Notification.Kind.MISSED,
        state=State.WAITING,
        defaults={"created_at": now, "due_at": now, "missed": count},
    )
    if not is_new:
        Notification.objects.filter(pk=missed.pk).update(missed=F("missed") + count)


def drop_expired(now: datetime, days: int) -> None:
    """Delete old deliveries and the counts of limits that have passed."""
    ended = Notification.objects.filter(ended_at__lt=now - timedelta(days=days))
    ended.delete()
    old = LastSent.objects.filter(at__lt=now - DAY)
    old.exclude(key__startswith="incident ", at__gte=now - REMEMBERED).delete()
