"""GET /api/v1/transfers/: single results as records, newest first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
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
from matrix.query.filters import LINK_FILTERS, on_links
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.store import registry, transfers
from matrix.store.keyset import Cursor
from matrix.store.transfers import TransferSelection, rate_of
from sonar.models import SizeClass, Transfer
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
    if call.form != "json":
        most = not on_links(call.query.filters)
        pieces = lines.pieces(rows, call.form, most=most)
        return stream(request, pieces, call.form, "sonar-transfers")
    names = {endpoint.id: endpoint.name for endpoint in endpoints}
    listing = transfers.listing(rows, call.page.size, call.page.after)
    size = call.query.size if request.query_params.get("size") else None
    selection = call.selection
    own = {"size": size, "state": selection.states, "error": selection.error or None}
    page = {
        "query": echo(call.query, call.window, **own),
        "transfers": [record(transfer, names) for transfer in listing.results],
        "next": following(request, listing.next, call.window),
    }
    return HttpResponse(dumps(page), content_type=TYPES["json"])


def record(transfer: Transfer, names: dict[int, str]) -> dict[str, Any]:
    """Return a result as a record (sonar.records), with its size class, its rate and more."""
    return {
        "id": str(transfer.id),
        "source": names[transfer.source_id],
        "destination": names[transfer.destination_id],
        "started_at": f"{transfer.started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        "seconds": transfer.seconds,
        "bytes": transfer.bytes,
        "state": transfer.state,
        "error": transfer.error or None,
        "error_where": transfer.error_where or None,
        "mover": transfer.profile.mover,
        "mode": transfer.profile.mode or None,
        "streams": transfer.profile.streams,
        "streams_used": transfer.profile.streams_used,
        "ip_version": transfer.profile.ip_version,
        "origin": transfer.profile.origin,
        "size": transfer.size_class.name,
        "rate_mb_s": rate_of(transfer) if transfer.state == Transfer.State.DONE else None,
        "beside_source": transfer.beside_source,
        "beside_source_max": transfer.beside_source_max,
        "beside_destination": transfer.beside_destination,
        "beside_destination_max": transfer.beside_destination_max,
        "clock": transfer.profile.clock or None,
        "prepare_seconds": transfer.prepare_seconds,
        "queue_seconds": transfer.queue_seconds,
        "first_byte_seconds": transfer.first_byte_seconds,
        "transfer_seconds": transfer.transfer_seconds,
        "checksum_seconds": transfer.checksum_seconds,
        "tcp_buffer_bytes": transfer.profile.tcp_buffer_bytes,
        "tcp_buffer_used_bytes": transfer.tcp_buffer_used_bytes,
        "remote_id": transfer.remote_id or None,
        "scitag": transfer.scitag,
        "purpose": transfer.profile.purpose or None,
        "moved_bytes": transfer.moved_bytes,
        "verified": transfer.verified,
    }
