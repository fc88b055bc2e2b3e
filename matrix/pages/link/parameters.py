"""The parameters of the link page, beside those of its question, checked."""

from __future__ import annotations

from django.http import QueryDict

from matrix.query.forms import BadQueryError
from matrix.store.keyset import Cursor

OWN = ("reverse", "show", "before")


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
