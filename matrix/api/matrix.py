"""GET /api/v1/matrix/: the whole matrix in one call."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers import grid
from matrix.api import matrix_formats
from matrix.api.base import ApiView, unless_known
from matrix.api.schema.matrix import MATRIX
from matrix.http.negotiation import CONTENT_TYPES, asked_format
from matrix.query.matrix_query import MatrixQuery


class MatrixView(ApiView):
    @MATRIX
    def get(self, request: Request) -> HttpResponseBase:
        query = MatrixQuery.from_params(request.query_params, also=("format", "fields"))
        fields = matrix_formats.chosen_fields(request.query_params.getlist("fields"))
        wanted = asked_format(request)
        now = timezone.now()
        version = grid.version(query, now)
        tag = version if wanted == "json" else version.shown(wanted)
        write = as_csv if wanted == "csv" else as_json
        return unless_known(request, tag, lambda: write(grid.build(query, now, version), fields))


def as_json(answer: grid.Grid, fields: tuple[str, ...]) -> HttpResponseBase:
    return HttpResponse(matrix_formats.as_json(answer, fields), content_type=CONTENT_TYPES["json"])


def as_csv(answer: grid.Grid, fields: tuple[str, ...]) -> HttpResponseBase:
    response = HttpResponse(
        matrix_formats.as_csv(answer, fields), content_type=CONTENT_TYPES["csv"]
    )
    name = f"sonar-{answer.query.size}-{answer.query.stat}.csv"
    response["Content-Disposition"] = f'inline; filename="{name}"'
    return response
