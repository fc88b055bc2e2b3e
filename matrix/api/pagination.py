"""Pages of an answer: `page_size=` and `cursor=`, and the address of the next page."""

from __future__ import annotations

import re

from django.http import QueryDict
from rest_framework.request import Request

from matrix.api.parameters import text, wrong

# Of lists of the registry, which are small: all of it for most Sonars.
PAGE_SIZE = MOST_ROWS = 1000


def page_size(params: QueryDict, default: int = PAGE_SIZE, most: int = MOST_ROWS) -> int:
    """Read `page_size=`; raise BadQueryError for anything but a number up to ``most``."""
    given = text(params, "page_size") or str(default)
    # Python reads no number of thousands of digits, not even of zeros.
    if not re.fullmatch(r"0{0,9}[1-9][0-9]{0,7}", given) or int(given) > most:
        raise wrong("page_size", f"page_size “{given}” is not a whole number from 1 to {most}.")
    return int(given)


def check_paging(params: QueryDict, form: str) -> None:
    """Raise BadQueryError for a page of what has none: CSV and NDJSON are answered whole."""
    for name in ("cursor", "page_size"):
        if form != "json" and params.get(name):
            raise wrong(name, f"{name} is for JSON: CSV and NDJSON have all rows at once.")


def wrong_cursor(given: str) -> Exception:
    return wrong("cursor", f"cursor “{given}” is not one that an answer had in its `next`.")


def following(request: Request, cursor: str, **changed: str | None) -> str:
    """Return the address of the next page; parameters in ``changed`` are set, or left out."""
    params = request.query_params.copy()
    for name, value in {**changed, "cursor": cursor}.items():
        params.pop(name, None)
        if value is not None:
            params[name] = value
    return request.build_absolute_uri(f"{request.path}?{params.urlencode(safe=':!')}")
