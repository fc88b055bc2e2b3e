"""GET /api/v1/series/: one link over time, in buckets and, if asked for, as single results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

import numpy as np
import pandas as pd
from django.http import HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from numpy.typing import NDArray
from rest_framework.request import Request

from matrix.answers import series, standing
from matrix.answers.comparison import all_links
from matrix.answers.events.near import events_of_link
from matrix.answers.link import report as link_report
from matrix.answers.link.report import Question
from matrix.answers.ratio_words import PairRatio
from matrix.answers.series import AUTO, BUCKETS, TimeSeries, check_length
from matrix.api import figures
from matrix.api.base import ApiView, unless_known
from matrix.api.cell_text import dumps
from matrix.api.compared import of_pair
from matrix.api.matrix_formats import unix_time
from matrix.api.parameters import WINDOW_AND_METHOD, one_of, text, wrong
from matrix.api.schema.series import FORMATS, SERIES
from matrix.http.negotiation import CONTENT_TYPES, FIGURE, asked_format
from matrix.plots.link_lines import lines_of, rates_over_time, spans_drawn
from matrix.plots.over_time import marks_of
from matrix.plots.standalone import FigureTitle
from matrix.query import comparison
from matrix.query.addresses import about_link
from matrix.query.catalogue import RATE, SERIES_FIELDS
from matrix.query.filters import by_parameter
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats, rounded
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import data_version, notes, registry
from matrix.store.data_version import DataVersion
from sonar.notation.windows import Window, format_time
from sonar.people.roles import Anyone

OWN = ("source", "destination", "bucket", "points", "format")


@dataclass(frozen=True)
class SeriesRequest:
    """What a call asks for."""

    source: EndpointInfo
    destination: EndpointInfo
    query: MatrixQuery
    window: Window
    bucket: str
    points: bool

    @classmethod
    def read(cls, params: QueryDict, now: datetime) -> Self:
        check_names(params, (*WINDOW_AND_METHOD, *comparison.OF_A_LINK, *OWN))
        query = MatrixQuery.from_params(params, also=OWN)
        source, destination = ends(params)
        bucket = one_of(params, "bucket", (AUTO, *BUCKETS), AUTO)
        points = one_of(params, "points", ("1",)) == "1"
        return cls(source, destination, query, query.window_at(now), bucket, points)

    def series(self) -> TimeSeries:
        """Read the link; a bucket of which there would be too many is a bad parameter."""
        link = self.source.id, self.destination.id
        try:
            return series.build(link, self.query.size, self.window, self.bucket, self.query.filters)
        except ValueError as error:
            raise wrong("bucket", f"bucket: {error}.") from error

    def other(self, bucket: str, now: datetime) -> SeriesRequest | None:
        """Return the call for what this one is compared with, in the same buckets."""
        if self.query.compare is None:
            return None
        query, ends = self.query.other(now), (self.source, self.destination)
        source, destination = reversed(ends) if self.query.compare.reverse else ends
        window = query.window_at(now)
        return SeriesRequest(source, destination, query, window, bucket, self.points)

    def version(self, now: datetime) -> DataVersion:
        """Return what changes whenever the answer may, on either side."""
        of_links = standing.reach(self.window) if self.query.compare else self.window
        version = data_version.read(self.query.size, of_links).of_question(self)
        if other := self.other("", now):
            results = data_version.read_results(other.query.size, [other.window])
            version = replace(version, results=(*version.results, *results))
        return version


def ends(params: QueryDict) -> tuple[EndpointInfo, EndpointInfo]:
    """Return the endpoints that a call names; both must be given, and differ."""
    endpoints = {place.name: place for place in registry.read_places(registry.read_versions())}
    names = {end: text(params, end) for end in ("source", "destination")}
    for end, name in names.items():
        if not name:
            raise wrong(end, f"{end} is missing: name an endpoint.")
        if name not in endpoints:
            raise wrong(end, f"{end} “{name}” is not known: use the name of a registered endpoint.")
    if names["source"] == names["destination"]:
        raise wrong("destination", "destination is also the source: a link has two different ends.")
    return endpoints[names["source"]], endpoints[names["destination"]]


@dataclass(frozen=True)
class ComparedSeries:
    """What a call answers: the link over time and, if it asks for that, what it is compared with.

    ``pair`` says how the successes of both compare.
    """

    question: SeriesRequest
    series: TimeSeries
    other: ComparedSeries | None = None
    pair: PairRatio | None = None

    @classmethod
    def read(cls, question: SeriesRequest, now: datetime) -> Self:
        answer = question.series()
        other = question.other(answer.bucket, now)
        if other is None or question.query.compare is None:
            return cls(question, answer)
        there = other.series()
        ends = question.source.name, question.destination.name
        pair = all_links.of_link(question.query, now, *ends)
        return cls(question, answer, cls(other, there), pair)


class SeriesView(ApiView):
    @SERIES
    def get(self, request: Request) -> HttpResponseBase:
        form, now = asked_format(request, FORMATS), timezone.now()
        question = SeriesRequest.read(request.query_params, now)
        if form in FIGURE:
            # It has notes, which not everybody may see: the version of the results says too little.
            return as_figure(question, form, request.user, now)
        write = as_csv if form == "csv" else as_json
        tag = question.version(now).shown(form)
        return unless_known(request, tag, lambda: write(ComparedSeries.read(question, now)))


def as_json(answer: ComparedSeries) -> HttpResponse:
    content = {"query": echo(answer.question), "unit": "MB/s", **contents(answer)}
    if answer.other and answer.pair:
        content["comparison"] = {
            "description": answer.question.query.other_words(),
            **of_pair(answer.pair),
        }
        content["other"] = {"query": echo(answer.other.question), **contents(answer.other)}
    return HttpResponse(dumps(content), content_type=CONTENT_TYPES["json"])


def contents(answer: ComparedSeries) -> dict[str, Any]:
    question, series = answer.question, answer.series
    content = {
        "simulated": question.source.simulated or question.destination.simulated,
        "bucket": series.bucket,
        "bucket_seconds": BUCKETS[series.bucket] // 1000,
        "buckets": {"start": times(series.starts), **buckets(series)},
    }
    if question.points:
        content["points"] = points(series, times(series.points.started))
    return content


def echo(question: SeriesRequest) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    return {
        "source": question.source.name,
        "destination": question.destination.name,
        "size": question.query.size,
        "window": question.query.window or None,
        "start": format_time(question.window.start),
        "end": format_time(question.window.end),
        **by_parameter(question.query.filters),
    }


def buckets(answer: TimeSeries) -> dict[str, NDArray[Any]]:
    rates = {field: rounded(answer.rates[name]) for field, name in SERIES_FIELDS.items()}
    return {"ok": answer.ok, "failed": answer.failed, **rates}


def points(answer: TimeSeries, started: object) -> dict[str, Any]:
    state = np.where(answer.points.ok, "done", "failed")
    return {
        "started_at": started,
        "state": state.tolist(),
        "rate_mb_s": rounded(answer.points.rate),
    }


def as_figure(question: SeriesRequest, form: str, reader: Anyone, now: datetime) -> HttpResponse:
    """Draw what the page of the link does: each test, the running median, what explains them."""
    if question.bucket != AUTO or question.points:
        raise wrong("bucket", "bucket and points must be left out: a figure has every result.")
    query, names = question.query, (question.source.name, question.destination.name)
    check_length(query)
    report = link_report.answer(
        Question(question.source, question.destination, about_link(query)), now
    )
    spans = spans_drawn(
        report,
        notes.on_link(*names, report.window, reader),
        marks_of(events_of_link(report), query.size),
    )
    figure = rates_over_time(report, lines_of(report), spans).figure
    title = FigureTitle(
        f"From {names[0]} to {names[1]}, {query.size} files",
        report.window,
        RATE.name,
        simulated=question.source.simulated or question.destination.simulated,
    )
    return figures.answer(figure, title, form, "sonar-series")


def times(unix: Floats) -> list[str]:
    return [f"{text}Z" for text in np.datetime_as_string(unix_time(unix)).tolist()]


def as_csv(answer: ComparedSeries) -> HttpResponse:
    """Write a line for each bucket or, where single results are asked for, for each of those.

    Those of what it is compared with follow, told apart by their first column.
    """
    sides = {"this": answer, "other": answer.other} if answer.other else {"": answer}
    tables = [table_of(side, compared) for side, compared in sides.items() if compared]
    lines = pd.concat(tables).to_csv(
        index=False, lineterminator="\n", date_format="%Y-%m-%dT%H:%M:%SZ"
    )
    response = HttpResponse(str(lines).encode(), content_type=CONTENT_TYPES["csv"])
    response["Content-Disposition"] = 'inline; filename="sonar-series.csv"'
    return response


def table_of(side: str, answer: ComparedSeries) -> pd.DataFrame:
    series = answer.series
    table = (
        points(series, unix_time(series.points.started))
        if answer.question.points
        else {"start": unix_time(series.starts), **buckets(series)}
    )
    return pd.DataFrame({"side": side, **table} if side else table)
