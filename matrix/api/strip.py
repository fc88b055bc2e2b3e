"""GET /api/v1/strip/: how many links failed or were slower than usual, by the hour or day."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pandas as pd
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers import time_strip
from matrix.answers.time_strip import AUTO, WIDTHS, StripQuestion, TimeStrip
from matrix.api import figures
from matrix.api.base import ApiView, unless_known
from matrix.api.cell_text import dumps
from matrix.api.matrix_formats import unix_time
from matrix.api.parameters import WINDOW_AND_METHOD, one_of, wrong
from matrix.api.schema.strip import FORMATS, STRIP
from matrix.api.series import times
from matrix.http.negotiation import CONTENT_TYPES, FIGURE, asked_format
from matrix.http.questions import read_once
from matrix.plots import time_strip as picture
from matrix.plots.standalone import FigureTitle
from matrix.query.filters import LINK_FILTERS, alternatives, by_parameter, words_of
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from sonar.notation.windows import format_time

OWN = ("bucket", "format")


class StripView(ApiView, one_snapshot=False):
    @STRIP
    def get(self, request: Request) -> HttpResponseBase:
        now = timezone.now()
        (query, bucket, form), version = read_once(
            request,
            lambda: read(request, now),
            lambda parts: time_strip.version(StripQuestion.of(parts[0], now, parts[1])),
        )
        question = StripQuestion.of(query, now, bucket)

        def make() -> HttpResponse:
            strip = time_strip.build(question, version)
            if form in FIGURE:
                return as_figure(question, strip, form)
            return as_csv(question, strip) if form == "csv" else as_json(question, strip)

        return unless_known(request, version.shown(form), make)


def read(request: Request, now: datetime) -> tuple[MatrixQuery, str, str]:
    """Return the question, the length of its buckets, and the format."""
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
    content = {
        "query": echo(question),
        "bucket": question.cut.bucket,
        "bucket_seconds": question.width // 1000,
        "buckets": {"start": times(strip.starts), **vars(strip.counts)},
    }
    return HttpResponse(dumps(content), content_type=CONTENT_TYPES["json"])


def echo(question: StripQuestion) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    return {
        "size": question.query.size,
        "window": question.query.window or None,
        "start": format_time(question.window.start),
        "end": format_time(question.window.end),
        **by_parameter(question.query.filters),
    }


def as_figure(question: StripQuestion, strip: TimeStrip, form: str) -> HttpResponse:
    query = question.query
    words = f"Links that failed or were slower than usual, {query.size} files"
    filters = [words_of(group) for group in alternatives(query.filters)]
    title = FigureTitle(
        ", ".join([words, *filters]), question.window, "", simulated=strip.simulated
    )
    return figures.answer(picture.figure(question, strip), title, form, "sonar-strip")


def as_csv(question: StripQuestion, strip: TimeStrip) -> HttpResponse:
    """Write a line for each bucket."""
    table = pd.DataFrame({"start": unix_time(strip.starts), **vars(strip.counts)})
    lines = table.to_csv(index=False, lineterminator="\n", date_format="%Y-%m-%dT%H:%M:%SZ")
    response = HttpResponse(str(lines).encode(), content_type=CONTENT_TYPES["csv"])
    response["Content-Disposition"] = 'inline; filename="sonar-strip.csv"'
    return response
