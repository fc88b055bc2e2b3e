"""The pages of subscriptions, where users add, change, test, remove and confirm them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, Self, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from matrix.answers.report import schedule
from matrix.answers.report.question import ReportPeriod
from matrix.answers.words.phrases import counted
from matrix.http.page_rights import accounts, for_whom, holders
from matrix.pages.base import Page
from matrix.pages.subscriptions.subscription_form import (
    INCIDENT_SCOPE_WORDS,
    INCIDENT_TYPE_WORDS,
    SubscriptionForm,
    is_of_channel,
)
from matrix.pages.views import rendered, show
from matrix.query.addresses import address
from matrix.query.forms import check_names
from matrix.store.data_version import DataVersion
from sonar.alerting import incidents, outbox, reports, subscriptions
from sonar.alerting.channels import catalogue
from sonar.models import Notification, Subscription
from sonar.notation.units import format_span
from sonar.people import roles
from sonar.people.roles import Anyone

ADD, CHANGE, DELETE = (f"sonar.{verb}_subscription" for verb in ("add", "change", "delete"))
SEE = "sonar.view_subscription"
GONE = "You have no subscription with this number."
State = Notification.State
# Messages that somebody has requested by a button.
REQUESTED = (Notification.Kind.TEST, Notification.Kind.REPORT)
MOST_DELIVERIES = 20
REPORT_WHEN = {
    Subscription.Report.WEEK: f"on Mondays at {schedule.AT}",
    Subscription.Report.MONTH: f"on the first of each month at {schedule.AT}",
}


def keepers(permission: str) -> Any:  # noqa: ANN401 - a Right
    """Return the right of the owner of a subscription; operators own shared subscriptions.

    Subscriptions of other users do not exist for the reader.
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
    """A subscription in a table, and its last delivery."""

    row: Subscription
    last: Notification | None
    link: Notification | None = None
    """The newest confirmation link, if the address is not confirmed."""

    @cached_property
    def covers_nothing(self) -> str:
        return subscriptions.covers_nothing(self.row)

    @property
    def channel(self) -> str:
        return catalogue.describe(self.row.channel).label

    @property
    def topic(self) -> str:
        """Describe its content: `all incidents; an endpoint as a source; failing`."""
        row = self.row
        if row.report:
            return f"the {row.report}ly report on {schedule.subject(row)}"
        sites = ", ".join(site.name for site in row.sites.all())
        parts = [sites if row.scope == Subscription.Scope.SITES else row.get_scope_display()]
        parts += [", ".join(INCIDENT_SCOPE_WORDS[name] for name in row.incident_scopes)]
        parts += [", ".join(INCIDENT_TYPE_WORDS[name] for name in row.incident_types)]
        return "; ".join(filter(None, parts))

    @property
    def when(self) -> str:
        row = self.row
        if row.channel in catalogue.BOARDS:
            return "every minute"
        if row.report:
            return REPORT_WHEN[Subscription.Report(row.report)]
        digest = row.digest_hour
        often = "immediately" if digest is None else f"once a day, at {digest:02}:00"
        return f"{often}; quiet hours {row.quiet_hours}" if row.quiet_hours else often

    @property
    def is_bad(self) -> bool:
        return bool(self.row.failing_since or (self.last and self.last.state == State.FAILED))

    @property
    def state(self) -> str:
        row = self.row
        if not row.enabled:
            return "disabled"
        if row.confirmed_at is None:
            return self.link_words
        if row.failing_since:
            return f"delivery fails: {row.answer}"
        if self.last is None and row.told_at is None:
            return "no message has been sent yet"
        answer = row.answer or (self.last.answer if self.last else "")
        said = "the last message was not delivered" if self.is_bad else "messages are delivered"
        return f"{said}: {answer}" if answer else said

    @property
    def link_words(self) -> str:
        address, link = self.row.address, self.link
        oldest = timezone.now() - timedelta(days=subscriptions.LINK_DAYS)
        if link is None or link.created_at < oldest:
            return (
                f"not confirmed: there is no valid confirmation link for {address}. Save to send "
                "a new link"
            )
        if link.state == State.FAILED:
            return f"not confirmed: the link to {address} could not be sent: {link.answer}"
        if link.state == State.WAITING:
            return f"not confirmed: a link will be sent to {address} soon"
        return f"not confirmed: open the link that was sent to {address}"


def lines(rows: Iterable[Subscription]) -> list[Line]:
    """Return subscriptions with the last delivery of each. Two SQL queries, or three."""
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
        """Show the reader's own subscriptions, to operators also shared ones. Six SQL queries."""
        rows = Subscription.objects.prefetch_related("sites")
        return {
            "own": lines(rows.filter(owner=reader.pk)),
            "shared": lines(rows.filter(owner=None)) if reader.has_perm(SEE) else [],
            "may_add": reader.has_perm(ADD),
            "channels": [(channel, channel.missing()) for channel in catalogue.CHANNELS],
            "no_mail": catalogue.describe(catalogue.EMAIL).missing(),
        }


@dataclass(frozen=True)
class AddSubscriptionPage(Page):
    """The form of a new own subscription or, with a channel, of a shared one."""

    template: ClassVar[str] = "subscriptions/form.html"
    route: ClassVar[str] = "add-subscription"
    of_primary: ClassVar[bool] = True

    channel: str = ""

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        channel = path.get("channel", "")
        if channel and channel not in catalogue.names():
            raise Http404(f"The channel “{channel}” does not exist.")
        return cls(channel)

    def path(self) -> str:
        if self.channel:
            return address("add-shared-subscription", self.channel)
        return address(self.route)

    def begun(self, reader: Anyone) -> Subscription:
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
            "heading": f"Add a shared subscription: {channel.label}" if self.channel else own,
            "form": SubscriptionForm(row),
            "missing": channel.missing(),
        }


@dataclass(frozen=True)
class SubscriptionPage(Page):
    """One subscription: its form, a test, and its latest deliveries."""

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
            "heading": f"Subscription {row.name}",
            "line": line,
            "form": SubscriptionForm(row),
            "missing": catalogue.describe(row.channel).missing(),
            "deliveries": [(each, delivery_words(each)) for each in deliveries],
            "unsent": len(outbox.read_unsent(row, now)),
            "busy": any(each.kind in REQUESTED for each in waits),
            "failing": format_span(now - row.failing_since) if row.failing_since else "",
        }


def delivery_words(row: Notification) -> str:
    """Describe a notification: `incident 7: opened, closed`."""
    if row.kind == Notification.Kind.MISSED:
        return f"digest of {counted(row.missed, 'message')} that could not be delivered"
    if row.kind == Notification.Kind.REPORT:
        return f"report of {ReportPeriod.parse(row.period).words}"
    if row.incident_id is None:
        is_test = row.kind == Notification.Kind.TEST
        return "test notification" if is_test else "confirmation link"
    return f"incident {row.incident_id}: {', '.join(row.event_types)}"


TAKEN = "You have a subscription named “{}” already. Choose another name."
ENOUGH = "You have {} subscriptions, which is the maximum. Change or remove one of them."
PAUSE = format_span(reports.BETWEEN)
OUTCOME = "The table below shows the outcome."
OLD_LINK = (
    "This link has expired, belongs to another account, or was sent to an address that has since "
    "been changed. Save the subscription to get a new link."
)
# Forms do not write the columns of the sender.
COLUMNS = ("address", "secret", *(name for name in SubscriptionForm.base_fields if name != "sites"))


@for_whom(GET=accounts)
def subscriptions_page(request: HttpRequest) -> HttpResponseBase:
    return show(request, SubscriptionsPage, {})


@for_whom(GET=accounts, POST=accounts)
def add_subscription(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, AddSubscriptionPage, {})
    return edited(request, AddSubscriptionPage(), AddSubscriptionPage().begun(request.user))


@for_whom(GET=holders(ADD), POST=holders(ADD))
def add_shared_subscription(request: HttpRequest, channel: str) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, AddSubscriptionPage, {"channel": channel})
    page = AddSubscriptionPage.read(type(request.GET)(), channel=channel)
    return edited(request, page, page.begun(request.user))


@for_whom(GET=keepers(CHANGE), POST=keepers(CHANGE))
def subscription(request: HttpRequest, id: int) -> HttpResponseBase:  # noqa: A002 - of the route
    if request.method != "POST":
        return show(request, SubscriptionPage, {"id": str(id)})
    with transaction.atomic():
        return edited(request, SubscriptionPage(by_id(id)), by_id(id, lock=True))


def by_id(number: int, *, lock: bool = False) -> Subscription:
    """Return a subscription; ``lock`` keeps others from changing it in this transaction."""
    rows = Subscription.objects.select_for_update(no_key=True) if lock else Subscription.objects
    row = rows.filter(pk=number).first()
    if row is None:
        raise Http404(GONE)
    return row


@sensitive_variables()
def edited(
    request: HttpRequest, page: AddSubscriptionPage | SubscriptionPage, row: Subscription
) -> HttpResponse:
    """Save the subscription of a form, or show the form with its errors.

    An existing row is locked by the caller.
    """
    form, before = SubscriptionForm(row, request.POST), row.address
    is_new = row._state.adding
    try:
        with transaction.atomic():
            if is_new and row.owner:
                count = subscriptions.count_own(row.owner, Q(report=""))
                if count >= subscriptions.MOST_OF_ONE:
                    form.add_error(None, ENOUGH.format(count))
            said = keep(form, is_new=is_new, before=before) if form.is_valid() else ""
    except IntegrityError:
        form.add_error("name", TAKEN.format(row.name))
    if form.errors:
        return rendered(request, page, timezone.now(), None, status=400, form=form)
    messages.success(request, f"The subscription {row.name} was saved. {said}".strip())
    return HttpResponseRedirect(SubscriptionPage(row).path())


def keep(form: SubscriptionForm, *, is_new: bool, before: str) -> str:
    """Save the row of a form within a transaction; return what its owner must still do."""
    row, now = form.row, timezone.now()
    columns = [name for name in COLUMNS if not is_of_channel(name)]
    row.save(update_fields=None if is_new else columns)
    if not row.report:
        row.sites.set(form.cleaned_data["sites"])
    if not row.enabled:
        subscriptions.forget_unsent([row])
    said = ""
    if is_new or row.confirmed_at is None or row.address != before:
        said = subscriptions.confirm_or_ask(row, now, is_same=row.address == before)
    return " ".join([f"{said}." if said else "", subscriptions.covers_nothing(row)]).strip()


@for_whom(POST=keepers(CHANGE))
def try_subscription(request: HttpRequest, id: int) -> HttpResponse:  # noqa: A002 - of the route
    """Queue a test notification or the latest report; the page shows the outcome."""
    with transaction.atomic():
        row, now = by_id(id, lock=True), timezone.now()
        if row.confirmed_at is None:
            first = "First open the link that was sent to this address."
            sentence = f"{row.address} is not confirmed. {first}"
            messages.warning(request, sentence)
        elif row.report and not row.enabled:
            messages.warning(request, "This subscription is disabled. Enable it first.")
        elif row.report and schedule.queue_now(row, now):
            messages.success(request, f"The latest report was queued. {OUTCOME}")
        elif row.report:
            sentence = f"The report is already queued, or was sent less than {PAUSE} ago."
            messages.warning(request, f"{sentence} Try again later.")
        elif subscriptions.take_turn("test", row, subscriptions.BETWEEN_TESTS, now):
            sentence = "A test notification was requested less than a minute ago."
            messages.warning(request, f"{sentence} Try again later.")
        else:
            subscriptions.queue(row, Notification.Kind.TEST, now)
            messages.success(request, f"A test notification was queued. {OUTCOME}")
    return HttpResponseRedirect(f"{SubscriptionPage(row).path()}#deliveries")


@for_whom(POST=keepers(CHANGE))
def send_open_incidents(request: HttpRequest, id: int) -> HttpResponse:  # noqa: A002 - of the route
    """Queue the open incidents that match a subscription and were not sent yet."""
    with transaction.atomic():
        row, now = by_id(id, lock=True), timezone.now()
        incidents.lock()
        opened = outbox.read_unsent(row, now)
        if not opened:
            messages.warning(request, "No open incidents are left to send for this subscription.")
        elif wait := subscriptions.take_turn(
            "incidents", row, subscriptions.BETWEEN_INCIDENTS, now
        ):
            messages.warning(
                request,
                "Open incidents were sent less than a minute ago for this account or to this "
                f"address. Try again in {format_span(wait)}.",
            )
        else:
            outbox.send_now(row, opened, now)
            was = "was" if len(opened) == 1 else "were"
            sent = f"{counted(len(opened), 'open incident')} {was} queued."
            messages.success(request, f"{sent} {OUTCOME}")
    return HttpResponseRedirect(f"{SubscriptionPage(row).path()}#deliveries")


@for_whom(POST=keepers(DELETE))
def delete_subscription(request: HttpRequest, id: int) -> HttpResponse:  # noqa: A002 - of the route
    row = by_id(id)
    row.delete()
    sentence = f"The subscription {row.name} was deleted. It no longer sends messages."
    messages.success(request, sentence)
    return HttpResponseRedirect(address("reports" if row.report else "subscriptions"))


@for_whom(GET=accounts, POST=accounts)
def confirm_address(request: HttpRequest) -> HttpResponse:
    """Show the button that confirms an address; a GET by a mail scanner confirms nothing."""
    token = request.POST.get("token", "") or request.GET.get("token", "")
    if request.method != "POST":
        return render(request, "subscriptions/confirm.html", {"token": token})
    row = subscriptions.confirm(token, cast(User, request.user))
    if row is None:
        context = {"token": "", "sentence": OLD_LINK}
        return render(request, "subscriptions/confirm.html", context, status=400)
    gets = f"the {row.name}" if row.report else "notifications of new incidents"
    said = subscriptions.covers_nothing(row) or f"Sonar now sends {gets} to this address."
    messages.success(request, f"{row.address} was confirmed. {said}")
    return HttpResponseRedirect(SubscriptionPage(row).path())
