"""When ordered reports are due by e-mail, and of what each is."""

from __future__ import annotations

from datetime import datetime, timedelta

from matrix.answers.report.question import KINDS, ReportPeriod
from sonar.alerting import reports
from sonar.models import Subscription

# Late results have come by then, events are searched, and people begin to work.
DELAY = timedelta(hours=6)
AT = f"{DELAY // timedelta(hours=1):02}:00"


def newest(kind: str, now: datetime) -> ReportPeriod:
    """Return the newest week or month whose report is due."""
    return ReportPeriod.newest(kind, now - DELAY)


def due_at(period: ReportPeriod) -> datetime:
    return period.window.end + DELAY


def next_due(row: Subscription, now: datetime) -> datetime:
    """Return when the next report of an order is due that is not due yet."""
    return due_at(newest(row.report, now).after)


def queue_newest(now: datetime) -> None:
    for kind in KINDS:
        period = newest(kind, now)
        reports.queue_newest(kind, period.name, due_at(period), now)


def queue_now(row: Subscription, now: datetime) -> bool:
    """Let the newest report be sent next; say False if one was a moment ago, or is about to be."""
    return reports.queue_now(row, newest(row.report, now).name, now)


def scope_of(row: Subscription) -> dict[str, str]:
    """Return of what an ordered report is, as parameters of its address."""
    if row.scope == Subscription.Scope.SITES:
        return {"site": next((site.name for site in row.sites.all()), "")}
    return {"cloud": row.cloud} if row.cloud else {}


def subject(row: Subscription) -> str:
    """Say of what it is: `site RAL`, `cloud UK`, `the whole grid`."""
    name, value = next(iter(scope_of(row).items()), ("", ""))
    return f"{name} {value or 'that is not registered any more'}" if name else "the whole grid"
