"""GET /api/v1/transfers/<id>/: all that is kept of one result."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from matrix.api.base import ApiView
from matrix.api.cell_text import dumps
from matrix.api.parameters import check_names
from matrix.api.schema.transfers import TRANSFER
from matrix.api.streaming import stream
from matrix.api.transfers import lines
from matrix.api.transfers.list import record
from matrix.http.negotiation import TYPES, asked_format
from matrix.http.permissions import sees
from matrix.store import transfers
from sonar.models import Probe, Transfer


class TransferView(ApiView):
    @TRANSFER
    def get(self, request: Request, id: UUID) -> HttpResponseBase:  # noqa: A002 - of the route
        check_names(request.query_params, ["format"])
        form = asked_format(request)
        found = transfers.known(id)
        if found is None:
            raise NotFound(why_not(id))
        if form == "csv":
            pieces = lines.pieces(Transfer.objects.filter(id=id), form)
            return stream(request, pieces, form, f"sonar-transfer-{id}")
        return HttpResponse(dumps(shown(found, request)), content_type=TYPES["json"])


def why_not(sought: UUID) -> str:
    if probe := Probe.objects.filter(id=sought).first():
        return f"The test {sought} is {probe.state}: it becomes a transfer when it ends."
    return f"No transfer has the id {sought}: results are kept for {settings.SONAR_KEEP_DAYS} days."


def shown(one: Transfer, request: Request) -> dict[str, Any]:
    """Return what the reader may see of a result: names of machines are internal."""
    return whole(one) | (internal(one) if sees(request, "sonar.view_transfer") else {})


def whole(one: Transfer) -> dict[str, Any]:
    """Return all that is kept of a result and that everybody may see who may read."""
    names = {one.source_id: one.source.name, one.destination_id: one.destination.name}
    return record(one, names) | {
        "error_is_permanent": one.error_is_permanent,
        "prepare_seconds": one.prepare_seconds,
        "first_byte_seconds": one.first_byte_seconds,
        "verified_note": one.verified_note or None,
        "tcp_buffer_bytes": one.profile.tcp_buffer_bytes,
        "mesh": one.profile.mesh.name if one.profile.mesh else None,
        "activity": one.profile.activity or None,
        "samples": one.samples,
    }


def internal(one: Transfer) -> dict[str, Any]:
    return {"worker": one.worker or None, "remote_connections": one.remote_connections}
