"""GET /api/v1/transfers/: single results as records, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from django.http import HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.api.cell_text import dumps
from matrix.api.pagination import TRANSFERS, PageRequest, following
from matrix.api.parameters import WINDOW_AND_METHOD, check_names, some_of, text, wrong
from matrix.api.streaming import stream
from matrix.api.transfers import lines
from matrix.http.negotiation import LIST, TYPES, asked_format
from matrix.query.filters import LINK_FILTERS, by_parameter
from matrix.query.matrix_query import MatrixQuery
from matrix.store import registry, transfers
from matrix.store.transfers import Cursor, Wanted, rate_of
from sonar.models import SizeClass, Transfer
from sonar.windows import Window, format_time

LONGEST_SEARCH = 200
OWN = ("state", "error", "cursor", "page_size", "format")
ALLOWED = (*WINDOW_AND_METHOD, *LINK_FILTERS, *OWN)


@dataclass(frozen=True)
class TransfersRequest:
    """What a call asks for; its pages are those of JSON."""

    query: MatrixQuery
    window: Window
    wanted: Wanted
    form: str
    page: PageRequest[Cursor]

    @classmethod
    def read(cls, request: Request, now: datetime) -> Self:
        params = request.query_params
        check_names(params, ALLOWED)
        form = asked_format(request, LIST)
        query = MatrixQuery.from_params(params, also=OWN)
        window = query.window_at(now)
        states = some_of(params, "state", Transfer.State.values)
        size = size_class(query.size) if params.get("size") else None
        chosen = {"states": states} if states else {}
        wanted = Wanted(window, size, query.filters, error=searched(params), **chosen)
        page = PageRequest.read(request, form, Cursor.parse, TRANSFERS)
        return cls(query, window, wanted, form, page)


def size_class(name: str) -> int:
    return SizeClass.objects.values_list("id", flat=True).get(name=name)


def searched(params: QueryDict) -> str:
    given = text(params, "error")
    if len(given) > LONGEST_SEARCH or not given.isprintable():
        sentence = f"error must be at most {LONGEST_SEARCH} printable characters of an error."
        raise wrong("error", sentence)
    return given


def answer(request: Request) -> HttpResponseBase:
    """Answer GET transfers/: a page in JSON, or all that matches in CSV and NDJSON."""
    asked = TransfersRequest.read(request, timezone.now())
    places = registry.read_places(registry.read_versions())
    rows = asked.wanted.rows(places)
    if asked.form != "json":
        most = not any(one.parameter in LINK_FILTERS for one in asked.query.filters)
        pieces = lines.pieces(rows, asked.form, most=most)
        return stream(request, pieces, asked.form, "sonar-transfers")
    names = {place.id: place.name for place in places}
    listing = transfers.listing(rows, asked.page.size, asked.page.after)
    return as_json(request, asked, listing, names)


def as_json(
    request: Request,
    asked: TransfersRequest,
    listing: transfers.TransferList,
    names: dict[int, str],
) -> HttpResponse:
    found = {
        "query": echo(asked, request.query_params),
        "transfers": [record(one, names) for one in listing.results],
        "next": next_page(request, asked, listing.next) if listing.next else None,
    }
    return HttpResponse(dumps(found), content_type=TYPES["json"])


def echo(asked: TransfersRequest, params: QueryDict) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    return {
        "size": asked.query.size if params.get("size") else None,
        "window": asked.query.window or None,
        "start": format_time(asked.window.start),
        "end": format_time(asked.window.end),
        "state": asked.wanted.states,
        "error": asked.wanted.error or None,
        **by_parameter(asked.query.filters),
    }


def next_page(request: Request, asked: TransfersRequest, after: Cursor) -> str:
    """Return the address of the next page, in the same window: a preset would move on."""
    start, end = map(format_time, (asked.window.start, asked.window.end))
    return following(request, str(after), **{"window": None, "from": start, "to": end})


def record(one: Transfer, names: dict[int, str]) -> dict[str, Any]:
    """Return a result as a record (sonar.records), with its size class, its rate and more."""
    return {
        "id": str(one.id),
        "source": names[one.source_id],
        "destination": names[one.destination_id],
        "started_at": exact(one.started_at),
        "seconds": one.seconds,
        "bytes": one.bytes,
        "state": one.state,
        "error": one.error or None,
        "error_where": one.error_where or None,
        "mover": one.profile.mover,
        "mode": one.profile.mode or None,
        "streams": one.profile.streams,
        "streams_used": one.profile.streams_used,
        "ip_version": one.profile.ip_version,
        "origin": one.profile.origin,
        "size": one.size_class.name,
        "rate_mb_s": rate_of(one) if one.state == Transfer.State.DONE else None,
        "beside_source": one.beside_source,
        "beside_source_max": one.beside_source_max,
        "beside_destination": one.beside_destination,
        "beside_destination_max": one.beside_destination_max,
        "moved_bytes": one.moved_bytes,
        "verified": one.verified,
    }


def exact(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
