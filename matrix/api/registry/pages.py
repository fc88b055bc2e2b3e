"""Lists of the registry: what is chosen, page by page in JSON and all at once else."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model
from django.http import HttpResponse
from rest_framework.request import Request

from matrix.api.pagination import PAGING, PageRequest, following
from matrix.api.registry.rendering import as_csv, as_json, as_ndjson
from matrix.api.registry.resource import Resource
from matrix.http.negotiation import LIST, asked_format
from matrix.http.permissions import reader_of
from matrix.query.forms import check_names
from matrix.store import keyset

Row = TypeVar("Row", bound=Model)


def answer(resource: Resource[Row], request: Request) -> HttpResponse:
    params, order = request.query_params, resource.order
    names = [schema.name for parameter in resource.parameters for schema in parameter.schema]
    check_names(params, (*names, *PAGING, "format"))
    form = asked_format(request, LIST)
    page = PageRequest.read(request, form, order.read)
    rows = resource.rows().filter(resource.visible_to(reader_of(request)))
    for parameter in resource.parameters:
        rows = rows.filter(parameter.read(params))
    if form == "json":
        page_rows, last = keyset.page(rows, order.fields, page.size, page.after)
        records = [resource.record(row, request) for row in page_rows]
        next_page = following(request, order.write(last)) if last else None
        return as_json({resource.field: records, "next": next_page})
    records = [resource.record(row, request) for row in rows.order_by(*order.fields)]
    if form == "csv":
        return as_csv(records, tuple(resource.answer.model_fields), resource.slug)
    return as_ndjson(records)
