"""Reports by e-mail: each subscription gets the newest report once, even after an outage."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from sonar.alerting.sending import free
from sonar.alerting.subscriptions import ACTIVE, take_turn
from sonar.models import Notification, Subscription

Kind, State = Notification.Kind, Notification.State
# Subscriptions of one person, and the pause between reports on demand.
MOST_OF_ONE = 10
BETWEEN = timedelta(minutes=10)


def queue_newest(report: str, period: str, due: datetime, now: datetime) -> None:
    """Queue the report of a period, due at ``due``, for all subscriptions that did not send it.

    A report that still waits is replaced by the newest: after an outage of weeks there is one mail.
    Subscriptions newer than ``due`` begin with the next period. Two SQL statements, and some for
    each subscription.
    """
    past = Notification.objects.filter(subscription=OuterRef("pk"), kind=Kind.REPORT, period=period)
    with transaction.atomic():
        rows = Subscription.objects.select_for_update(
            skip_locked=True, no_key=True, of=("self",)
        ).filter(ACTIVE, free(now), ~Exists(past), report=report, confirmed_at__lt=due)
        for row in rows:
            queue(row, period, now)


def queue_now(row: Subscription, period: str, now: datetime) -> bool:
    """Queue a report on demand; return False if one waits or was sent a moment ago.

    Reports on demand are limited for each person and for each address.
    """
    reports = row.notifications.filter(kind=Kind.REPORT)
    if reports.filter(Q(state=State.WAITING) | Q(ended_at__gt=now - BETWEEN)).exists():
        return False
    if take_turn("report", row, BETWEEN, now):
        return False
    queue(row, period, now)
    Subscription.objects.filter(pk=row.pk).update(retry_at=None)
    return True


def queue(row: Subscription, period: str, now: datetime) -> None:
    present = {"period": period, "due_at": now}
    Notification.objects.update_or_create(
        subscription=row,
        incident=None,
        kind=Kind.REPORT,
        state=State.WAITING,
        defaults=present,
        create_defaults={**present, "created_at": now},
    )
