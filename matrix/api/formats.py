"""The formats of answers: asked for with `format=`, else with the Accept header."""

from __future__ import annotations

from collections.abc import Iterable

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from matrix.filters import either
from matrix.forms import BadQueryError

FORMATS = ("json", "csv")


class ErrorsInJson(DefaultContentNegotiation):
    """Leave the choice of a format to the view, so that its errors are JSON in any case."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, str(first.media_type)


def asked_format(request: Request) -> str:
    """Return `json` or `csv`; raise BadQueryError for a `format=` that is neither."""
    if given := request.query_params.get("format"):
        if given not in FORMATS:
            raise BadQueryError(
                {"format": [f"format “{given}” is not known: use {either(FORMATS)}."]}
            )
        return given
    accepted = request.headers.get("Accept", "")
    return "csv" if "text/csv" in accepted and "application/json" not in accepted else "json"
