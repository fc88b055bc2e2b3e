"""GET /api/v1/series/: one link over time, in buckets and, if asked for, as single results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from django.http import HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from numpy.typing import NDArray
from pydantic import create_model
from rest_framework.request import Request

from matrix.answers.comparison import all_links
from matrix.answers.link import report as link_report
from matrix.answers.link import series
from matrix.answers.link.report import Question
from matrix.answers.link.series import AUTO, BUCKETS, TimeSeries, check_length
from matrix.answers.matrix import standing
from matrix.answers.other_origins import of_link
from matrix.api import rendering
from matrix.api.base import ApiView, unless_known
from matrix.api.matrix_formats import unix_time
from matrix.api.parameters import WINDOW_AND_METHOD, echo, one_of, text_of, wrong
from matrix.api.rendering import as_table, file_name
from matrix.api.schema import parameters as schema
from matrix.api.schema.describe import described
from matrix.api.schema.link_parts import ComparedRates
from matrix.api.schema.records import Json, record
from matrix.api.schema.schemas import Answer, OtherOrigins
from matrix.http.negotiation import FIGURE, TABLE, asked_format
from matrix.plots.link import lines_of, rates_over_time, spans_drawn
from matrix.plots.standalone import FigureTitle
from matrix.query import comparison
from matrix.query.addresses import about_link
from matrix.query.catalogue import QUANTILES, RATE, SERIES_FIELDS
from matrix.query.filters import PROFILE_FILTERS
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats, rounded
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import data_version, notes, registry
from matrix.store.data_version import DataVersion
from sonar.notation.windows import Window
from sonar.people.roles import Anyone

Numbers = list[float | None]
RATES = dict.fromkeys(SERIES_FIELDS, (Numbers, ...))


class SeriesEcho(schema.Echo):
    """The query parameters for the rates of a link, including default values.

    Each filter is a list of values, under the name of its parameter.
    """

    source: str
    destination: str


class BucketCounts(Answer):
    start: list[datetime]
    ok: list[int]
    failed: list[int]


class Buckets(create_model("BucketRates", __base__=BucketCounts, **RATES)):  # type: ignore[misc]
    """Counts and rates: one value per bucket, including empty buckets."""


class Points(Answer):
    """Individual results: one value per test, the oldest first."""

    started_at: list[datetime]
    state: list[Literal["done", "failed"]]
    rate_mb_s: Numbers


class SeriesComparison(ComparedRates):
    """The rates of a link on the two sides of a comparison, and their ratio."""

    description: str


class OneSeries(Answer):
    """The rates of a link over time."""

    query: SeriesEcho
    simulated: bool
    bucket: str
    bucket_seconds: int
    buckets: Buckets
    points: Points = Points(started_at=[], state=[], rate_mb_s=[])


class Series(OneSeries):
    """The rates of a link over time, with the other side of a comparison."""

    unit: Literal["MB/s"]
    other_origins: OtherOrigins
    comparison: SeriesComparison | None = None
    other: OneSeries | None = None


# Three transfers, of 4.26, 4.7 and 5.14 MB/s.
EXAMPLE_RATES = {
    field: round(4.26 + 0.88 * QUANTILES.get(name, 0.5), 1) for field, name in SERIES_FIELDS.items()
}
EXAMPLE = {
    "query": {
        "source": "Glasgow_DATADISK",
        "destination": "RAL_DATADISK",
        "size": "large",
        "window": "6h",
        "start": "2026-11-20T06:01:00Z",
        "end": "2026-11-20T12:01:00Z",
    },
    "unit": "MB/s",
    "other_origins": {},
    "simulated": False,
    "bucket": "1h",
    "bucket_seconds": 3600,
    "buckets": {
        "start": ["2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"],
        "ok": [0, 3],
        "failed": [0, 1],
        **{field: [None, rate] for field, rate in EXAMPLE_RATES.items()},
    },
}
CSV = f"""start,ok,failed,{",".join(EXAMPLE_RATES)}
2026-11-20T10:00:00Z,0,0{"," * len(EXAMPLE_RATES)}
2026-11-20T11:00:00Z,3,1,{",".join(map(str, EXAMPLE_RATES.values()))}
"""

FORMATS = (*TABLE, *FIGURE)
# One direction of a link, a size class, a window, and ways of measuring.
LINK = (
    schema.text("source", "Name of the source endpoint.", "Glasgow_DATADISK", required=True),
    schema.text("destination", "Name of the destination endpoint.", "RAL_DATADISK", required=True),
    schema.SIZE_CLASS,
    *schema.WINDOW,
    *schema.METHOD_FILTERED,
)

OWN = ("source", "destination", "bucket", "points", "format")


def echo_of_link(ends: Sequence[EndpointInfo], query: MatrixQuery, window: Window) -> Json:
    source, destination = ends
    return {"source": source.name, "destination": destination.name} | echo(query, window)


@dataclass(frozen=True)
class SeriesRequest:
    ends: tuple[EndpointInfo, EndpointInfo]
    query: MatrixQuery
    window: Window
    bucket: str
    points: bool

    @classmethod
    def read(cls, params: QueryDict, now: datetime) -> Self:
        check_names(params, (*WINDOW_AND_METHOD, *comparison.OF_A_LINK, *OWN))
        query = MatrixQuery.from_params(params, also=OWN)
        bucket = one_of(params, "bucket", (AUTO, *BUCKETS), AUTO)
        points = one_of(params, "points", ("1",)) == "1"
        return cls(ends(params), query, query.window_at(now), bucket, points)

    @property
    def file_name(self) -> str:
        names = (end.name for end in self.ends)
        return file_name("series", *names, query=self.query, window=self.window)

    def series(self) -> TimeSeries:
        """Read the link; a bucket of which there would be too many is a bad parameter."""
        link = self.ends[0].id, self.ends[1].id
        try:
            return series.build(link, self.query.size, self.window, self.bucket, self.query.filters)
        except ValueError as error:
            raise wrong("bucket", f"bucket: {error}.") from error

    def other(self, bucket: str, now: datetime) -> SeriesRequest | None:
        """Return the call for what this one is compared with, in the same buckets."""
        if self.query.compare is None:
            return None
        query, (source, destination) = self.query.other(now), self.ends
        ends = (destination, source) if self.query.compare.reverse else self.ends
        return SeriesRequest(ends, query, query.window_at(now), bucket, self.points)

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
    names = {end: text_of(params, end) for end in ("source", "destination")}
    for end, name in names.items():
        if not name:
            raise wrong(end, f"“{end}” is missing: give the name of a registered endpoint.")
        if name not in endpoints:
            raise wrong(end, f"{end} “{name}” is not known: use the name of a registered endpoint.")
    if names["source"] == names["destination"]:
        raise wrong("destination", "“destination” must differ from “source”.")
    return endpoints[names["source"]], endpoints[names["destination"]]


def read_sides(question: SeriesRequest, now: datetime) -> list[tuple[SeriesRequest, TimeSeries]]:
    """Return the link over time and, if the call asks for that, what it is compared with."""
    own = question.series()
    other = question.other(own.bucket, now)
    return [(question, own), *([(other, other.series())] if other else [])]


class SeriesView(ApiView):
    @described(
        "Get the rates of a link over time",
        answer=Series,
        parameters=[
            *LINK,
            *schema.COMPARE,
            *schema.compared_by(PROFILE_FILTERS),
            schema.choice(
                "bucket",
                (AUTO, *BUCKETS),
                "Length of a bucket. `auto`: chosen according to the length of the time range.",
                AUTO,
            ),
            schema.choice(
                "points",
                ("1",),
                "`1`: also return individual results. In CSV, individual results replace buckets.",
            ),
        ],
        formats=FORMATS,
        examples={"json": EXAMPLE, "csv": CSV},
        tag="results",
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Returns the number of tests and the rates of one link for each bucket of the time range.

        With `compare`, the other side is returned in the same buckets. The formats `plotly` and
        `html` contain the chart on the link page.
        """
        form, now = asked_format(request, FORMATS), timezone.now()
        question = SeriesRequest.read(request.query_params, now)
        if form in FIGURE:
            # It has notes, which not everybody may see: the version of the results says too little.
            return as_figure(question, form, request.user, now)
        write = as_csv if form == "csv" else as_json
        tag = question.version(now).shown(form)
        return unless_known(request, tag, lambda: write(question, now))


def as_json(question: SeriesRequest, now: datetime) -> HttpResponse:
    query, (source, destination) = question.query, question.ends
    (_, own), *compared = read_sides(question, now)
    others = of_link((source.id, destination.id), query.filters, question.window, query.size)
    content = {
        "query": echo_of_link(question.ends, query, question.window),
        "unit": "MB/s",
        "other_origins": others.counts,
        **contents(question, own),
    }
    for other, there in compared:
        pair = all_links.link_ratio(query, now, source.name, destination.name)
        words = {"description": query.other_words()}
        content["comparison"] = words | record(ComparedRates, pair)
        of_other = echo_of_link(other.ends, other.query, other.window)
        content["other"] = {"query": of_other, **contents(other, there)}
    return rendering.as_json(content)


def contents(question: SeriesRequest, series: TimeSeries) -> Json:
    content = {
        "simulated": any(end.simulated for end in question.ends),
        "bucket": series.bucket,
        "bucket_seconds": BUCKETS[series.bucket] // 1000,
        "buckets": {"start": times(series.starts), **buckets(series)},
    }
    if question.points:
        content["points"] = points(series, times(series.points.started))
    return content


def buckets(answer: TimeSeries) -> dict[str, NDArray[Any]]:
    rates = {field: rounded(answer.rates[name]) for field, name in SERIES_FIELDS.items()}
    return {"ok": answer.ok, "failed": answer.failed, **rates}


def points(answer: TimeSeries, started: object) -> Json:
    state = np.where(answer.points.ok, "done", "failed")
    return {
        "started_at": started,
        "state": state.tolist(),
        "rate_mb_s": rounded(answer.points.rate),
    }


def as_figure(question: SeriesRequest, form: str, reader: Anyone, now: datetime) -> HttpResponse:
    """Draw what the page of the link does: each test, the running median, what explains them."""
    if question.bucket != AUTO or question.points:
        raise wrong(
            "bucket",
            "“bucket” and “points” cannot be used with format=plotly or format=html.",
        )
    query, (source, destination) = question.query, (end.name for end in question.ends)
    check_length(query)
    report = link_report.answer(Question(*question.ends, about_link(query)), now)
    spans = spans_drawn(report, notes.on_link(source, destination, report.window, reader))
    figure = rates_over_time(report, lines_of(report), spans).figure
    heading = f"From {source} to {destination}, {query.size} files"
    simulated = any(end.simulated for end in question.ends)
    title = FigureTitle(heading, report.window, RATE.name, simulated=simulated)
    return rendering.as_figure(figure, title, form, question.file_name)


def times(unix: Floats) -> list[str]:
    return [f"{text}Z" for text in np.datetime_as_string(unix_time(unix)).tolist()]


def as_csv(question: SeriesRequest, now: datetime) -> HttpResponse:
    """Write a line for each bucket or, where single results are asked for, for each of those.

    Those of what it is compared with follow, told apart by their first column.
    """
    tables, sides = [], [side for _, side in read_sides(question, now)]
    names = ("this", "other") if len(sides) > 1 else ("",)
    for side, over_time in zip(names, sides, strict=True):
        if question.points:
            table = points(over_time, unix_time(over_time.points.started))
        else:
            table = {"start": unix_time(over_time.starts), **buckets(over_time)}
        tables.append(pd.DataFrame({"side": side, **table} if side else table))
    return as_table(pd.concat(tables), question.file_name)
