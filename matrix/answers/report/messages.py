"""What is sent of ordered reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import uuid5

from matrix.answers.incidents.messages import IncidentWords
from matrix.answers.report import build
from matrix.answers.report.parts import PeriodReport
from matrix.answers.report.question import ReportQuestion
from matrix.answers.report.schedule import scope_of
from matrix.query.forms import BadQueryError
from sonar.alerting.channels.base import ChannelError, Matter, Message
from sonar.alerting.subscriptions import Subscribed
from sonar.models import Notification, Subscription

NO_SITE = "Its site is not registered any more: remove this order."


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
