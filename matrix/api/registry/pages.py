"""Lists of the registry: what is chosen, page by page in JSON and all at once else."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpResponse
from rest_framework.request import Request

from matrix.api.pagination import check_paging, following, page_size
from matrix.api.parameters import check_names, text
from matrix.api.registry.rendering import as_csv, as_json, as_ndjson
from matrix.api.registry.resource import Kind
from matrix.http.negotiation import LIST, asked_format
from matrix.http.permissions import reader_of

Row = TypeVar("Row", bound=Model)
PAGING = ("page_size", "cursor")


def answer(kind: Kind[Row], request: Request) -> HttpResponse:
    params = request.query_params
    check_names(params, (*(one.name for one in kind.parameters), *PAGING, "format"))
    wanted = asked_format(request, LIST)
    check_paging(params, wanted)
    visible = kind.visible_to(reader_of(request))
    rows = kind.rows().filter(visible, kind.chosen(params)).order_by(*kind.order.fields)
    if wanted == "json":
        return page(kind, rows, request)
    records = [kind.record(row, request) for row in rows]
    if wanted == "csv":
        return as_csv(records, kind.columns, kind.plural.replace("_", "-"))
    return as_ndjson(records)


def page(kind: Kind[Row], rows: QuerySet[Row], request: Request) -> HttpResponse:
    size, cursor = page_size(request.query_params), text(request.query_params, "cursor")
    if cursor:
        rows = rows.filter(kind.order.after(cursor))
    found = list(rows[: size + 1])
    records = [kind.record(row, request) for row in found[:size]]
    more = len(found) > size
    next_page = following(request, kind.order.cursor(found[size - 1])) if more else None
    return as_json({kind.plural: records, "next": next_page})
