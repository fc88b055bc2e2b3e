"""GET /api/v1/transfers/<id>/: all that is kept of one result."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from matrix.answers.connections import MACHINES, reported, uploaded
from matrix.api.base import ApiView
from matrix.api.rendering import dumps
from matrix.api.schema.transfers import TRANSFER
from matrix.api.streaming import stream
from matrix.api.transfers import lines
from matrix.api.transfers.list import record
from matrix.http.negotiation import TYPES, asked_format
from matrix.http.permissions import sees
from matrix.query.forms import check_names
from matrix.store import transfers
from sonar.models import Probe, Transfer


class TransferView(ApiView):
    @TRANSFER
    def get(self, request: Request, id: UUID) -> HttpResponseBase:  # noqa: A002 - of the route
        check_names(request.query_params, ["format"])
        form = asked_format(request)
        transfer = transfers.by_id(id)
        if transfer is None:
            raise NotFound(why_not(id))
        if form == "csv":
            pieces = lines.pieces(Transfer.objects.filter(id=id), form)
            return stream(request, pieces, form, f"sonar-transfer-{id}")
        return HttpResponse(dumps(shown(transfer, request)), content_type=TYPES["json"])


def why_not(transfer_id: UUID) -> str:
    if probe := Probe.objects.filter(id=transfer_id).first():
        return f"The test {transfer_id} is {probe.state}: it becomes a transfer when it ends."
    days = settings.SONAR_KEEP_DAYS
    return f"No transfer has the id {transfer_id}: results are kept for {days} days."


def shown(transfer: Transfer, request: Request) -> dict[str, Any]:
    """Return what the reader may see of a result: names of machines are internal."""
    names = {
        transfer.source_id: transfer.source.name,
        transfer.destination_id: transfer.destination.name,
    }
    profile, sees_machines = transfer.profile, sees(request, "sonar.view_transfer")
    hidden = {} if sees_machines else dict.fromkeys(MACHINES)
    fields = record(transfer, names) | {
        "error_is_permanent": transfer.error_is_permanent,
        "verified_note": transfer.verified_note or None,
        "mesh": profile.mesh.name if profile.mesh else None,
        "activity": profile.activity or None,
        "samples": transfer.samples,
        "connections": [asdict(connection) | hidden for connection in reported(transfer)],
        "upload": asdict(upload) if (upload := uploaded(transfer)) else None,
    }
    if sees_machines:
        fields["worker"] = transfer.worker or None
        fields["remote_connections"] = transfer.remote_connections
        fields["log_url"] = transfer.log_url or None
    return fields
