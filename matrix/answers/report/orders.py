"""Reports that people have ordered by e-mail: of what, when they are due, and their messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import uuid5

from matrix.answers.incidents.messages import IncidentWords
from matrix.answers.report import build
from matrix.answers.report.parts import PeriodReport
from matrix.answers.report.question import KINDS, ReportPeriod, ReportQuestion
from matrix.query.forms import BadQueryError
from sonar.alerting import reports
from sonar.alerting.channels.base import ChannelError, Matter, Message
from sonar.alerting.subscriptions import Subscribed
from sonar.models import Notification, Subscription

# Late results have come by then, events are searched, and people begin to work.
DELAY = timedelta(hours=6)
NO_SITE = "Its site is not registered any more: remove this order."


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


def question_of(row: Subscription, period: str, now: datetime) -> ReportQuestion:
    """Return what is ordered; raise ChannelError if there is no such report any more."""
    scope = scope_of(row)
    if not all(scope.values()):
        raise ChannelError(NO_SITE)
    try:
        return ReportQuestion.read(period, {name: [scope[name]] for name in scope}, now)
    except BadQueryError as error:
        raise ChannelError(" ".join(next(iter(error.errors.values())))) from None


class Letter(Protocol):
    """What is sent of a report, in words."""

    @property
    def subject(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def html(self) -> str: ...


@dataclass(frozen=True)
class ReportWords:
    """Finds the words of reports (`sonar.alerting.sending.Words`); ``write`` writes each.

    It is given the name of the subscription, too.
    """

    write: Callable[[PeriodReport, str], Letter]

    def message(self, row: Subscription, rows: Sequence[Notification], now: datetime) -> Message:
        """Return the message of what is to be sent; raise ChannelError for what there is not."""
        first = rows[0]
        if first.kind != Notification.Kind.REPORT:
            return IncidentWords().message(row, rows, now)
        report = build.build(question_of(row, first.period, now))
        letter = self.write(report, row.name)
        key = str(uuid5(row.key, f"report-{first.period}-{first.pk}"))
        return Message(key, now, first.kind, letter.subject, letter.text, letter.html)

    def matters(self, subscribed: Subscribed, since: datetime, now: datetime) -> list[Matter]:
        """Return nothing: no board shows reports."""
        return []
