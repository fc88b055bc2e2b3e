"""Bodies that calls send: JSON, of a size, with nothing in it that JSON does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import orjson
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from matrix.http.exceptions import LengthRequired, TooLarge


def body_of(request: Request) -> Any:  # noqa: ANN401 - what the parser of a call takes
    """Return what a call sends: for who may write, as it is not read before that is known."""
    # Django would take a body in chunks for an empty one.
    if "Transfer-Encoding" in request.headers and "Content-Length" not in request.headers:
        raise LengthRequired()
    return request.data


class JsonBody(BaseParser):
    """Reads JSON; orjson takes no NaN and no text that is not UTF-8."""

    media_type = "application/json"
    most_bytes = 100_000
    kind: type = dict
    wrong_kind = "The body is not a JSON object: send {...} with the fields by name."

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - the framework's signature knows mappings only
        body = stream.read(self.most_bytes + 1)
        if len(body) > self.most_bytes:
            raise TooLarge(f"The body is larger than {self.most_bytes:,} bytes.")
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not JSON: {error}.") from error
        if not isinstance(value, self.kind):
            raise ParseError(self.wrong_kind)
        return value


class JsonList(JsonBody):
    """Reads a list of results."""

    most_bytes = 8_000_000
    kind = list
    wrong_kind = "The body is not a list: send a JSON list of results."
