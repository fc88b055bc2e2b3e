"""What people do with subscriptions: add, change, try and remove them, and confirm an address."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from matrix.answers.report import schedule
from matrix.answers.words.phrases import counted
from matrix.http.page_rights import accounts, for_whom, holders
from matrix.pages.subscriptions.pages import (
    ADD,
    CHANGE,
    DELETE,
    GONE,
    AddSubscriptionPage,
    SubscriptionPage,
    SubscriptionsPage,
    keepers,
)
from matrix.pages.subscriptions.subscription_form import SubscriptionForm, is_of_channel
from matrix.pages.views import rendered, show
from matrix.query.addresses import address
from sonar.alerting import incidents, outbox, reports, subscriptions
from sonar.models import Notification, Subscription
from sonar.notation.units import format_span

TAKEN = "You have just added a subscription with this name: choose another."
ENOUGH = "You have {} subscriptions, which is the most: change or remove one of them."
PAUSE = format_span(reports.BETWEEN)
OLD_LINK = "This link is for another account, too old, or for an address that was changed since."
# What the sender notes in a row is not written by forms.
COLUMNS = ("address", "secret", *(name for name in SubscriptionForm.base_fields if name != "sites"))


@for_whom(GET=accounts)
def subscriptions_page(request: HttpRequest) -> HttpResponseBase:
    return show(request, SubscriptionsPage, {})


@for_whom(GET=accounts, POST=accounts)
def add_subscription(request: HttpRequest) -> HttpResponseBase:
    """Subscribe oneself, by e-mail."""
    if request.method != "POST":
        return show(request, AddSubscriptionPage, {})
    return edited(request, AddSubscriptionPage(), AddSubscriptionPage().begun(request.user))


@for_whom(GET=holders(ADD), POST=holders(ADD))
def add_list(request: HttpRequest, channel: str) -> HttpResponseBase:
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
    """Return a subscription; with a lock it stays as it is until the transaction ends."""
    rows = Subscription.objects.select_for_update(no_key=True) if lock else Subscription.objects
    row = rows.filter(pk=number).first()
    if row is None:
        raise Http404(GONE)
    return row


@sensitive_variables()
def edited(
    request: HttpRequest, page: AddSubscriptionPage | SubscriptionPage, row: Subscription
) -> HttpResponse:
    """Keep a subscription as a form has it, or show what is wrong with it.

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
        form.add_error("name", TAKEN)
    if form.errors:
        return rendered(request, page, timezone.now(), None, status=400, form=form)
    messages.success(request, f"The subscription {row.name} is kept. {said}".strip())
    return HttpResponseRedirect(SubscriptionPage(row).path())


def keep(form: SubscriptionForm, *, is_new: bool, before: str) -> str:
    """Keep the row of a form within a transaction; say what is still to be done for it."""
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
    """Let a test be sent; its page says what came of it."""
    with transaction.atomic():
        row, now = by_id(id, lock=True), timezone.now()
        if row.confirmed_at is None:
            messages.warning(request, f"{row.address} must be confirmed first, by the link in it.")
        elif row.report and not row.enabled:
            messages.warning(request, "It is switched off: switch it on first.")
        elif row.report and schedule.queue_now(row, now):
            messages.success(request, "The newest report is sent next: its outcome is shown below.")
        elif row.report:
            messages.warning(request, f"It waits already, or was sent less than {PAUSE} ago.")
        elif subscriptions.take_turn("test", row, subscriptions.BETWEEN_TESTS, now):
            messages.warning(request, "A test was ordered less than a minute ago.")
        else:
            subscriptions.queue(row, Notification.Kind.TEST, now)
            messages.success(request, "A test is sent within seconds: its outcome is shown below.")
    return HttpResponseRedirect(f"{SubscriptionPage(row).path()}#deliveries")


@for_whom(POST=keepers(CHANGE))
def send_open_incidents(request: HttpRequest, id: int) -> HttpResponse:  # noqa: A002 - of the route
    """Let the open incidents be sent that a subscription covers and did not send yet."""
    with transaction.atomic():
        row, now = by_id(id, lock=True), timezone.now()
        incidents.lock()
        opened = outbox.read_unsent(row, now)
        if not opened:
            messages.warning(request, "No open incident is left to send by this subscription.")
        elif wait := subscriptions.take_turn(
            "incidents", row, subscriptions.BETWEEN_INCIDENTS, now
        ):
            messages.warning(
                request,
                "Open incidents were sent less than a minute ago, by this account or to this "
                f"address. Try again in {format_span(wait)}.",
            )
        else:
            outbox.send_now(row, opened, now)
            sent = f"{counted(len(opened), 'open incident')} will be sent next."
            messages.success(request, f"{sent} The table below shows the outcome.")
    return HttpResponseRedirect(f"{SubscriptionPage(row).path()}#deliveries")


@for_whom(POST=keepers(DELETE))
def delete_subscription(request: HttpRequest, id: int) -> HttpResponse:  # noqa: A002 - of the route
    row = by_id(id)
    row.delete()
    messages.success(request, f"The subscription {row.name} is removed: nothing more is sent.")
    return HttpResponseRedirect(address("reports" if row.report else "subscriptions"))


@for_whom(GET=accounts, POST=accounts)
def confirm_address(request: HttpRequest) -> HttpResponse:
    """Show what a link confirms, which programs that look at e-mail open too; POST does it."""
    token = request.POST.get("token", "") or request.GET.get("token", "")
    if request.method != "POST":
        return render(request, "subscriptions/confirm.html", {"token": token})
    row = subscriptions.confirm(token, cast(User, request.user))
    if row is None:
        context = {"token": "", "sentence": OLD_LINK}
        return render(request, "subscriptions/confirm.html", context, status=400)
    gets = f"gets the {row.name}" if row.report else "is told of incidents"
    said = subscriptions.covers_nothing(row) or f"{row.address} {gets} from now on."
    messages.success(request, f"{row.address} is confirmed. {said}")
    return HttpResponseRedirect(SubscriptionPage(row).path())
