"""Reports as messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid5

from matrix.answers.incidents.messages import IncidentWords
from matrix.answers.report import build
from matrix.answers.report.parts import PeriodReport
from matrix.answers.report.question import ReportQuestion
from matrix.answers.report.schedule import scope_of
from matrix.query.forms import BadQueryError
from sonar.alerting.channels.base import ChannelError, Matter, Message
from sonar.alerting.subscriptions import NO_SITE, Subscribed
from sonar.models import Notification, Subscription


@dataclass(frozen=True)
class ReportWords:
    """Writes messages with reports (`sonar.alerting.sending.Words`).

    ``write`` gets a report and the name of the subscription, and returns subject, text and HTML.
    """

    write: Callable[[PeriodReport, str], tuple[str, str, str]]

    def message(self, row: Subscription, rows: Sequence[Notification], now: datetime) -> Message:
        """Return the message to send; raise ChannelError if the report does not exist."""
        first = rows[0]
        if first.kind != Notification.Kind.REPORT:
            return IncidentWords().message(row, rows, now)
        scope = scope_of(row)
        if not all(scope.values()):
            raise ChannelError(NO_SITE)
        try:
            params = {name: [scope[name]] for name in scope}
            question = ReportQuestion.read(first.period, params, now)
        except BadQueryError as error:
            raise ChannelError(" ".join(next(iter(error.errors.values())))) from None
        written = self.write(build.build(question), row.name)
        key = str(uuid5(row.key, f"report-{first.period}-{first.pk}"))
        return Message(key, now, first.kind, *written)

    def matters(self, subscribed: Subscribed, since: datetime, now: datetime) -> list[Matter]:
        """Return an empty list, because boards do not show reports."""
        return []
