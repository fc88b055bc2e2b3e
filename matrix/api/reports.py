"""GET /api/v1/reports/2026-W47/: what a week or a month was like, in numbers or to read."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

import numpy as np
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.report import build
from matrix.answers.report.parts import HeatTable, PeriodReport, present
from matrix.answers.report.question import ReportQuestion
from matrix.api.base import ApiView, unless_known
from matrix.api.rendering import as_file, as_json, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import text
from matrix.api.schema.schemas import Answer
from matrix.http.exceptions import NotNow
from matrix.http.negotiation import asked_format
from matrix.http.throttling import count_pdf
from matrix.plots.report import pdf
from matrix.plots.report.document import markdown
from matrix.statistics.cells.states import NOT_APPLICABLE, STATES
from sonar.notation.windows import format_time

FORMATS = ("json", "markdown", "pdf")


class SectionOfReport(Answer):
    """A section of a report, with its sentences and the rows of its table.

    In rows, unknown values are null and times are in ISO 8601 format in UTC. `low` and `high` are
    the limits of a 95 % confidence interval.
    """

    name: str
    title: str
    sentences: list[str]
    rows: list[dict[str, str | int | float | None]]


class ReportAnswer(Answer):
    """A report for a week or a month, on the whole grid, a cloud or a site."""

    kind: Literal["week", "month"]
    period: str
    start: datetime
    end: datetime
    cloud: str | None
    site: str | None
    title: str
    simulated: str | None
    summary: list[str]
    sections: list[SectionOfReport]


class ReportView(ApiView, one_snapshot=False):
    @described(
        "Get a report for a week or month",
        answer=ReportAnswer,
        parameters=[
            text(
                "cloud",
                "Only links from or to sites in this cloud. Cannot be combined with `site`.",
                "UK",
            ),
            text(
                "site", "Only links from or to this site. Cannot be combined with `cloud`.", "RAL"
            ),
        ],
        formats=FORMATS,
        errors=(404,),
        tag="results",
    )
    def get(self, request: Request, period: str) -> HttpResponseBase:
        """Returns a summary of a completed week or month.

        The summary includes the states of links at the end of that period. The report is available
        as JSON, Markdown or PDF. The status is 404 for a period that has not ended.
        """
        params = dict(request.query_params.lists())
        question = ReportQuestion.read(period, params, timezone.now(), "format")
        form = asked_format(request, FORMATS)
        version = build.version(question)

        def make() -> HttpResponse:
            report = build.build(question, version)
            if form == "json":
                return as_json(record(report))
            here = request.build_absolute_uri("/")
            content: str | bytes = ""
            if form == "markdown":
                content = markdown(report, here)
            else:
                count_pdf(request)
                try:
                    content = pdf.kept(report, here, version)
                except pdf.PdfError as error:
                    raise NotNow(str(error), round(pdf.LONGEST_WAIT_SECONDS)) from None
            return as_file(
                content, form, file_name("report", *question.scope.values(), question.period.name)
            )

        return unless_known(request, version.shown(form), make)


def record(report: PeriodReport) -> dict[str, Any]:
    question = report.question
    window = question.period.window
    return {
        "kind": question.period.kind,
        "period": question.period.name,
        "start": format_time(window.start),
        "end": format_time(window.end),
        "cloud": question.cloud or None,
        "site": question.site or None,
        "title": question.title,
        "simulated": report.simulated or None,
        "summary": report.summary,
        "sections": [
            {
                "name": section.name,
                "title": section.title,
                "sentences": [*section.sentences, *section.notes],
                "rows": [
                    *(
                        {name: value_of(row[name]) for name in row if name != "url"}
                        for row in (section.table.rows if section.table else ())
                    ),
                    *(cell for picture in section.pictures for cell in cells_of(picture)),
                ],
            }
            for section in report.sections
        ],
    }


def value_of(value: Any) -> Any:  # noqa: ANN401 - of any column
    value = present(value)
    return format_time(value) if isinstance(value, datetime) else value


def cells_of(picture: HeatTable) -> Iterator[dict[str, Any]]:
    """Yield the cells that are more than nothing, as links."""
    for (row, column), state in np.ndenumerate(picture.state):
        if state != NOT_APPLICABLE:
            source, destination = picture.ends(row, column)
            yield {
                "source": source,
                "destination": destination,
                "mean_mb_s": value_of(float(picture.value[row, column])),
                "state": STATES[state],
            }
