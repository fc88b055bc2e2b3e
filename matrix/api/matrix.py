"""GET /api/v1/matrix/: the whole matrix in one call."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from rest_framework.request import Request
from rest_framework.views import APIView

from matrix import grid
from matrix.api import answers
from matrix.api.formats import ErrorsInJson, asked_format
from matrix.query import MatrixQuery


class MatrixView(APIView):
    content_negotiation_class = ErrorsInJson

    def get(self, request: Request) -> HttpResponseBase:
        query = MatrixQuery.from_params(request.query_params, also=("format", "fields"))
        fields = answers.chosen_fields(request.query_params.getlist("fields"))
        wanted = asked_format(request)
        now = timezone.now()
        version = grid.version(query, now)
        etag = quote_etag(version if wanted == "json" else f"{version}-{wanted}")
        response: HttpResponseBase | None = get_conditional_response(request, etag=etag)
        if response is None:
            answer = grid.build(query, now, version)
            response = as_csv(answer, fields) if wanted == "csv" else as_json(answer, fields)
        response["ETag"] = etag
        response["Cache-Control"] = "no-cache"
        response["Vary"] = "Accept, Cookie"
        return response


def as_json(answer: grid.Grid, fields: tuple[str, ...]) -> HttpResponseBase:
    return HttpResponse(answers.as_json(answer, fields), content_type="application/json")


def as_csv(answer: grid.Grid, fields: tuple[str, ...]) -> HttpResponseBase:
    response = HttpResponse(answers.as_csv(answer, fields), content_type="text/csv; charset=utf-8")
    name = f"sonar-{answer.query.size}-{answer.query.stat}.csv"
    response["Content-Disposition"] = f'inline; filename="{name}"'
    return response
