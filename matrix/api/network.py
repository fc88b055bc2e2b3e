"""GET /api/v1/network/: tests of the network alone, newest first."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.link.network import loss_of, rate_of
from matrix.api.base import ApiView
from matrix.api.pagination import PAGING, TRANSFERS, PageRequest, following
from matrix.api.parameters import some_of
from matrix.api.registry.rendering import as_csv, as_json, as_ndjson
from matrix.api.schema.network import COLUMNS, NETWORK
from matrix.http.negotiation import LIST, asked_format
from matrix.query.filters import LINK_FILTERS, by_parameter
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.store import network, registry
from matrix.store.keyset import Cursor
from matrix.store.network import NetworkSelection
from sonar.models import NetworkResult, Transfer
from sonar.notation.windows import format_time

OWN = ("state", *PAGING, "format")
ALLOWED = ("window", "from", "to", *LINK_FILTERS, *OWN)
# All at once in CSV and NDJSON: more than a year of a test a quarter of an hour on three links.
MOST_ROWS = 100_000


class NetworkView(ApiView):
    @NETWORK
    def get(self, request: Request) -> HttpResponseBase:
        """They are no transfers: no rate of a matrix, link or site has them in it."""
        params = request.query_params
        check_names(params, ALLOWED)
        form = asked_format(request, LIST)
        query = MatrixQuery.from_params(params, also=OWN)
        window = query.window_at(timezone.now())
        states = some_of(params, "state", Transfer.State.values)
        page = PageRequest.read(request, form, Cursor.parse, TRANSFERS)
        endpoints = registry.read_places(registry.read_versions())
        rows = NetworkSelection(window, query.filters, states).rows(endpoints)
        size = page.size if form == "json" else MOST_ROWS
        listed, further = network.listing(rows, size, page.after)
        records = [record(result) for result in listed]
        if form == "csv":
            return as_csv([in_columns(each) for each in records], COLUMNS, "network")
        if form == "ndjson":
            return as_ndjson(records)
        bounds = {"window": None, "from": format_time(window.start), "to": format_time(window.end)}
        echo = {
            "window": query.window or None,
            "start": bounds["from"],
            "end": bounds["to"],
            "state": states or Transfer.State.values,
            **by_parameter(query.filters),
        }
        next_page = following(request, str(further), **bounds) if further else None
        return as_json({"query": echo, "results": records, "next": next_page})


def record(result: NetworkResult) -> dict[str, Any]:
    """Return what everybody may see of a result; null where nobody told."""
    return {
        "id": str(result.id),
        "source": result.source.name,
        "destination": result.destination.name,
        "started_at": f"{result.started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        "seconds": result.seconds,
        "bytes": result.bytes,
        "state": result.state,
        "error": result.error or None,
        "error_where": result.error_where or None,
        "rate_mb_s": rate_of(result),
        "rtt_min_ms": result.rtt_min_ms,
        "rtt_mean_ms": result.rtt_mean_ms,
        "rtt_max_ms": result.rtt_max_ms,
        "retransmits": result.retransmits,
        "loss": loss_of(result),
        "sent_bytes": result.sent_bytes,
        "max_cwnd_bytes": result.max_cwnd_bytes,
        "max_receive_window_bytes": result.max_receive_window_bytes,
        "mss_bytes": result.mss_bytes,
        "congestion_control": result.congestion_control or None,
        "mover": result.mover,
        "mode": result.mode,
        "streams": result.streams,
        "tcp_buffer_bytes": result.tcp_buffer_bytes,
        "ip_version": result.ip_version,
        "size": result.size_class.name if result.size_class else None,
        "mesh": result.mesh.name if result.mesh else None,
        "samples": result.samples,
    }


def in_columns(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in COLUMNS}
