"""The formats of answers: asked for with `format=`, else with the Accept header."""

from collections.abc import Iterable, Sequence

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from matrix.query.forms import BadQueryError
from sonar.notation.enumeration import not_allowed

TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
    "markdown": "text/markdown",
    "plotly": "application/vnd.plotly.v1+json",
    "html": "text/html",
    "pdf": "application/pdf",
}
CONTENT_TYPES = TYPES | {
    name: f"{TYPES[name]}; charset=utf-8" for name in ("csv", "markdown", "html")
}
# How names of files end.
ENDINGS = {name: name for name in TYPES} | {"markdown": "md", "plotly": "plotly.json"}
# Of an answer that is one thing, of a list of things, and of the figure behind a picture.
TABLE = ("json", "csv")
LIST = ("json", "csv", "ndjson")
FIGURE = ("plotly", "html")
# Every browser accepts HTML, also from who follows a link to JSON.
BY_NAME_ALONE = ("html",)


class ErrorsInJson(DefaultContentNegotiation):
    """Leave the choice of a format to the view, so that its errors are JSON in any case."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, str(first.media_type)


def asked_format(request: Request, allowed: Sequence[str] = TABLE) -> str:
    """Return one of the ``allowed`` formats; raise BadQueryError for a `format=` that is none.

    An Accept header that fits none of them gets the first, as one that fits all does.
    """
    values = [value for value in request.query_params.getlist("format") if value]
    if len(values) > 1:
        sentence = f"“format” is given {len(values)} times: give it only once."
        raise BadQueryError({"format": [sentence]})
    if values and values[0] not in allowed:
        sentence = f"{not_allowed('format', values[0], allowed)}."
        raise BadQueryError({"format": [sentence]})
    if values:
        return values[0]
    by_type = {TYPES[name]: name for name in allowed if name not in BY_NAME_ALONE}
    return by_type.get(request.get_preferred_type(list(by_type)) or "", allowed[0])
