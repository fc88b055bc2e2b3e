"""The calls for a list of rows and for one row, whatever their kind."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponse
from django.urls import reverse
from rest_framework.request import Request

from matrix.api.base import ApiView
from matrix.api.parameters import check_names, wrong
from matrix.api.registry import pages, save
from matrix.api.registry.deserialise import Values, values_of
from matrix.api.registry.rendering import as_json
from matrix.api.registry.resource import Kind
from matrix.http.negotiation import asked_format
from matrix.http.permissions import allow_somewhere, reader_of


class ListView(ApiView):
    """A list: read, and added to."""

    kind: ClassVar[Kind[Any]]
    # The name of the route of one row.
    one: ClassVar[str]

    def listed(self, request: Request) -> HttpResponse:
        return pages.answer(self.kind, request)

    def made(self, request: Request) -> HttpResponse:
        kind = self.kind
        allow_somewhere(request, kind.permission("add"))
        refuse_parameters(request)
        values = values_of(kind.new, request)
        row = save.in_turn(request, lambda: save.make(kind, values, request))
        response = recorded(kind, row.pk, request, values, status=201)
        key = getattr(row, kind.key)
        response["Location"] = request.build_absolute_uri(reverse(self.one, args=[key]))
        return response


class RowView(ApiView):
    """One row: read, changed and, where nothing refers to it, removed."""

    kind: ClassVar[Kind[Any]]

    def shown(self, request: Request, key: object) -> HttpResponse:
        check_names(request.query_params, ("format",))
        asked_format(request, ("json",))
        row = save.known(self.kind, self.kind.rows(), key, reader_of(request))
        return as_json(self.kind.record(row, request))

    def changed(self, request: Request, key: object) -> HttpResponse:
        kind = self.kind
        save.allow(kind, "change", key, request)
        refuse_parameters(request)
        values = values_of(kind.change, request)
        row = save.in_turn(request, lambda: save.change(kind, key, values, request))
        return recorded(kind, row.pk, request, values)

    def removed(self, request: Request, key: object) -> HttpResponse:
        save.allow(self.kind, "delete", key, request)
        refuse_parameters(request)
        save.in_turn(request, lambda: save.remove(self.kind, key, request))
        return HttpResponse(status=204)


def refuse_parameters(request: Request) -> None:
    """Raise BadQueryError for a parameter: what is written stands in the body."""
    for name in request.query_params:
        raise wrong(name, f"There is no parameter “{name}”: send fields in the body.")


def recorded(
    kind: Kind[Any], pk: object, request: Request, values: Values, status: int = 200
) -> HttpResponse:
    """Answer with a row as it is now kept, and with what there is to say about this write."""
    row = kind.rows().get(pk=pk)
    return as_json(kind.record(row, request) | kind.told(row, values), status)
