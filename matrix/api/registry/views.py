"""The calls of a resource, made from its description: views and their routes."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.http import HttpResponse
from django.urls import URLPattern, path
from rest_framework.request import Request

from matrix.api.base import ApiView
from matrix.api.parameters import PAGING, PageRequest, following, wrong
from matrix.api.registry import save
from matrix.api.registry.resource import Resource
from matrix.api.registry.values import Values, values_of
from matrix.api.rendering import as_json, as_rows
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import paging
from matrix.api.schema.schemas import Listed
from matrix.http.negotiation import LIST, asked_format
from matrix.http.permissions import reader_of
from matrix.query import addresses
from matrix.query.forms import check_names
from matrix.store import keyset

Handler = Callable[..., HttpResponse]


class ResourceView(ApiView):
    """A list, or one row of it. What a subclass answers itself is not made anew."""

    resource: ClassVar[Resource[Any]]


def routes(
    resource: Resource[Any], lists: type[ApiView] = ResourceView, rows: type[ApiView] = ResourceView
) -> list[URLPattern]:
    """Return `v1/size-classes/` and `v1/size-classes/<str:name>/`, named `api-size-class(es)`.

    Their views have the methods of ``lists`` and ``rows``, and those that the resource describes.
    """
    place = f"v1/{resource.slug}/"
    row = f"{place}<{'str' if resource.key == 'name' else 'int'}:{resource.key}>/"
    return [
        path(place, view(resource, lists, LIST_CALLS).as_view(), name=resource.route),
        path(row, view(resource, rows, ROW_CALLS).as_view(), name=resource.row_route),
    ]


def view(
    resource: Resource[Any], base: type[ApiView], calls: dict[str, tuple[str, Handler]]
) -> type[ApiView]:
    methods = {
        verb: method(resource, verb, name, handler)
        for verb, (name, handler) in calls.items()
        if name in resource.calls
    }
    needs = {
        verb.upper(): resource.permission(WRITES[name])
        for verb, (name, _) in calls.items()
        if name in WRITES
    }
    attributes = {"resource": resource, "needs": needs, **methods}
    view_class: type[ApiView] = type(base.__name__, (base,), attributes)
    return view_class


def method(resource: Resource[Any], verb: str, name: str, handler: Handler) -> Handler:
    """Make the method of a view that calls a handler, and say for the schema what it does."""

    def answer(view: ApiView, request: Request, **key: object) -> HttpResponse:
        return handler(resource, request, *key.values())

    call = resource.calls[name]
    answer.__name__, answer.__doc__ = verb, call.text
    return described(call.summary, tag="registry", **facts_of(resource, name))(answer)


def facts_of(resource: Resource[Any], name: str) -> dict[str, Any]:
    """Say of a call what is sent and what comes back."""
    if name == "list":
        choosing = [schema for parameter in resource.parameters for schema in parameter.schema]
        return {
            "answer": Listed(resource.field, resource.answer),
            "parameters": [*choosing, *paging()],
            "formats": LIST,
        }
    if name == "show":
        return {"answer": resource.answer, "errors": (404,)}
    if name == "remove":
        return {"answer": None, "status": 204, "errors": (404, 409)}
    is_new = name == "add"
    return {
        "answer": resource.written or resource.answer,
        "body": resource.new if is_new else resource.change,
        "status": 201 if is_new else 200,
        "errors": (409,) if is_new else (404, 409),
    }


def listed(resource: Resource[Any], request: Request) -> HttpResponse:
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
        next_page = following(request, order.write(last) if last else None)
        return as_json({resource.field: records, "next": next_page})
    records = [resource.record(row, request) for row in rows.order_by(*order.fields)]
    return as_rows(records, form, tuple(resource.answer.model_fields), resource.slug)


def add(resource: Resource[Any], request: Request) -> HttpResponse:
    refuse_parameters(request)
    values = values_of(resource.new, request)

    def write() -> HttpResponse:
        row = save.make(resource, values, request)
        response = recorded(resource, row.pk, request, values, status=201)
        address = addresses.address(resource.row_route, getattr(row, resource.key))
        response["Location"] = request.build_absolute_uri(address)
        return response

    return save.in_turn(request, write)


def show(resource: Resource[Any], request: Request, key: object) -> HttpResponse:
    check_names(request.query_params, ("format",))
    asked_format(request, ("json",))
    row = save.visible(resource, resource.rows(), key, reader_of(request))
    return as_json(resource.record(row, request))


def change(resource: Resource[Any], request: Request, key: object) -> HttpResponse:
    save.allow(resource, "change", key, request)
    refuse_parameters(request)
    values = values_of(resource.change, request)

    def write() -> HttpResponse:
        row = save.change(resource, key, values, request)
        return recorded(resource, row.pk, request, values)

    return save.in_turn(request, write)


def remove(resource: Resource[Any], request: Request, key: object) -> HttpResponse:
    save.allow(resource, "delete", key, request)
    refuse_parameters(request)
    save.in_turn(request, lambda: save.remove(resource, key, request))
    return HttpResponse(status=204)


def refuse_parameters(request: Request) -> None:
    """Raise BadQueryError for a parameter: what is written stands in the body."""
    for name in request.query_params:
        raise wrong(name, f"There is no parameter “{name}”: send fields in the body.")


def recorded(
    resource: Resource[Any], pk: object, request: Request, values: Values, status: int = 200
) -> HttpResponse:
    """Answer with a row as it was written, and with what there is to say about this write.

    Within its transaction: after that the row may be gone.
    """
    row = resource.rows().get(pk=pk)
    return as_json(resource.record(row, request) | resource.remarks(row, values), status)


# What a permission calls them.
WRITES = {"add": "add", "change": "change", "remove": "delete"}
# By method: what a resource calls it, and what answers it.
LIST_CALLS: dict[str, tuple[str, Handler]] = {"get": ("list", listed), "post": ("add", add)}
ROW_CALLS: dict[str, tuple[str, Handler]] = {
    "get": ("show", show),
    "patch": ("change", change),
    "delete": ("remove", remove),
}
