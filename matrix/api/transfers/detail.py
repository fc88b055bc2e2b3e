"""GET /api/v1/transfers/<id>/: all that is kept of one result."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from matrix.answers.connections import ADDRESSES, reported, uploaded
from matrix.api.base import ApiView
from matrix.api.rendering import dumps
from matrix.api.schema.transfers import TRANSFER
from matrix.api.streaming import stream
from matrix.api.transfers import lines
from matrix.api.transfers.list import record
from matrix.http.negotiation import TYPES, asked_format
from matrix.http.permissions import MACHINES, sees
from matrix.query.forms import check_names
from matrix.store import transfers
from sonar.models import Probe, Transfer
from sonar.notation.result_columns import COLUMNS


class TransferView(ApiView):
    @TRANSFER
    def get(self, request: Request, id: UUID) -> HttpResponseBase:  # noqa: A002 - of the route
        check_names(request.query_params, ["format"])
        form = asked_format(request)
        transfer = transfers.by_id(id)
        if transfer is None:
            raise NotFound(why_not(id))
        if form == "csv":
            rows = Transfer.objects.filter(id=id)
            pieces = lines.pieces(rows, form, internal=sees(request, MACHINES))
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
    profile, internal = transfer.profile, sees(request, MACHINES)
    hidden = {} if internal else dict.fromkeys(ADDRESSES)
    fields = record(transfer, names, internal=internal) | {
        "error_is_permanent": transfer.error_is_permanent,
        "verified_note": transfer.verified_note or None,
        "mesh": profile.mesh.name if profile.mesh else None,
        "activity": profile.activity or None,
        "samples": transfer.samples,
        "connections": [asdict(connection) | hidden for connection in reported(transfer)],
        "upload": asdict(upload) if (upload := uploaded(transfer)) else None,
    }
    if internal:
        alone = (column for column in COLUMNS if column.internal and not column.listed)
        values = {column.name: getattr(transfer, column.name) for column in alone}
        fields |= {name: None if value == "" else value for name, value in values.items()}
    return fields
