"""GET /api/v1/links/: a row for each link, searched, narrowed and ordered as on the table page."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers import link_table, table_query
from matrix.answers.link_table import LinkTable
from matrix.answers.table_query import TableQuery
from matrix.api import link_rows, pagination
from matrix.api.base import ApiView, unless_known
from matrix.api.cell_text import dumps
from matrix.api.pagination import PageRequest, TableCursor, following
from matrix.api.schema.links import LINKS
from matrix.api.streaming import stream
from matrix.http.compression import respond_once
from matrix.http.negotiation import LIST, TYPES, asked_format
from matrix.http.questions import read_once
from matrix.query.filters import by_parameter
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Integers
from matrix.store.data_version import DataVersion
from sonar.models import SizeClass
from sonar.windows import format_time

OWN = ("format", "cursor", "page_size")


@dataclass(frozen=True)
class LinksRequest:
    """What a call asks for; without a cursor it begins with the first row as of now."""

    query: MatrixQuery
    chosen: TableQuery
    cursor: TableCursor | None
    page_size: int
    format: str

    @classmethod
    def read(cls, request: Request, now: datetime) -> Self:
        params = request.query_params
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        query, chosen = table_query.read(params, sizes, also=OWN)
        wanted = asked_format(request, LIST)
        for name, sentence in NOT_HERE.items():
            if params.get(name):
                raise BadQueryError({name: [sentence]})
        page = PageRequest.read(request, wanted, TableCursor.parse, pagination.LINKS)
        return cls(query, chosen, page.after, page.size, wanted)

    def begin(self, now: datetime) -> TableCursor:
        return self.cursor or TableCursor(now)


NOT_HERE = {
    "page": "page is for the page: an answer in JSON goes on at its `next`.",
    "per_page": "per_page is for the page: use page_size.",
}


class LinksView(ApiView):
    @LINKS
    def get(self, request: Request) -> HttpResponseBase:
        now = timezone.now()
        asked, version = read_once(
            request,
            lambda: LinksRequest.read(request, now),
            lambda asked: link_table.version(asked.query, asked.begin(now).moment),
        )
        cursor = asked.begin(now)

        def make() -> HttpResponseBase:
            if asked.format == "json":
                # The address of the next page names the host that was asked.
                key = ("links", version, asked, request.build_absolute_uri())
                return respond_once(
                    request, key, TYPES["json"], lambda: as_json(request, asked, cursor, version)
                )
            table, rows = chosen_rows(asked, cursor, version)
            pieces = link_rows.pieces(table, rows, asked.format)
            return stream(request, pieces, asked.format, "sonar-links")

        digest = hashlib.sha256(repr(asked).encode()).hexdigest()[:12]
        return unless_known(request, version.shown(digest), make)


def chosen_rows(
    asked: LinksRequest, cursor: TableCursor, version: DataVersion
) -> tuple[LinkTable, Integers]:
    """Return the table, with the quantiles that it takes, and the rows that are asked for."""
    quantiles = [one.name for one in asked.chosen.columns]
    table = link_table.build(asked.query, cursor.moment, version, quantiles)
    return table, asked.chosen.rows(table, cursor.moment)


def as_json(
    request: Request, asked: LinksRequest, cursor: TableCursor, version: DataVersion
) -> bytes:
    table, rows = chosen_rows(asked, cursor, version)
    page = rows[cursor.rows : cursor.rows + asked.page_size]
    found = {
        "query": echo(asked, table),
        "total": len(table),
        "found": len(rows),
        "links": link_rows.records(table.taken(page)),
        "next": None,
    }
    if cursor.rows + len(page) < len(rows):
        found["next"] = following(request, cursor.after(len(page)))
    return dumps(found)


def echo(asked: LinksRequest, table: LinkTable) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    return {
        "size": asked.query.size,
        "window": asked.query.window or None,
        "start": format_time(table.window.start),
        "end": format_time(table.window.end),
        "ordering": asked.chosen.ordering,
        "search": asked.chosen.search,
        **({"quantiles": asked.chosen.quantiles} if asked.chosen.quantiles else {}),
        **{one.name: one.text for one in asked.chosen.conditions},
        **by_parameter(asked.query.filters),
    }
