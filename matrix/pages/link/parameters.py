"""The parameters of the link page, beside those of its question, checked."""

from __future__ import annotations

from django.http import QueryDict

from matrix.answers.series import MOST, is_too_long
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.store.transfers import Cursor
from sonar.windows import Window

OWN = ("reverse", "show", "before")


def check_length(query: MatrixQuery) -> None:
    """Raise BadQueryError for a window that is too long to be drawn, on either side."""
    for parameter, sides in (("from", query), ("compare", query.compare)):
        if sides and sides.start and sides.end and is_too_long(Window(sides.start, sides.end)):
            sentence = f"{parameter} must be at most {MOST:,} days before the end of its window"
            raise BadQueryError({parameter: [f"{sentence}: a link is shown by the day."]})


def read_own(params: QueryDict) -> tuple[bool, bool, Cursor | None]:
    """Read the parameters that other pages do not have; raise BadQueryError."""
    errors = {
        name: [f"{name} “{params[name]}” is not known: use {allowed}, or leave it out."]
        for name, allowed in (("reverse", "1"), ("show", "one"))
        if params.get(name) not in (None, "", allowed)
    }
    before = None
    try:
        if text := str(params.get("before", "")):
            before = Cursor.parse(text)
    except ValueError:
        errors["before"] = ["before is not a place in the list of results: follow a link to it."]
    if errors:
        raise BadQueryError(errors)
    return params.get("reverse") == "1", params.get("show") == "one", before
