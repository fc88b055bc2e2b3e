"""GET /api/v1/links/: a row for each link, searched, narrowed and ordered as on the table page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import numpy as np
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers import link_table, table_query
from matrix.answers.comparison.changes import KINDS
from matrix.answers.grid import CHANGES
from matrix.answers.link_table import CHANGE, LinkTable
from matrix.answers.table_query import TableQuery
from matrix.api import link_documents, link_rows, pagination
from matrix.api.base import ApiView, unless_known
from matrix.api.cell_text import dumps
from matrix.api.documents import DOCUMENTS
from matrix.api.pagination import PageRequest, TableCursor, following
from matrix.api.schema.links import FORMATS, LINKS
from matrix.api.streaming import stream
from matrix.http.compression import respond_once
from matrix.http.negotiation import TYPES, asked_format
from matrix.http.questions import read_once
from matrix.query.filters import by_parameter
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Integers
from matrix.store.data_version import DataVersion
from sonar.models import SizeClass
from sonar.notation.windows import format_time

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
        form = asked_format(request, FORMATS)
        for name, sentence in NOT_HERE.items():
            if params.get(name):
                raise BadQueryError({name: [sentence]})
        page = PageRequest.read(request, form, TableCursor.parse, pagination.LINKS)
        return cls(query, chosen, page.after, page.size, form)

    def begin(self, now: datetime) -> TableCursor:
        return self.cursor or TableCursor(now)


NOT_HERE = {
    "page": "page is only for the page: in JSON, follow `next`.",
    "per_page": "per_page is only for the page: use page_size.",
    "constant": "constant is only for the page: the API always has all columns.",
}


class LinksView(ApiView, one_snapshot=False):
    @LINKS
    def get(self, request: Request) -> HttpResponseBase:
        now = timezone.now()
        call, version = read_once(
            request,
            lambda: LinksRequest.read(request, now),
            lambda call: link_table.version(call.query, call.begin(now).moment),
        )
        cursor = call.begin(now)

        def make() -> HttpResponseBase:
            if call.format == "json":
                # The address of the next page names the host that was asked.
                key = ("links", version, call, request.build_absolute_uri())
                return respond_once(
                    request, key, TYPES["json"], lambda: as_json(request, call, cursor, version)
                )
            table, rows = chosen_rows(call, cursor, version)
            if call.format in DOCUMENTS:
                pieces = link_documents.pieces(table, rows, call.query, call.format)
            else:
                pieces = link_rows.pieces(table, rows, call.format)
            return stream(request, pieces, call.format, "sonar-links")

        # The table is the same for many calls, their rows are not.
        return unless_known(request, version.of_question((version.question, call)), make)


def chosen_rows(
    call: LinksRequest, cursor: TableCursor, version: DataVersion
) -> tuple[LinkTable, Integers]:
    """Return the table, with the quantiles that it takes, and the rows that are asked for."""
    quantiles = [quantile.name for quantile in call.chosen.columns]
    table = link_table.build(call.query, cursor.moment, version, quantiles, lines=call.chosen.lines)
    return table, call.chosen.rows(table, cursor.moment)


def as_json(
    request: Request, call: LinksRequest, cursor: TableCursor, version: DataVersion
) -> bytes:
    table, rows = chosen_rows(call, cursor, version)
    page = rows[cursor.rows : cursor.rows + call.page_size]
    answer: dict[str, Any] = {
        "query": echo(call, table),
        **({"comparison": compared(call, table, cursor.moment)} if call.query.compare else {}),
        "total": len(table),
        "found": len(rows),
        "links": link_rows.records(table.taken(page)),
        "next": None,
    }
    if cursor.rows + len(page) < len(rows):
        answer["next"] = following(request, cursor.after(len(page)))
    return dumps(answer)


def echo(call: LinksRequest, table: LinkTable) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    return {
        "size": call.query.size,
        "window": call.query.window or None,
        "start": format_time(table.window.start),
        "end": format_time(table.window.end),
        "ordering": call.chosen.ordering,
        "search": call.chosen.search,
        **({"quantiles": call.chosen.quantiles} if call.chosen.quantiles else {}),
        **({"overhead": "1"} if call.chosen.overhead else {}),
        **{condition.name: condition.text for condition in call.chosen.conditions},
        **by_parameter(call.query.filters),
        **(call.query.compare.to_params() if call.query.compare else {}),
    }


def compared(call: LinksRequest, table: LinkTable, now: datetime) -> dict[str, Any]:
    """Say what the links are compared with, and how many of them differ beyond chance."""
    other = call.query.other(now)
    window, size = other.window_at(now), call.query.size
    changes = table.column(f"{size}.{CHANGE}")
    return {
        "description": call.query.other_words(),
        "size": other.size,
        "start": format_time(window.start),
        "end": format_time(window.end),
        "filters": by_parameter(other.filters),
        "compared": int(np.count_nonzero(~np.isnan(table.column(f"{size}.compared_ratio")))),
        **{kind: int(np.count_nonzero(changes == KINDS.index(kind))) for kind in CHANGES},
    }
