"""GET /api/v1/series/: one link over time, in buckets and, if asked for, as single results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import numpy as np
import pandas as pd
from django.http import HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from numpy.typing import NDArray
from rest_framework.request import Request

from matrix.answers import series
from matrix.answers.series import AUTO, BUCKETS, TimeSeries
from matrix.api.base import ApiView, unless_known
from matrix.api.cell_text import dumps
from matrix.api.matrix_formats import unix_time
from matrix.api.parameters import WINDOW_AND_METHOD, one_of, text, wrong
from matrix.api.schema.series import SERIES
from matrix.http.negotiation import CONTENT_TYPES, asked_format
from matrix.query.catalogue import SERIES_FIELDS
from matrix.query.filters import by_parameter
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.axes import EndpointInfo
from matrix.statistics.rounding import rounded
from matrix.store import data_version, registry
from sonar.windows import Window, format_time

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
        check_names(params, (*WINDOW_AND_METHOD, *OWN))
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


class SeriesView(ApiView):
    @SERIES
    def get(self, request: Request) -> HttpResponseBase:
        form = asked_format(request)
        question = SeriesRequest.read(request.query_params, timezone.now())
        write = as_csv if form == "csv" else as_json
        version = data_version.read(question.query.size, question.window)
        tag = version.of_question(question).shown(form)
        return unless_known(request, tag, lambda: write(question, question.series()))


def as_json(question: SeriesRequest, answer: TimeSeries) -> HttpResponse:
    content = {
        "query": echo(question),
        "unit": "MB/s",
        "simulated": question.source.simulated or question.destination.simulated,
        "bucket": answer.bucket,
        "bucket_seconds": BUCKETS[answer.bucket] // 1000,
        "buckets": {"start": times(answer.starts), **buckets(answer)},
    }
    if question.points:
        content["points"] = points(answer, times(answer.points.started))
    return HttpResponse(dumps(content), content_type=CONTENT_TYPES["json"])


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


def times(unix: Floats) -> list[str]:
    return [f"{text}Z" for text in np.datetime_as_string(unix_time(unix)).tolist()]


def as_csv(question: SeriesRequest, answer: TimeSeries) -> HttpResponse:
    """Write a line for each bucket or, where single results are asked for, for each of those."""
    table = (
        points(answer, unix_time(answer.points.started))
        if question.points
        else {"start": unix_time(answer.starts), **buckets(answer)}
    )
    lines = pd.DataFrame(table).to_csv(
        index=False, lineterminator="\n", date_format="%Y-%m-%dT%H:%M:%SZ"
    )
    response = HttpResponse(str(lines).encode(), content_type=CONTENT_TYPES["csv"])
    response["Content-Disposition"] = 'inline; filename="sonar-series.csv"'
    return response
