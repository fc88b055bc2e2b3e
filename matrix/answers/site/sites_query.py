"""Which sites are listed, and in what order."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import QueryDict

from matrix.answers.site.overview import KEYS
from matrix.query.filters import LINK_FILTERS, PROFILE_FILTERS, either
from matrix.query.forms import BadQueryError, check_names
from matrix.query.matrix_query import MatrixQuery

OWN = ("search", "ordering")
PARAMETERS = ("size", "window", "from", "to", *LINK_FILTERS, *PROFILE_FILTERS, *OWN)
DEFAULT_ORDERING = "name"
LONGEST_SEARCH = 200


def read(
    params: QueryDict, also: Sequence[str] = (), ordering: str = DEFAULT_ORDERING
) -> tuple[MatrixQuery, str, str]:
    """Return the question, what to search for, and by what to sort: by ``ordering`` if not said."""
    check_names(params, (*PARAMETERS, *also))
    query = MatrixQuery.from_params(params, also=(*OWN, *also))
    search, order = (params.get(name, "").strip() for name in OWN)
    sentences: dict[str, list[str]] = {}
    if len(search) > LONGEST_SEARCH or "\0" in search:
        sentences["search"] = [f"search must be at most {LONGEST_SEARCH} printable characters."]
    if order and order.removeprefix("-") not in KEYS:
        allowed = either(list(KEYS))
        sentences["ordering"] = [
            f"ordering “{order}” is not known: use {allowed}, after - for descending."
        ]
    if sentences:
        raise BadQueryError(sentences)
    return query, search, order or ordering
