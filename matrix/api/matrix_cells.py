"""GET /cells/: the numbers of the matrix page's cells, which its script fetches behind it."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.cache import get_conditional_response
from rest_framework.request import Request
from rest_framework.views import APIView

from matrix.answers import grid
from matrix.http.compression import ARRAYS
from matrix.http.exceptions import refuse_hidden_filters
from matrix.http.negotiation import ErrorsInJson
from matrix.http.questions import read_once
from matrix.plots import cells_file, display
from matrix.plots.arrangement import arrange
from matrix.store.data_version import snapshot


class CellsView(APIView):
    """Has the parameters of the matrix page; errors are answered in JSON."""

    content_negotiation_class = ErrorsInJson

    def get(self, request: Request) -> HttpResponseBase:
        refuse_hidden_filters(request)
        now = timezone.now()
        (query, drawn), version = read_once(
            request,
            lambda: display.read(request.query_params),
            lambda question: grid.version(question[0], now),
        )
        etag = version.shown(drawn.fingerprint).etag
        response: HttpResponseBase | None = get_conditional_response(request, etag=etag)
        if response is None:
            with snapshot():
                answer = grid.build(query, now, version, whole=True)
            content = cells_file.encode(arrange(answer, drawn))
            response = HttpResponse(content, content_type=ARRAYS)
        response["ETag"] = etag
        response["Cache-Control"] = "private, no-cache"
        response["Vary"] = "Cookie"
        return response
