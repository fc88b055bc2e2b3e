"""One operation of the schema, from what `@described` says of its method."""

import inspect
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

import orjson
from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

from matrix.api.schema import describe, parameters
from matrix.api.schema.describe import Described
from matrix.api.schema.schemas import Error, Shapes
from matrix.http.exceptions import NEEDS_ACCOUNT
from matrix.http.negotiation import TYPES as MEDIA
from matrix.query.attributes import BY_KEY

BASE = "/api/v1/"
HEADER: Literal["header"] = "header"
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    location=HEADER,
    description="The ETag of an earlier response. If nothing has changed, the status is 304.",
)
Json = dict[str, Any]
# Of what Plotly reads, which has a schema of its own.
PLOTLY_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "data": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Traces of the Plotly figure.",
        },
        "layout": {"type": "object", "description": "Layout of the Plotly figure."},
    },
    "required": ["data", "layout"],
}
FIGURE_EXAMPLES = {
    "plotly": {
        "data": [{"type": "bar", "x": [1795255200000], "y": [3]}],
        "layout": {"title": {"text": "Links that failed or were slower than usual, large files"}},
    },
    "html": '<!DOCTYPE html>\n<html lang="en">...</html>',
}
IN_PATHS = {
    "name": "Name of the site, endpoint, mesh or other object.",
    "id": "Id of the object, as returned by the list.",
    "source": "Name of the source endpoint.",
    "destination": "Name of the destination endpoint.",
    "period": "A completed ISO 8601 week (for example, `2026-W47`) or month (for example, "
    "`2026-10`).",
}
# What no text is.
BINARY: Json = {"type": "string", "format": "binary"}
ETAG = OpenApiParameter(
    "ETag",
    location=HEADER,
    response=[200, 304],
    description="Version of the response. Send it back as If-None-Match.",
)
SAME = {
    304: OpenApiResponse(
        description="Nothing has changed since the response with this ETag. No body is sent."
    )
}
DONE = {
    200: "The request succeeded.",
    201: "The request succeeded, and the data was stored.",
    202: "The request was accepted. Sonar processes the request after it has sent the response.",
    204: "The request succeeded. The response has no body.",
}
EXAMPLES = Path(__file__).parents[1] / "examples.json"
ENDPOINT = "$endpoint"
WRONG_SIZE = "“page_size” has the value “0”, which is not a whole number from 1 to 1000."
# What each status says, and an example of its `detail`.
REFUSALS = {
    400: (
        "A parameter, a field or the body is not valid. For each invalid parameter or "
        "field, `errors` explains what is allowed.",
        WRONG_SIZE,
    ),
    401: (
        "The request needs a valid token or session.",
        NEEDS_ACCOUNT,
    ),
    403: (
        "The account lacks the right, or its token lacks the scope, that the request requires.",
        "Your role does not allow this for that site.",
    ),
    404: ("No object has this name or id.", "There is nothing at /api/v1/nothing/."),
    409: (
        "The request conflicts with existing data.",
        "The value of “name” is already used by another site.",
    ),
    411: (
        "The body was sent in chunks, without a Content-Length header.",
        "Send the body with a Content-Length header, not in chunks.",
    ),
    413: ("The body is too large.", "The body is larger than 100,000 bytes."),
    414: (
        "The URL, including its query, is too long.",
        "The first line of the request is longer than 4,094 bytes: request less data at once.",
    ),
    415: (
        "The body was not sent as JSON.",
        "Send JSON with Content-Type: application/json. "
        'Unsupported media type "text/plain" in request.',
    ),
    429: (
        "Too many requests. The Retry-After header gives the number of seconds to wait.",
        "An account may make at most 1,200 requests a minute: wait 12 s.",
    ),
    431: (
        "A header is too long, or the request has too many headers.",
        "A header is longer than 8,190 bytes, or there are more than 100 headers.",
    ),
    503: (
        "The request took too long, or other work must finish first. The Retry-After header gives "
        "the number of seconds to wait.",
        "Another import is running: retry later.",
    ),
}
RETRY_AFTER = OpenApiParameter(
    "Retry-After",
    int,
    OpenApiParameter.HEADER,
    description="Number of seconds to wait before the next attempt.",
    response=[429, 503],
)


class TokenScheme(OpenApiAuthenticationExtension):
    """How a script says who asks; a subclass is registered by being there."""

    target_class = "matrix.http.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> Json:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": (
                "An API token in the header `Authorization: Token sonar_...`. Each operation names "
                "the scope that it requires: `read`, `ingest` or `operate`. If Sonar accepts "
                "access tokens of the identity provider (`Authorization: Bearer ...`), they have "
                "the scope `read`."
            ),
        }


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "matrix.http.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> Json:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": "The session cookie of a logged-in browser. Requests that write also "
            "need the X-CSRFToken header.",
        }


class Operation(AutoSchema):
    """drf-spectacular's, which takes everything from `@described` and guesses nothing."""

    @property
    def call(self) -> Described:
        description = describe.of(self.handler)
        if description is None:
            raise TypeError(f"{self.method} {self.path} is not @described.")
        return description

    @property
    def handler(self) -> Any:  # noqa: ANN401 - the method of a view
        return getattr(self.view, self.method.lower())

    def is_excluded(self) -> bool:
        """Leave out what is not described: a test finds it, and the rest is told meanwhile."""
        return describe.of(self.handler) is None

    def get_operation_id(self) -> str:
        """Name it by method and path: `get_links`, `get_transfers_id`."""
        words = re.findall(r"[a-z]+", self.path.removeprefix(BASE)) or ["index"]
        return "_".join([self.method.lower(), *words])

    def get_summary(self) -> str:
        return self.call.summary

    def get_description(self) -> str:  # type: ignore[override]  # as spectacular's own
        return inspect.cleandoc(self.handler.__doc__ or "")

    def get_tags(self) -> list[str]:
        return [self.call.tag]

    def get_auth(self) -> list[Json]:
        """Let the framework note the schemes; say the scope that a token needs."""
        super().get_auth()
        schemes: list[Json] = [{"token": [self.call.scope]}, {"session": []}]
        return [*schemes, {}] if self.call.scope == "read" else schemes

    def get_override_parameters(self) -> list[Any]:
        shared = [*self.call.parameters, RETRY_AFTER]
        if self.method != "GET":
            return shared
        formats = self.call.formats
        words = "Format of the response. Takes precedence over the Accept header."
        of_format = parameters.choice("format", formats, words, formats[0])
        return [*shared, of_format, IF_NONE_MATCH, ETAG]

    def _resolve_path_parameters(self, variables: list[str]) -> list[Json]:
        path_variables = super()._resolve_path_parameters(variables)  # type: ignore[no-untyped-call]
        return [
            variable | {"description": IN_PATHS[variable["name"]]} for variable in path_variables
        ]

    def get_request_serializer(self) -> Any:  # noqa: ANN401 - by media type
        body = self.call.body
        return {MEDIA["json"]: Shapes(self.registry).of(body, "request")} if body else None

    def _get_request_body(self, direction: str = "request") -> Any:  # noqa: ANN401
        if self.call.body is None:
            return None
        body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        return body | {"required": True}

    def get_response_serializers(self) -> Any:  # noqa: ANN401 - by status and media type
        call, shapes = self.call, Shapes(self.registry)
        answers: dict[Any, OpenApiResponse] = {}
        if call.answer is None:
            answers[call.status] = OpenApiResponse(description=DONE[call.status])
        else:
            schemas: dict[str, Json] = {name: {"type": "string"} for name in call.formats}
            schemas |= {"pdf": BINARY} if "pdf" in schemas else {}
            schemas |= {"plotly": PLOTLY_SCHEMA} if "plotly" in schemas else {}
            schemas["json"] = shapes.of(call.answer, "response")
            for name, schema in schemas.items():
                answers[call.status, MEDIA[name]] = OpenApiResponse(schema, DONE[call.status])
        if self.method == "GET":
            answers |= SAME
        for status in call.errors:
            refusal = OpenApiResponse(shapes.of(Error, "response"), REFUSALS[status][0])
            answers[status, MEDIA["json"]] = refusal
        return answers

    def get_examples(self) -> list[OpenApiExample]:
        """Return one of the body, of each format and of each refusal.

        A line of NDJSON is a row of the list in JSON.
        """
        call, examples = self.call, []
        values = stored_examples().get(self.get_operation_id(), {}) | call.examples
        if "body" in values:
            examples.append(OpenApiExample("Body", values["body"], request_only=True))
        fields = values["json"].values() if isinstance(values.get("json"), dict) else []
        rows = next((value for value in fields if isinstance(value, list)), [])
        lines = b"".join(orjson.dumps(row) + b"\n" for row in rows).decode()
        values = {"ndjson": lines} | FIGURE_EXAMPLES | values
        for name in filter(values.__contains__, call.formats):
            example = OpenApiExample(
                name.upper(),
                values[name],
                response_only=True,
                media_type=MEDIA[name],
                status_codes=[call.status],
            )
            examples.append(example)
        for status in call.errors:
            detail = REFUSALS[status][1]
            errors = {"page_size": [WRONG_SIZE]} if status == 400 else {}
            refusal = {"detail": detail, "errors": errors}
            example = OpenApiExample("Refusal", refusal, response_only=True, status_codes=[status])
            examples.append(example)
        return examples


@cache
def stored_examples() -> Json:
    """Read examples.json: by operation, those of its formats and of its body.

    An endpoint stands there as what it has otherwise than the examples of attributes.
    """
    facts = {key: attribute.example for key, attribute in BY_KEY.items()}

    def whole(value: Json) -> Json:
        return facts | value[ENDPOINT] if ENDPOINT in value else value

    stored: Json = json.loads(EXAMPLES.read_text(), object_hook=whole)
    return stored
