"""GET /api/v1/links/: a row for each link, searched, narrowed and ordered as on the table page."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from rest_framework.request import Request
from rest_framework.views import APIView

from matrix import links, listing
from matrix.api import link_rows
from matrix.api.cell_text import dumps
from matrix.api.formats import ErrorsInJson, asked_format
from matrix.forms import BadQueryError
from matrix.links import LinkTable
from matrix.listing import Listing
from matrix.query import MatrixQuery
from matrix.statistics import Integers
from sonar.models import SizeClass
from sonar.windows import format_time

MOST_ROWS = 10_000
PAGE_SIZE = 1_000
OWN = ("format", "cursor", "page_size")


@dataclass(frozen=True)
class Cursor:
    """Where an answer goes on: behind a number of rows of the table as of a moment.

    All pages are of the window that the first was of, which a preset would move with the clock.
    """

    moment: datetime
    rows: int = 0

    @classmethod
    def read(cls, text: str, now: datetime) -> Self:
        if not text:
            return cls(now)
        match = re.fullmatch(r"([0-9]{1,10})-([0-9]{1,9})", text)
        if match is None or int(match[1]) > now.timestamp():
            raise wrong("cursor", text, "one that an answer had in its `next`")
        return cls(datetime.fromtimestamp(int(match[1]), UTC), int(match[2]))

    def after(self, rows: int) -> str:
        return f"{int(self.moment.timestamp())}-{self.rows + rows}"


@dataclass(frozen=True)
class Asked:
    """What a call asks for."""

    query: MatrixQuery
    chosen: Listing
    cursor: Cursor
    page_size: int
    format: str

    @classmethod
    def read(cls, request: Request, now: datetime) -> Self:
        params = request.query_params
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        query, chosen = listing.read(params, sizes, also=OWN)
        wanted = asked_format(request)
        for name in ("page", "per_page") + OWN[1:] * (wanted == "csv"):
            if name in params:
                raise BadQueryError({name: [NOT_HERE[name]]})
        cursor = Cursor.read(params.get("cursor", ""), now)
        return cls(query, chosen, cursor, page_size(params.get("page_size", "")), wanted)


NOT_HERE = {
    "page": "page is for the page: an answer in JSON goes on at its `next`.",
    "per_page": "per_page is for the page: use page_size.",
    "cursor": "cursor is for JSON: CSV has all rows at once.",
    "page_size": "page_size is for JSON: CSV has all rows at once.",
}


def page_size(text: str) -> int:
    if not text:
        return PAGE_SIZE
    if not re.fullmatch(r"0*[1-9][0-9]{0,4}", text) or int(text) > MOST_ROWS:
        raise wrong("page_size", text, f"a whole number from 1 to {MOST_ROWS}")
    return int(text)


def wrong(parameter: str, text: str, allowed: str) -> BadQueryError:
    return BadQueryError({parameter: [f"{parameter} “{text}” is not {allowed}."]})


class LinksView(APIView):
    content_negotiation_class = ErrorsInJson

    def get(self, request: Request) -> HttpResponseBase:
        asked = Asked.read(request, timezone.now())
        moment = asked.cursor.moment
        version = links.version(asked.query, moment)
        etag = quote_etag(f"{version}-{digest(asked)}")
        response: HttpResponseBase | None = get_conditional_response(request, etag=etag)
        if response is None:
            table = links.build(asked.query, moment, version)
            rows = asked.chosen.rows(table, moment)
            if asked.format == "csv":
                response = as_csv(table, rows)
            else:
                response = as_json(request, asked, table, rows)
        response["ETag"] = etag
        response["Cache-Control"] = "no-cache"
        response["Vary"] = "Accept, Cookie"
        return response


def digest(asked: Asked) -> str:
    told = f"{asked.query} {asked.chosen} {asked.cursor.rows} {asked.page_size} {asked.format}"
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def as_json(request: Request, asked: Asked, table: LinkTable, rows: Integers) -> HttpResponse:
    cursor = asked.cursor
    page = rows[cursor.rows : cursor.rows + asked.page_size]
    answer = {
        "query": echo(asked, table),
        "total": len(table),
        "found": len(rows),
        "links": link_rows.records(table.taken(page)),
        "next": None,
    }
    if cursor.rows + len(page) < len(rows):
        answer["next"] = following(request, cursor.after(len(page)))
    return HttpResponse(dumps(answer), content_type="application/json")


def echo(asked: Asked, table: LinkTable) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    filters: dict[str, list[str]] = {}
    for one in asked.query.filters:
        filters.setdefault(one.parameter, []).append(one.text)
    return {
        "size": asked.query.size,
        "window": asked.query.window or None,
        "start": format_time(table.window.start),
        "end": format_time(table.window.end),
        "ordering": asked.chosen.ordering,
        "search": asked.chosen.search,
        **{one.name: one.text for one in asked.chosen.conditions},
        **filters,
    }


def following(request: Request, cursor: str) -> str:
    params = request.query_params.copy()
    params["cursor"] = cursor
    return request.build_absolute_uri(f"{request.path}?{params.urlencode(safe=':!')}")


def as_csv(table: LinkTable, rows: Integers) -> StreamingHttpResponse:
    response = StreamingHttpResponse(
        link_rows.lines(table, rows), content_type="text/csv; charset=utf-8"
    )
    response["Content-Disposition"] = 'inline; filename="sonar-links.csv"'
    return response
