"""GET /api/v1/schema/: the whole schema."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import orjson
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import get_script_prefix
from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request

from matrix.api.base import ApiView
from matrix.api.schema.describe import described
from matrix.http.negotiation import asked_format
from matrix.query.forms import check_names
from sonar.models import SizeClass

EXAMPLE = {"openapi": "3.1.1", "info": {"title": "Sonar", "version": "1"}, "paths": {}}
DOCUMENT = {
    "type": "object",
    "required": ["openapi", "info", "paths"],
    "properties": {
        "openapi": {"type": "string"},
        "info": {"type": "object"},
        "paths": {"type": "object"},
    },
}


class SchemaView(ApiView):
    @described("This description, in OpenAPI 3.1", answer=DOCUMENT, example=EXAMPLE, tag="about")
    def get(self, request: Request) -> HttpResponseBase:
        check_names(request.query_params, ["format"])
        asked_format(request, ("json",))
        return HttpResponse(document(sizes()), content_type="application/json")


def sizes() -> tuple[str, ...]:
    return tuple(SizeClass.objects.values_list("name", flat=True))


# Making it takes 0.1 s, the first time 1 s. Only its size classes can change while Sonar runs.
@lru_cache(maxsize=4)
def document(sizes: tuple[str, ...]) -> bytes:
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    if path := get_script_prefix().rstrip("/"):
        schema["servers"] = [{"url": path}]
    return orjson.dumps(schema)
