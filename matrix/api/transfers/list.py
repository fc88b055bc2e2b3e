"""GET /api/v1/transfers/: single results as records, newest first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from typing import Any, Self

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.api.parameters import (
    OF_TRANSFERS,
    WINDOW_AND_METHOD,
    PageRequest,
    echo,
    following,
    some_of,
    text_of,
    wrong,
)
from matrix.api.rendering import dumps
from matrix.api.streaming import stream
from matrix.api.transfers import lines
from matrix.http.negotiation import LIST, TYPES, asked_format
from matrix.http.permissions import MACHINES, sees
from matrix.query.filters import LINK_FILTERS, on_links
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.store import registry, transfers
from matrix.store.keyset import Cursor
from matrix.store.transfers import TransferSelection, rate_of
from sonar.models import SizeClass, Transfer
from sonar.notation.result_columns import Home, listed
from sonar.notation.windows import Window

LONGEST_SEARCH = 200
OWN = ("state", "error", "cursor", "page_size", "format")
ALLOWED = (*WINDOW_AND_METHOD, *LINK_FILTERS, *OWN)


@dataclass(frozen=True)
class TransfersRequest:
    """What a call asks for; its pages are those of JSON."""

    query: MatrixQuery
    window: Window
    selection: TransferSelection
    form: str
    page: PageRequest[Cursor]

    @classmethod
    def read(cls, request: Request, now: datetime) -> Self:
        params = request.query_params
        check_names(params, ALLOWED)
        form = asked_format(request, LIST)
        query = MatrixQuery.from_params(params, also=OWN)
        window = query.window_at(now)
        size_class = SizeClass.objects.get(name=query.size).id if params.get("size") else None
        error = text_of(params, "error")
        if len(error) > LONGEST_SEARCH or not error.isprintable():
            sentence = f"error must be at most {LONGEST_SEARCH} printable characters."
            raise wrong("error", sentence)
        selection = TransferSelection(window, size_class, query.filters, error=error)
        if states := some_of(params, "state", Transfer.State.values):
            selection = replace(selection, states=states)
        page = PageRequest.read(request, form, Cursor.parse, OF_TRANSFERS)
        return cls(query, window, selection, form, page)


def answer(request: Request) -> HttpResponseBase:
    """Answer GET transfers/: a page in JSON, or all that matches in CSV and NDJSON."""
    call = TransfersRequest.read(request, timezone.now())
    endpoints = registry.read_places(registry.read_versions())
    rows = call.selection.rows(endpoints)
    internal = sees(request, MACHINES)
    if call.form != "json":
        most = not on_links(call.query.filters)
        pieces = lines.pieces(rows, call.form, internal=internal, most=most)
        return stream(request, pieces, call.form, "sonar-transfers")
    names = {endpoint.id: endpoint.name for endpoint in endpoints}
    listing = transfers.listing(rows, call.page.size, call.page.after)
    size = call.query.size if request.query_params.get("size") else None
    selection = call.selection
    own = {"size": size, "state": selection.states, "error": selection.error or None}
    page = {
        "query": echo(call.query, call.window, **own),
        "transfers": [record(row, names, internal=internal) for row in listing.results],
        "next": following(request, listing.next, call.window),
    }
    return HttpResponse(dumps(page), content_type=TYPES["json"])


# Where a row of Transfer has what it does not have under the name of the column.
PATHS = {
    "source": "source_id",
    "destination": "destination_id",
    "size": "size_class.name",
    "rate_mb_s": "state",
}


@cache
def reading(*, internal: bool) -> tuple[tuple[str, ...], tuple[str, ...], attrgetter[Any]]:
    """Return the names of columns, those of them that are texts, and what reads their values."""
    columns = listed(internal=internal)
    of_profiles = {
        column.name: f"profile.{column.name}" for column in columns if column.home is Home.PROFILE
    }
    paths = of_profiles | PATHS
    names = tuple(column.name for column in columns)
    texts = tuple(column.name for column in columns if column.empty == "")
    return names, texts, attrgetter(*(paths.get(name, name) for name in names))


def record(transfer: Transfer, names: dict[int, str], *, internal: bool) -> dict[str, Any]:
    """Return a result as a record (sonar.records), with its size class, its rate and more.

    Columns that name machines are there if ``internal``.
    """
    columns, texts, values_of = reading(internal=internal)
    fields: dict[str, Any] = dict(zip(columns, values_of(transfer), strict=True))
    for name in texts:
        if fields[name] == "":
            fields[name] = None
    fields["id"] = str(transfer.id)
    fields["source"] = names[transfer.source_id]
    fields["destination"] = names[transfer.destination_id]
    fields["started_at"] = f"{transfer.started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    fields["rate_mb_s"] = rate_of(transfer) if transfer.state == Transfer.State.DONE else None
    return fields
