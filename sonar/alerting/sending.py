"""The sender: sends the queued notifications of one subscription at a time, and stores the outcome.

Nothing is locked while it sends, because a subscription is leased. If a sender dies, another one
sends the same events under the same id. A channel that does not answer is retried after ever longer
pauses, and after those that answer.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet

from sonar.alerting import outbox, subscriptions
from sonar.alerting.channels import catalogue
from sonar.alerting.channels.base import ChannelError, Matter, Message, Target
from sonar.alerting.subscriptions import ACTIVE, DIRECT, OWNER_IS_ACTIVE, REACHABLE, Subscribed
from sonar.credentials.encryption import OtherKeyError
from sonar.models import LastSent, Notification, Subscription
from sonar.models.notifications import DAY

log = logging.getLogger(__name__)

Kind, State = Notification.Kind, Notification.State
# Longer than any channel takes; after that another sender takes over.
LEASE = timedelta(minutes=3)
BOARD_EVERY, BOARD_LOOKS_BACK = timedelta(minutes=1), timedelta(hours=1)
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)
HOUR = timedelta(hours=1)
AT_ONCE = 4
# The subscriptions of a sender: a report takes seconds to build, and incidents do not wait for it.
INCIDENTS, REPORTS = Q(report=""), ~Q(report="")
# The columns of a channel that answers.
WELL: Mapping[str, object] = {"failures": 0, "failing_since": None, "retry_at": None}
STOPPED = (
    "Sonar was stopped while it was sending this message. The message may have been delivered, so "
    "Sonar will not send it again."
)
BROKEN = "Sonar could not send this message because of an internal error. See the worker log."
OTHER_KEY = (
    "The settings of this channel were encrypted with a different SONAR_CREDENTIALS_KEY. Enter "
    "them again (docs/settings.md)."
)


class Words(Protocol):
    """Writes messages, and the incidents that a board shows."""

    def message(
        self, row: Subscription, rows: Sequence[Notification], now: datetime
    ) -> Message: ...

    def matters(self, subscribed: Subscribed, since: datetime, now: datetime) -> list[Matter]: ...


@dataclass(frozen=True)
class Claim:
    """A leased subscription, and its notifications to send now; none for a board."""

    row: Subscription
    rows: Sequence[Notification]
    lease: datetime


Clock = Callable[[], datetime]


def send_due(
    words: Words, clock: Clock, seconds: float, at_once: int = AT_ONCE, among: Q = INCIDENTS
) -> None:
    """Send what is due until nothing is left or the time is up; ``at_once`` is the parallelism."""
    end = time.monotonic() + seconds

    def work() -> None:
        try:
            while time.monotonic() < end and send_next(words, clock, among):
                pass
        finally:
            connection.close()

    with ThreadPoolExecutor(at_once, "notify") as threads:
        for done in [threads.submit(work) for _ in range(at_once)]:
            done.result()


def send_next(words: Words, clock: Clock, among: Q = INCIDENTS) -> bool:
    """Send one message or update one board; return whether there was anything to do."""
    claimed = claim(clock(), among)
    if claimed is None:
        return False
    row, now = claimed.row, clock()
    if not claimed.rows and row.channel not in catalogue.BOARDS:
        release(claimed)
        return True
    try:
        message, answer = deliver(claimed, words, now)
    except ChannelError as error:
        failed(claimed, str(error), clock())
    except Exception:
        # It is retried after ever longer pauses, like a message that is not delivered.
        failed(claimed, BROKEN, clock())
        raise
    else:
        arrived(claimed, message, answer, clock())
    return True


def claim(now: datetime, among: Q = INCIDENTS) -> Claim | None:
    """Lease the next subscription with something due; those that answer come first."""
    waiting = Notification.objects.filter(
        subscription=OuterRef("pk"), state=State.WAITING, due_at__lte=now
    )
    is_due = Exists(waiting.exclude(kind__in=DIRECT)) | Q(channel__in=catalogue.BOARDS) & (
        Q(told_at=None) | Q(told_at__lte=now - BOARD_EVERY)
    )
    is_asked = (
        Q(confirmed_at=None) & OWNER_IS_ACTIVE & Exists(waiting.filter(kind=Kind.CONFIRMATION))
    )
    is_tried = REACHABLE & Exists(waiting.filter(kind=Kind.TEST))
    answers = Q(retry_at=None) | Q(retry_at__lte=now)
    with transaction.atomic():
        row = (
            Subscription.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
            .filter(among, free(now))
            .filter(is_asked | is_tried | ACTIVE & answers & is_due)
            .select_related("owner")
            .order_by("failures", "told_at", "id")
            .first()
        )
        if row is None:
            return None
        row.leased_until = now + LEASE
        row.save(update_fields=["leased_until"])
        rows = to_send(row, now)
        LastSent.objects.bulk_create(
            [LastSent(key=key, at=now) for key in limited_keys(row, rows)],
            update_conflicts=True,
            unique_fields=["key"],
            update_fields=["at"],
        )
        return Claim(row, rows, row.leased_until)


def limited_keys(row: Subscription, rows: Sequence[Notification]) -> list[str]:
    """Return the keys by which a message is counted; tests and links have other limits."""
    return [] if any(map(is_direct, rows)) else subscriptions.keys_of(row, rows)


def free(now: datetime) -> Q:
    """Return the condition that no sender has leased a subscription."""
    return Q(leased_until=None) | Q(leased_until__lte=now)


def to_send(row: Subscription, now: datetime) -> list[Notification]:
    """Choose the notifications of one message: urgent ones alone, the rest as the cap allows.

    An address that is not confirmed gets only its confirmation link.
    """
    waiting = row.notifications.filter(state=State.WAITING)
    if row.confirmed_at is None:
        return list(waiting.filter(due_at__lte=now, kind=Kind.CONFIRMATION))
    if row.failing_since is not None and row.failing_since <= now - DAY:
        # Notifications fail after a day. A digest then summarises the incidents; for reports the
        # next one is sent as usual.
        old = waiting.filter(due_at__lte=now - DAY)
        ended = {"state": State.FAILED, "ended_at": now, "answer": row.answer}
        if count := old.filter(incident__isnull=False).update(**ended):
            outbox.miss(row, count, now)
        if old.filter(kind=Kind.REPORT).update(**ended):
            Subscription.objects.filter(pk=row.pk).update(**WELL)
    due = list(waiting.filter(due_at__lte=now).order_by("id"))
    for is_first in (is_direct, attrgetter("urgent")):
        if first := next(filter(is_first, due), None):
            return [first]
    past = row.notifications.filter(state=State.SENT, ended_at__gt=now - HOUR)
    past = past.exclude(kind__in=DIRECT)
    sent = past.aggregate(messages=Count("message", distinct=True), first=Min("ended_at"))
    deleted = subscriptions.sent_by_deleted(subscriptions.message_prefix(row), now - HOUR)
    together = [each for each in due if each.together or each.kind == Kind.MISSED]
    single = [each for each in due if each not in together]
    if sent["messages"] + len(deleted) < row.cap:
        return single[:1] or together
    later = min(filter(None, [sent["first"], *deleted])) + HOUR
    waiting.filter(pk__in=[each.pk for each in due]).update(due_at=later, together=True)
    return []


def is_direct(each: Notification) -> bool:
    return each.kind in DIRECT


def deliver(claimed: Claim, words: Words, now: datetime) -> tuple[Message | None, str]:
    """Send a claim; return the message and the answer, or raise ChannelError."""
    row, channel = claimed.row, catalogue.describe(claimed.row.channel)
    if missing := channel.missing():
        raise ChannelError(missing)
    try:
        values = subscriptions.unseal(row)
    except OtherKeyError:
        raise ChannelError(OTHER_KEY) from None
    to = Target(
        str(row.key), row.name, row.address, f"{settings.SONAR_URL}/subscriptions/",
        settings.SONAR_URL, values,
    )  # fmt: skip
    if channel.is_board:
        since = (row.told_at or now) - BOARD_LOOKS_BACK
        matters = words.matters(Subscribed(row, subscriptions.sites_of(row)), since, now)
        return None, catalogue.load(channel.path).tell(matters, to, now)
    message = words.message(row, claimed.rows, now)
    if channel.is_sent_once:
        rows_of(claimed).update(state=State.FAILED, ended_at=now, answer=STOPPED)
    log.info("Sending %s to the subscription %s", message.id, row.pk)
    return message, catalogue.load(channel.path).send(message, to)


def rows_of(claimed: Claim) -> QuerySet[Notification]:
    return Notification.objects.filter(pk__in=[each.pk for each in claimed.rows])


def release(claimed: Claim, **changes: object) -> None:
    """End the lease, unless another sender has it by now, and store the outcome."""
    rows = Subscription.objects.filter(pk=claimed.row.pk, leased_until=claimed.lease)
    rows.update(leased_until=None, **changes)


@transaction.atomic
def arrived(claimed: Claim, message: Message | None, answer: str, now: datetime) -> None:
    """Store what was sent; events that came meanwhile stay queued in a new row."""
    answer, before = answer[:500], {each.pk: each for each in claimed.rows}
    for row in rows_of(claimed).select_for_update():
        count, missed = len(before[row.pk].events), row.missed - before[row.pk].missed
        events, types = row.events[count:], row.event_types[count:]
        row.events, row.event_types = row.events[:count], row.event_types[:count]
        row.missed = before[row.pk].missed
        row.state, row.ended_at, row.answer = State.SENT, now, answer
        row.message = UUID(message.id) if message else None
        row.save()
        if missed:
            outbox.miss(claimed.row, missed, now)
        elif events and outbox.may_notify_again(row, now):
            row.pk, row.state, row.events, row.event_types = None, State.WAITING, events, types
            row.ended_at = row.message = None
            row.save(force_insert=True)
    if any(map(is_direct, claimed.rows)):
        release(claimed, answer=answer)
    else:
        release(claimed, told_at=now, answer=answer, **WELL)


@transaction.atomic
def failed(claimed: Claim, answer: str, now: datetime) -> None:
    """Store a failed delivery; it is retried after ever longer pauses, unless it is direct."""
    row, answer = claimed.row, answer[:500]
    log.warning("Delivery for the subscription %s failed: %s", row.pk, answer)
    if any(map(is_direct, claimed.rows)):
        rows_of(claimed).update(state=State.FAILED, ended_at=now, answer=answer)
        release(claimed)
        return
    rows_of(claimed).update(answer=answer)
    counted = LastSent.objects.filter(key__in=limited_keys(row, claimed.rows))
    counted.filter(at=claimed.lease - LEASE).delete()
    pause = min(FIRST_PAUSE * (1 << min(row.failures, 10)), LONGEST_PAUSE)
    pause = BOARD_EVERY if row.channel in catalogue.BOARDS else pause
    release(
        claimed, answer=answer, failures=row.failures + 1, retry_at=now + pause,
        failing_since=row.failing_since or now,
    )  # fmt: skip
