"""When report subscriptions are due, and the scope of each."""

from __future__ import annotations

from datetime import datetime, timedelta

from matrix.answers.report.question import KINDS, ReportPeriod
from sonar.alerting import reports
from sonar.models import Subscription

# Late results have arrived by then, events are assessed, and people begin to work.
DELAY = timedelta(hours=6)
AT = f"{DELAY // timedelta(hours=1):02}:00"


def newest(kind: str, now: datetime) -> ReportPeriod:
    """Return the newest week or month whose report is due."""
    return ReportPeriod.newest(kind, now - DELAY)


def due_at(period: ReportPeriod) -> datetime:
    return period.window.end + DELAY


def next_due(row: Subscription, now: datetime) -> datetime:
    """Return when the next report of a subscription is due."""
    return due_at(newest(row.report, now).after)


def queue_newest(now: datetime) -> None:
    for kind in KINDS:
        period = newest(kind, now)
        reports.queue_newest(kind, period.name, due_at(period), now)


def queue_now(row: Subscription, now: datetime) -> bool:
    """Queue the newest report on demand; return False if one waits or was sent a moment ago."""
    return reports.queue_now(row, newest(row.report, now).name, now)


def scope_of(row: Subscription) -> dict[str, str]:
    """Return the scope of a report subscription as parameters of the address of the report."""
    if row.scope == Subscription.Scope.SITES:
        return {"site": next((site.name for site in row.sites.all()), "")}
    return {"cloud": row.cloud} if row.cloud else {}


def subject(row: Subscription) -> str:
    """Name the scope of a report subscription: `site RAL`, `cloud UK`, `the whole grid`."""
    name, value = next(iter(scope_of(row).items()), ("", ""))
    return f"{name} {value or '(not registered)'}" if name else "the whole grid"
