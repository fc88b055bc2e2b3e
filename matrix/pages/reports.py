"""The page of a report, and the page to choose a report or to subscribe to reports by e-mail."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from matrix.answers.report import build
from matrix.answers.report.question import (
    KINDS,
    WEEK,
    ReportPeriod,
    ReportQuestion,
    names_of,
    read_scope,
)
from matrix.http.page_rights import accounts, for_whom, readers
from matrix.pages.base import Page, Params
from matrix.pages.parts.share import Share
from matrix.pages.subscriptions import report_subscriptions
from matrix.pages.views import rendered, show
from matrix.plots.report.document import context
from matrix.query.addresses import address, matrix_url, site_url
from matrix.query.forms import DEFAULT_SIZE, BadQueryError
from matrix.store import registry
from matrix.store.data_version import DataVersion
from sonar.models import DirtyMark, Segment
from sonar.people.roles import Anyone

FILES = (("PDF", "format=pdf"), ("Markdown", "format=markdown"))
# The page lists three months of weeks, and a year of months.
OFFERED = {"week": 13, "month": 12}


@dataclass(frozen=True)
class ReportPage(Page):
    question: ReportQuestion

    template = "report.html"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        lists = dict(params.lists())
        return cls(ReportQuestion.read(path["period"], lists, timezone.now()))

    def path(self) -> str:
        return self.question.path

    def params(self) -> Params:
        return {name: [value] for name, value in self.question.scope.items()}

    def version(self, now: datetime) -> DataVersion:
        return build.version(self.question)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        question, period = self.question, self.question.period
        report = build.build(question, version)
        api_url = self.url().replace(self.path(), address("api-report", period.name), 1)
        share = Share(api_url).adding(FILES, api_url)
        query = question.query(DEFAULT_SIZE)
        return {
            **context(report, "/"),
            "share": share,
            "pdf_url": share.documents[0][1],
            "matrix_url": site_url(question.site, query) if question.site else matrix_url(query),
            "others_url": ReportsPage(question.cloud, question.site).url(),
            "beside": [
                (words, ReportQuestion(other, question.cloud, question.site).url)
                for words, other in (("before", period.before), ("after", period.after))
                if other.window.end <= now
            ],
        }


@dataclass(frozen=True)
class ReportsPage(Page):
    """Lists the newest complete weeks and months, of the grid, a cloud or a site."""

    cloud: str = ""
    site: str = ""

    template = "reports.html"
    route = "reports"
    of_primary = True

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        return cls(**read_scope({name: texts for name, texts in params.lists() if any(texts)}))

    def params(self) -> Params:
        return {name: [value] for name, value in self.scope.items() if value}

    @property
    def scope(self) -> dict[str, str]:
        return {"cloud": self.cloud, "site": self.site}

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        places = registry.read_places(registry.read_versions())
        subject = self.subject(now)
        return {
            **report_subscriptions.context(reader, self.scope, subject, now),
            "subject": subject,
            "kinds": list(self.offered(now)),
            "choices": [
                (name, names_of(places, name), chosen) for name, chosen in self.scope.items()
            ],
        }

    def subject(self, now: datetime) -> str:
        return ReportQuestion(ReportPeriod.newest(WEEK, now), self.cloud, self.site).subject

    def offered(self, now: datetime) -> Iterator[tuple[str, list[ReportQuestion]]]:
        """Yield each kind with its newest reports, of periods with results. Two SQL queries."""
        newest = {kind: [ReportPeriod.newest(kind, now)] for kind in KINDS}
        for kind, periods in newest.items():
            while len(periods) < OFFERED[kind]:
                periods.append(periods[-1].before)
        oldest = min(periods[-1].window.start for periods in newest.values())
        starts = {
            start
            for bucket in (Segment, DirtyMark)
            for start in bucket.objects.filter(start__gte=oldest)
            .values_list("start", flat=True)
            .distinct()
        }
        for kind, periods in newest.items():
            yield (
                kind,
                [
                    ReportQuestion(period, self.cloud, self.site)
                    for period in periods
                    if any(period.window.start <= start < period.window.end for start in starts)
                ],
            )


@for_whom(GET=readers, POST=accounts)
def reports(request: HttpRequest) -> HttpResponseBase:
    """List reports; POST subscribes to those of the page by e-mail."""
    if request.method != "POST":
        return show(request, ReportsPage, {})
    try:
        page = ReportsPage.read(request.GET)
    except BadQueryError as error:
        return render(request, "400.html", {"errors": error.errors}, status=400)
    now, reader = timezone.now(), cast(User, request.user)
    begun = report_subscriptions.begun(reader, page.scope)
    form = report_subscriptions.ReportSubscriptionForm(begun, page.subject(now), request.POST)
    with transaction.atomic():
        said = report_subscriptions.save(form, page.site, now) if form.is_valid() else ""
    if form.errors:
        return rendered(request, page, now, None, status=400, form=form)
    subscribed = f"You are now subscribed to the {form.row.name}."
    messages.success(request, f"{subscribed} {said}".strip())
    return HttpResponseRedirect(f"{page.url()}#mail")
