"""Reports by e-mail: the form by which people order them, and what was ordered."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import QueryDict

from matrix.answers.report import schedule
from matrix.pages.site.work_forms import CHOICE
from matrix.pages.subscriptions.subscription_form import AddressForm
from matrix.pages.subscriptions.work import SEE, Line, delivery_words, lines
from sonar.alerting import reports, subscriptions
from sonar.alerting.channels import catalogue
from sonar.models import Notification, Site, Subscription
from sonar.models.notifications import LONGEST_NAME
from sonar.people.roles import Anyone

Report, Scope = Subscription.Report, Subscription.Scope
NAMES = {Report.WEEK: "weekly report", Report.MONTH: "monthly report"}
TWICE = "You have ordered this report already: it is in the table."
ENOUGH = f"You have ordered {reports.MOST_OF_ONE} reports, which is the most: stop one of them."
MOST_SHOWN = 200


class ReportOrderForm(AddressForm):
    """How often the report of a page comes, and to which address; checked in a transaction."""

    otherwise = "report"

    report = forms.ChoiceField(label="how often", choices=Report.choices, widget=CHOICE)

    def __init__(self, row: Subscription, subject: str, data: QueryDict | None = None) -> None:
        self.row, self.subject = row, subject
        initial = {"report": Report.WEEK, "address": row.address}
        super().__init__(data, auto_id="order-%s", initial=initial)
        self.order_fields(["report", "address"])

    def filled(self, cleaned: Mapping[str, Any]) -> Subscription | None:
        row, report = self.row, Report(cleaned["report"])
        row.report, row.address = report, cleaned["address"]
        row.name = f"{NAMES[report]} on {self.subject}"[:LONGEST_NAME]
        owner = cast(User, row.owner)
        own = Subscription.objects.filter(owner=owner)
        if subscriptions.count_own(owner, ~Q(report="")) >= reports.MOST_OF_ONE:
            self.add_error(None, ENOUGH)
        elif own.filter(name=row.name).exists():
            self.add_error("report", TWICE)
        return None if self.errors else row


def begun(reader: User, scope: Mapping[str, str]) -> Subscription:
    """Return the order that the form begins with, of a cloud, a site or the grid."""
    return Subscription(
        channel=catalogue.EMAIL,
        owner=reader,
        address=reader.email,
        scope=Scope.SITES if scope["site"] else Scope.GRID,
        cloud=scope["cloud"],
    )


def kept(form: ReportOrderForm, site: str, now: datetime) -> str:
    """Keep a valid order, of a site if one is named; say what is to be done, empty if nothing.

    Two at once are one: the form has an error then.
    """
    row = form.row
    try:
        with transaction.atomic():
            row.save()
            row.sites.set(Site.objects.filter(name=site))
            return subscriptions.confirm_or_ask(row, now)
    except IntegrityError:
        form.add_error("report", TWICE)
        return ""


@dataclass(frozen=True)
class ReportOrder:
    """An order in a table: when the next report is due, None if none will be sent."""

    line: Line
    next_at: datetime | None
    waits: bool

    @property
    def state(self) -> str:
        """Say what came of the last report, or why none is sent."""
        owner = self.line.row.owner
        if owner is not None and not owner.is_active:
            return "the account is not active: nothing is sent"
        last, is_well = self.line.last, is_sent(self.line.row) and not self.line.is_bad
        if is_well and last is not None and last.kind == Notification.Kind.REPORT:
            return f"{delivery_words(last)}: {last.answer}"
        return self.line.state


def ordered(rows: Iterable[Subscription], now: datetime) -> list[ReportOrder]:
    """Return orders with what came of the last report of each. Four SQL queries."""
    listed = lines(rows)
    waiting = Notification.objects.filter(
        subscription__in=[line.row for line in listed],
        kind=Notification.Kind.REPORT,
        state=Notification.State.WAITING,
    )
    waits = set(waiting.values_list("subscription_id", flat=True))
    return [
        ReportOrder(
            line,
            schedule.next_due(line.row, now) if is_sent(line.row) else None,
            line.row.pk in waits,
        )
        for line in listed
    ]


def is_sent(row: Subscription) -> bool:
    owner = row.owner
    return bool(row.enabled and row.confirmed_at and owner and owner.is_active)


def context(
    reader: Anyone, scope: Mapping[str, str], subject: str, now: datetime
) -> dict[str, Any]:
    """Return what the page of reports shows to a reader of orders; nothing without an account."""
    if not isinstance(reader, User):
        return {}
    rows = Subscription.objects.exclude(report="").select_related("owner")
    rows = rows.prefetch_related("sites").order_by("owner__username", "name")
    others = rows.exclude(owner=reader) if reader.has_perm(SEE) else rows.none()
    return {
        "form": ReportOrderForm(begun(reader, scope), subject),
        "missing": catalogue.describe(catalogue.EMAIL).missing(),
        "orders": ordered(rows.filter(owner=reader), now),
        "others": ordered(others[:MOST_SHOWN], now),
        "others_left": max(0, others.count() - MOST_SHOWN),
    }
