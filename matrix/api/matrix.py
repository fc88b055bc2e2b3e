"""GET /api/v1/matrix/: the whole matrix in one call."""

from __future__ import annotations

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers import grid
from matrix.api import matrix_formats
from matrix.api.base import ApiView, unless_known
from matrix.api.matrix_formats import FIELDS
from matrix.api.schema.matrix import MATRIX
from matrix.http.compression import respond_once
from matrix.http.negotiation import CONTENT_TYPES, asked_format
from matrix.http.questions import read_once
from matrix.query.filters import either
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery


class MatrixView(ApiView):
    @MATRIX
    def get(self, request: Request) -> HttpResponseBase:
        now = timezone.now()
        question, version = read_once(
            request, lambda: read(request), lambda question: grid.version(question[0], now)
        )
        query, fields, form = question
        write = matrix_formats.as_csv if form == "csv" else matrix_formats.as_json

        def make() -> HttpResponseBase:
            response = respond_once(
                request,
                ("matrix", version, *question),
                CONTENT_TYPES[form],
                lambda: write(grid.build(query, now, version), fields),
            )
            if form == "csv":
                name = f"sonar-{query.size}-{query.stat}.csv"
                response["Content-Disposition"] = f'inline; filename="{name}"'
            return response

        return unless_known(request, version if form == "json" else version.shown(form), make)


def read(request: Request) -> tuple[MatrixQuery, tuple[str, ...], str]:
    """Return the question, the fields that are answered, and the format."""
    params = request.query_params
    query = MatrixQuery.from_params(params, also=("format", "fields"))
    # `fields=value,ok`, all of them for nothing.
    texts = ",".join(params.getlist("fields")).split(",")
    names = {text.strip() for text in texts if text.strip()}
    for name in sorted(names - set(FIELDS)):
        raise BadQueryError({"fields": [f"fields “{name}” is not known: use {either(FIELDS)}."]})
    fields = tuple(name for name in FIELDS if name in names or not names)
    return query, fields, asked_format(request)
