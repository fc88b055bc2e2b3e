"""Reports by e-mail: the form to subscribe to them, and the list of these subscriptions."""

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
TWICE = "You are subscribed to the {} already. The list below has this subscription."
ENOUGH = (
    f"You have {reports.MOST_OF_ONE} report subscriptions, which is the maximum. "
    "Cancel one of them."
)
MOST_SHOWN = 200


class ReportSubscriptionForm(AddressForm):
    """The frequency and the address of a report subscription; checked in a transaction."""

    otherwise = "report"

    report = forms.ChoiceField(label="frequency", choices=Report.choices, widget=CHOICE)

    def __init__(self, row: Subscription, subject: str, data: QueryDict | None = None) -> None:
        self.row, self.subject = row, subject
        initial = {"report": Report.WEEK, "address": row.address}
        super().__init__(data, auto_id="report-%s", initial=initial)
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
            self.add_error("report", TWICE.format(row.name))
        return None if self.errors else row


def begun(reader: User, scope: Mapping[str, str]) -> Subscription:
    """Return the subscription that the form begins with, of a cloud, a site or the grid."""
    return Subscription(
        channel=catalogue.EMAIL,
        owner=reader,
        address=reader.email,
        scope=Scope.SITES if scope["site"] else Scope.GRID,
        cloud=scope["cloud"],
    )


def save(form: ReportSubscriptionForm, site: str, now: datetime) -> str:
    """Save a valid subscription, of a site if one is named; return what its owner must still do.

    A second request at the same moment gets an error in its form.
    """
    row = form.row
    try:
        with transaction.atomic():
            row.save()
            row.sites.set(Site.objects.filter(name=site))
            return subscriptions.confirm_or_ask(row, now)
    except IntegrityError:
        form.add_error("report", TWICE.format(row.name))
        return ""


@dataclass(frozen=True)
class ReportSubscription:
    """A report subscription in a list; ``next_at`` is None if no report will be sent."""

    line: Line
    next_at: datetime | None
    waits: bool

    @property
    def state(self) -> str:
        """Describe the last delivery, or say why no report is sent."""
        owner = self.line.row.owner
        if owner is not None and not owner.is_active:
            return "the account is disabled, so no report is sent"
        last, is_well = self.line.last, is_sent(self.line.row) and not self.line.is_bad
        if is_well and last is not None and last.kind == Notification.Kind.REPORT:
            return f"{delivery_words(last)}: {last.answer}"
        return self.line.state


def with_deliveries(rows: Iterable[Subscription], now: datetime) -> list[ReportSubscription]:
    """Return report subscriptions with the last delivery of each. Four SQL queries."""
    listed = lines(rows)
    waiting = Notification.objects.filter(
        subscription__in=[line.row for line in listed],
        kind=Notification.Kind.REPORT,
        state=Notification.State.WAITING,
    )
    waits = set(waiting.values_list("subscription_id", flat=True))
    return [
        ReportSubscription(
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
    """Return the context of the page of reports; empty without an account."""
    if not isinstance(reader, User):
        return {}
    rows = Subscription.objects.exclude(report="").select_related("owner")
    rows = rows.prefetch_related("sites").order_by("owner__username", "name")
    others = rows.exclude(owner=reader) if reader.has_perm(SEE) else rows.none()
    return {
        "form": ReportSubscriptionForm(begun(reader, scope), subject),
        "missing": catalogue.describe(catalogue.EMAIL).missing(),
        "subscribed": with_deliveries(rows.filter(owner=reader), now),
        "others": with_deliveries(others[:MOST_SHOWN], now),
        "others_left": max(0, others.count() - MOST_SHOWN),
    }
