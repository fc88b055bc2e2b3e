"""GET /api/v1/: the names of all calls, and where they are; browsers get the page of them."""

from __future__ import annotations

import re

from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import URLPattern, get_resolver
from rest_framework.request import Request
from rest_framework.response import Response

from matrix.api.base import ApiView
from matrix.api.schema.describe import described, of
from matrix.api.schema.schemas import Answer
from matrix.http.negotiation import asked_format
from matrix.query.addresses import address
from matrix.query.forms import check_names

VERSION = "v1/"
TYPES = ["application/json", "text/html"]


class Call(Answer):
    """One route: `{name}` or `{id}` in its address stand for its parameters."""

    name: str
    address: str
    methods: dict[str, str]


class Index(Answer):
    """All routes; ``docs`` is the page that explains them to people."""

    docs: str
    calls: list[Call]


EXAMPLE = {
    "docs": "https://sonar.example.org/api/v1/docs/",
    "calls": [
        {
            "name": "matrix",
            "address": "https://sonar.example.org/api/v1/matrix/",
            "methods": {"GET": "The whole matrix, source by destination"},
        }
    ],
}


class IndexView(ApiView, one_snapshot=False):
    @described("All calls", answer=Index, example=EXAMPLE, tag="about")
    def get(self, request: Request) -> HttpResponseBase:
        check_names(request.query_params, ["format"])
        asked_format(request, ("json",))
        docs = address("api-docs")
        # A browser names HTML; scripts name JSON, or nothing.
        if not request.query_params and request.get_preferred_type(TYPES) == "text/html":
            return HttpResponseRedirect(docs)
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
        index = Index(docs=request.build_absolute_uri(docs), calls=calls)
        return Response(index.model_dump())
