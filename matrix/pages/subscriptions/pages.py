"""What the pages of subscriptions show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, Self

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, QueryDict
from django.utils import timezone

from matrix.answers.report import schedule
from matrix.answers.report.question import ReportPeriod
from matrix.answers.words.phrases import counted
from matrix.http.page_rights import accounts
from matrix.pages.base import Page
from matrix.pages.subscriptions.subscription_form import (
    CONDITION_WORDS,
    LEVEL_WORDS,
    SubscriptionForm,
)
from matrix.query.addresses import address
from matrix.query.forms import check_names
from matrix.store.data_version import DataVersion
from sonar.alerting import outbox, subscriptions
from sonar.alerting.channels import catalogue
from sonar.models import Notification, Subscription
from sonar.notation.units import format_span
from sonar.people import roles
from sonar.people.roles import Anyone

ADD, CHANGE, DELETE = (f"sonar.{verb}_subscription" for verb in ("add", "change", "delete"))
SEE = "sonar.view_subscription"
GONE = "You have no subscription with this number."
State = Notification.State
# What people wait for who have pressed a button.
ORDERED = (Notification.Kind.TEST, Notification.Kind.REPORT)
MOST_DELIVERIES = 20
REPORT_WHEN = {
    Subscription.Report.WEEK: f"on Mondays at {schedule.AT}",
    Subscription.Report.MONTH: f"on the first of a month at {schedule.AT}",
}


def keepers(permission: str) -> Any:  # noqa: ANN401 - a Right
    """Return the right of whom a subscription belongs to; lists belong to operators.

    Those of others are as if they were not there.
    """

    def check(request: HttpRequest, id: int) -> bool:  # noqa: A002 - of the route
        if not accounts(request):
            return False
        row = Subscription.objects.filter(pk=id).first()
        if row is None or not (
            row.owner_id == request.user.pk
            or (row.owner_id is None and request.user.has_perm(permission))
        ):
            raise Http404(GONE)
        return True

    return check


@dataclass(frozen=True)
class Line:
    """A subscription in a table, and what its channel did last."""

    row: Subscription
    last: Notification | None
    link: Notification | None = None
    """The newest link to confirm its address, of one that is not confirmed."""

    @cached_property
    def covers_nothing(self) -> str:
        return subscriptions.covers_nothing(self.row)

    @property
    def channel(self) -> str:
        return catalogue.describe(self.row.channel).label

    @property
    def topic(self) -> str:
        """Say what it tells of: `all incidents; an endpoint as a source; failing`."""
        row = self.row
        if row.report:
            return f"the report of each {row.report} on {schedule.subject(row)}"
        sites = ", ".join(site.name for site in row.sites.all())
        parts = [sites if row.scope == Subscription.Scope.SITES else row.get_scope_display()]
        parts += [", ".join(LEVEL_WORDS[name] for name in row.levels)]
        parts += [", ".join(CONDITION_WORDS[name] for name in row.conditions)]
        return "; ".join(filter(None, parts))

    @property
    def when(self) -> str:
        row = self.row
        if row.channel in catalogue.BOARDS:
            return "every minute"
        if row.report:
            return REPORT_WHEN[Subscription.Report(row.report)]
        often = "at once" if row.digest_hour is None else f"once a day, at {row.digest_hour:02}:00"
        return f"{often}; nothing {row.quiet_hours}" if row.quiet_hours else often

    @property
    def is_bad(self) -> bool:
        return bool(self.row.failing_since or (self.last and self.last.state == State.FAILED))

    @property
    def state(self) -> str:
        """Say in few words whether people are told by it."""
        row = self.row
        if not row.enabled:
            return "switched off"
        if row.confirmed_at is None:
            return self.link_words
        if row.failing_since:
            return f"nothing arrives: {row.answer}"
        if self.last is None and row.told_at is None:
            return "nothing was sent yet"
        answer = row.answer or (self.last.answer if self.last else "")
        said = "the last message did not arrive" if self.is_bad else "messages arrive"
        return f"{said}: {answer}" if answer else said

    @property
    def link_words(self) -> str:
        """Say what has become of the link to confirm its address."""
        address, link = self.row.address, self.link
        oldest = timezone.now() - timedelta(days=subscriptions.LINK_DAYS)
        if link is None or link.created_at < oldest:
            return f"not confirmed: no link sent to {address} is valid. Save to send one"
        if link.state == State.FAILED:
            return f"the link to {address} could not be sent: {link.answer}"
        if link.state == State.WAITING:
            return f"a link is about to be sent to {address}"
        return f"waits until the link sent to {address} is opened"


def lines(rows: Iterable[Subscription]) -> list[Line]:
    """Return subscriptions with the last that each told. Two SQL queries, or three."""
    listed = list(rows)
    newest = Notification.objects.order_by("subscription_id", "-id").distinct("subscription_id")
    ended = newest.filter(subscription__in=listed, ended_at__isnull=False)
    last = {each.subscription_id: each for each in ended}
    open_rows = [row for row in listed if row.confirmed_at is None]
    links = newest.filter(subscription__in=open_rows, kind=Notification.Kind.CONFIRMATION)
    link = {each.subscription_id: each for each in links} if open_rows else {}
    return [Line(row, last.get(row.pk), link.get(row.pk)) for row in listed]


@dataclass(frozen=True)
class SubscriptionsPage(Page):
    template: ClassVar[str] = "subscriptions/list.html"
    route: ClassVar[str] = "subscriptions"
    of_primary: ClassVar[bool] = True

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        """Show one's own, and for operators the lists. Six SQL queries."""
        rows = Subscription.objects.prefetch_related("sites")
        return {
            "own": lines(rows.filter(owner=reader.pk)),
            "lists": lines(rows.filter(owner=None)) if reader.has_perm(SEE) else [],
            "may_add": reader.has_perm(ADD),
            "channels": [(channel, channel.missing()) for channel in catalogue.CHANNELS],
            "no_mail": catalogue.describe(catalogue.EMAIL).missing(),
        }


@dataclass(frozen=True)
class AddSubscriptionPage(Page):
    """The form of one's own subscription, or of a list of some channel."""

    template: ClassVar[str] = "subscriptions/form.html"
    route: ClassVar[str] = "add-subscription"
    of_primary: ClassVar[bool] = True

    channel: str = ""

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        channel = path.get("channel", "")
        if channel and channel not in catalogue.names():
            raise Http404(f"There is no channel “{channel}”.")
        return cls(channel)

    def path(self) -> str:
        return address("add-list", self.channel) if self.channel else address(self.route)

    def begun(self, reader: Anyone) -> Subscription:
        """Return what the form begins with."""
        if self.channel:
            return Subscription(channel=self.channel)
        mail = reader.email if isinstance(reader, User) else ""
        scope = Subscription.Scope.OWN if roles.sites_of(reader) else Subscription.Scope.GRID
        own = {"owner": reader, "address": mail, "scope": scope}
        return Subscription(channel=catalogue.EMAIL, name="mine", **own)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        row = self.begun(reader)
        channel = catalogue.describe(row.channel)
        own = "Subscribe to incidents by e-mail"
        return {
            "heading": f"Add a list: {channel.label}" if self.channel else own,
            "form": SubscriptionForm(row),
            "missing": channel.missing(),
        }


@dataclass(frozen=True)
class SubscriptionPage(Page):
    """One subscription: its form, a test, and what was told last."""

    template: ClassVar[str] = "subscriptions/form.html"
    route: ClassVar[str] = "subscription"
    of_primary: ClassVar[bool] = True

    row: Subscription

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        return cls(Subscription.objects.prefetch_related("sites").get(pk=path["id"]))

    def path(self) -> str:
        return address(self.route, self.row.pk)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        row = self.row
        (line,) = lines([row])
        newest = row.notifications.select_related("incident").order_by("-id")[:MOST_DELIVERIES]
        deliveries = list(newest)
        waits = [each for each in deliveries if each.state == State.WAITING]
        return {
            "heading": f"The subscription {row.name}",
            "line": line,
            "form": SubscriptionForm(row),
            "missing": catalogue.describe(row.channel).missing(),
            "deliveries": [(each, delivery_words(each)) for each in deliveries],
            "unsent": len(outbox.read_unsent(row, now)),
            "busy": any(each.kind in ORDERED for each in waits),
            "failing": format_span(now - row.failing_since) if row.failing_since else "",
        }


def delivery_words(row: Notification) -> str:
    """Say what a notification tells: `incident 7: opened, over`."""
    if row.kind == Notification.Kind.MISSED:
        return f"a digest of {counted(row.missed, 'message')} that could not be sent"
    if row.kind == Notification.Kind.REPORT:
        return f"the report of {ReportPeriod.parse(row.period).words}"
    if row.incident_id is None:
        return "a test" if row.kind == Notification.Kind.TEST else "a link to confirm the address"
    return f"incident {row.incident_id}: {', '.join(row.kinds)}"
