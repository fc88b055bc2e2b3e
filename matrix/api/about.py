"""The calls about the API itself: all that there are, their description, and its page."""

import re
from functools import lru_cache
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, get_resolver, get_script_prefix
from django.views.decorators.cache import cache_control
from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request
from rest_framework.response import Response

from matrix.api.base import ApiView
from matrix.api.schema.describe import described, of
from matrix.api.schema.parameters import SIZE
from matrix.api.schema.schemas import Answer
from matrix.http.my_site import my_site
from matrix.http.negotiation import asked_format
from matrix.http.page_rights import for_whom, readers
from matrix.query.addresses import address
from matrix.query.forms import check_names
from sonar.models import SizeClass

Json = dict[str, Any]
VERSION = "v1/"
TYPES = ["application/json", "text/html"]
DOCUMENT = {
    "type": "object",
    "required": ["openapi", "info", "paths"],
    "properties": {
        "openapi": {"type": "string", "description": "Version of OpenAPI."},
        "info": {"type": "object", "description": "Title, version and description of the API."},
        "paths": {"type": "object", "description": "Operations by path and HTTP method."},
    },
}


class SchemaView(ApiView):
    @described("Get the OpenAPI document", answer=DOCUMENT, tag="about")
    def get(self, request: Request) -> HttpResponseBase:
        """Returns the description of this API in OpenAPI 3.1, as JSON."""
        check_names(request.query_params, ["format"])
        asked_format(request, ("json",))
        return HttpResponse(document(sizes()), content_type="application/json")


def sizes() -> tuple[str, ...]:
    return tuple(SizeClass.objects.values_list("name", flat=True))


# Making it takes 0.1 s, the first time 1 s. Only its size classes can change while Sonar runs.
@lru_cache(maxsize=4)
def document(sizes: tuple[str, ...]) -> bytes:
    schema: Json = SchemaGenerator().get_schema(request=None, public=True)
    if path := get_script_prefix().rstrip("/"):
        schema["servers"] = [{"url": path}]
    return orjson.dumps(schema)


@for_whom(GET=readers)
@cache_control(private=True, no_cache=True)
def docs(request: HttpRequest) -> HttpResponse:
    return render(request, "api_docs.html", {"my_site": my_site(request)})


class Call(Answer):
    """A path of the API with its HTTP methods."""

    name: str
    address: str
    methods: dict[str, str]


class Index(Answer):
    """The paths of the API, and the page that documents them."""

    docs: str
    calls: list[Call]


class IndexView(ApiView, one_snapshot=False, of_primary=True):
    @described("List all API paths", answer=Index, tag="about")
    def get(self, request: Request) -> HttpResponseBase:
        """Returns each path with its HTTP methods. A browser is redirected to the documentation."""
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


def named(result: Json, **_: object) -> Json:
    """Put the names of size classes in place of `{size}` in parameters. One SQL query.

    A parameter with it in its name is there once for each class, another one with an example for
    each.
    """
    sizes = list(SizeClass.objects.values_list("name", flat=True))
    for call in (call for methods in result["paths"].values() for call in methods.values()):
        parameters, call["parameters"] = call.get("parameters", []), []
        for each in parameters:
            if SIZE in each["name"]:
                call["parameters"] += [
                    each | {key: each[key].replace(SIZE, size) for key in ("name", "description")}
                    for size in sizes
                ]
            else:
                schema, examples = each["schema"], each["schema"].get("examples", [])
                if any(SIZE in example for example in examples):
                    # Classes are no enum: a client that is made of the schema would not know those
                    # of tomorrow.
                    texts = [text.replace(SIZE, size) for text in examples for size in sizes]
                    unknown = examples == [SIZE] and schema.get("default") not in texts
                    rest = {
                        key: of for key, of in schema.items() if key != "default" or not unknown
                    }
                    schema = rest | {"examples": texts or [""]}
                call["parameters"].append(each | {"schema": schema})
    return result
