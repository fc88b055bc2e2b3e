"""GET /api/v1/strip/: how many links were failing or slower than usual, by the hour or day."""

from datetime import datetime

import pandas as pd
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.matrix import time_strip
from matrix.answers.matrix.time_strip import AUTO, WIDTHS, StripQuestion, TimeStrip
from matrix.api import rendering
from matrix.api.base import ApiView, unless_known
from matrix.api.matrix_formats import unix_time
from matrix.api.parameters import WINDOW_AND_METHOD, echo, one_of, wrong
from matrix.api.schema import parameters as schema
from matrix.api.schema.describe import described
from matrix.api.schema.schemas import Answer
from matrix.api.series import times
from matrix.http.negotiation import FIGURE, TABLE, asked_format
from matrix.http.questions import read_once
from matrix.plots import time_strip as picture
from matrix.plots.standalone import FigureTitle
from matrix.query.filters import LINK_FILTERS, alternatives, words_of
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Downtime
from sonar.notation.windows import format_time

Counts = list[int]


class StripBuckets(Answer):
    """Counts: one value per bucket, including empty buckets.

    Filters on transfers, such as `mover`, do not change the number of failing and slower links.
    Links in downtime are counted if they are scheduled or were tested in the time range.
    """

    start: list[datetime]
    links: Counts
    failed_links: Counts
    all_failed_links: Counts
    failing_links: Counts
    slower_links: Counts
    ok: Counts
    failed: Counts
    down_links: Counts
    at_risk_links: Counts


class StripDowntime(Answer):
    """A declared downtime that affects an endpoint of the selected links."""

    subject: str
    severity: Downtime.Severity
    starts_at: datetime
    ends_at: datetime
    reason: str
    source: str | None


class Strip(Answer):
    """The number of failing and slower links over time, with declared downtimes."""

    query: schema.Echo
    bucket: str
    bucket_seconds: int
    buckets: StripBuckets
    downtimes: list[StripDowntime]
    downtime_count: int


FORMATS = (*TABLE, *FIGURE)

STRIP = described(
    "Count failing and slower links over time",
    answer=Strip,
    parameters=[
        schema.SIZE_CLASS,
        *schema.WINDOW,
        *schema.LINKS_FILTERED,
        *schema.METHOD_FILTERED,
        schema.choice(
            "bucket",
            (AUTO, *WIDTHS),
            "Length of a bucket. `auto`: chosen according to the length of the time range. `1h`: "
            "only for time ranges of up to 8 days.",
            AUTO,
        ),
    ],
    formats=FORMATS,
    tag="results",
)
OWN = ("bucket", "format")


class StripView(ApiView, one_snapshot=False):
    @STRIP
    def get(self, request: Request) -> HttpResponseBase:
        """Returns how many links were failing or slower than usual, per hour or day.

        The formats `plotly` and `html` contain the chart on the matrix page.
        """
        now = timezone.now()
        (query, bucket, form), version = read_once(
            request,
            lambda: read(request, now),
            lambda parts: time_strip.version(StripQuestion.of(parts[0], now, parts[1])),
        )
        question = StripQuestion.of(query, now, bucket)

        def make() -> HttpResponse:
            strip = time_strip.build(question, version)
            name = rendering.file_name("strip", query=query, window=question.window)
            if form in FIGURE:
                parts = [f"Links that were failing or slower than usual, {query.size} files"]
                parts += [words_of(group) for group in alternatives(query.filters)]
                words, simulated = ", ".join(parts), strip.simulated
                title = FigureTitle(words, question.window, "", simulated=simulated)
                return rendering.as_figure(picture.figure(question, strip), title, form, name)
            if form == "csv":
                table = pd.DataFrame({"start": unix_time(strip.starts), **strip.columns})
                return rendering.as_table(table, name)
            return as_json(question, strip)

        return unless_known(request, version.shown(form), make)


def read(request: Request, now: datetime) -> tuple[MatrixQuery, str, str]:
    params = request.query_params
    check_names(params, (*WINDOW_AND_METHOD, *LINK_FILTERS, *OWN))
    query = MatrixQuery.from_params(params, also=OWN)
    bucket = one_of(params, "bucket", (AUTO, *WIDTHS), AUTO)
    try:
        StripQuestion.of(query, now, bucket)
    except ValueError as error:
        raise wrong("bucket", f"bucket: {error}.") from error
    return query, bucket, asked_format(request, FORMATS)


def as_json(question: StripQuestion, strip: TimeStrip) -> HttpResponse:
    return rendering.as_json(
        {
            "query": echo(question.query, question.window),
            "bucket": question.cut.bucket,
            "bucket_seconds": question.width // 1000,
            "buckets": {"start": times(strip.starts), **strip.columns},
            "downtimes": [
                {
                    "subject": each.subject,
                    "severity": each.rows[0].severity,
                    "starts_at": format_time(each.starts_at),
                    "ends_at": format_time(each.ends_at),
                    "reason": each.reason,
                    "source": each.source or None,
                }
                for each in strip.downtimes
            ],
            "downtime_count": strip.downtime_count,
        }
    )
