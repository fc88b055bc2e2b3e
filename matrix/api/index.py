"""GET /api/v1/: the names of all calls, and where they are."""

from __future__ import annotations

import re

from django.urls import URLPattern, get_resolver
from rest_framework.request import Request
from rest_framework.response import Response

from matrix.api.base import ApiView
from matrix.api.schema.describe import described, of
from matrix.api.schema.schemas import Answer
from matrix.http.negotiation import asked_format
from matrix.query.forms import check_names

VERSION = "v1/"


class Call(Answer):
    """One route: `{name}` or `{id}` in its address stand for its parameters."""

    name: str
    address: str
    methods: dict[str, str]


class Index(Answer):
    calls: list[Call]


EXAMPLE = {
    "calls": [
        {
            "name": "matrix",
            "address": "https://sonar.example.org/api/v1/matrix/",
            "methods": {"GET": "The whole matrix, source by destination"},
        }
    ]
}


class IndexView(ApiView, one_snapshot=False):
    @described("All calls", answer=Index, example=EXAMPLE, tag="about")
    def get(self, request: Request) -> Response:
        check_names(request.query_params, ["format"])
        asked_format(request, ("json",))
        here, calls = request.build_absolute_uri(request.path), []
        for route in get_resolver("matrix.api.urls").url_patterns:
            if not isinstance(route, URLPattern):
                continue
            view = getattr(route.callback, "cls", None)
            verbs = getattr(view, "http_method_names", [])
            calls_of = {verb.upper(): of(getattr(view, verb, None)) for verb in verbs}
            # Of pages and other things there are none.
            methods = {verb: call.summary for verb, call in calls_of.items() if call}
            if not methods:
                continue
            # The path behind the version: `transfers/{id}/`.
            path = re.sub(r"<\w+:(\w+)>", r"{\1}", str(route.pattern)).removeprefix(VERSION)
            name = (route.name or "").removeprefix("api-")
            calls.append(Call(name=name, address=here + path, methods=methods))
        return Response(Index(calls=calls).model_dump())
