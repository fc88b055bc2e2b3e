"""What calls for single results and series have in common: parameters of their own, checked."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import QueryDict

from matrix.query.filters import PROFILE_FILTERS, either
from matrix.query.forms import BadQueryError

WINDOW_AND_METHOD = ("size", "window", "from", "to", *PROFILE_FILTERS)


def one_of(params: QueryDict, name: str, allowed: Sequence[str], default: str = "") -> str:
    value = text(params, name)
    if value and value not in allowed:
        raise wrong(name, f"{name} “{value}” is not known: use {either(allowed)}.")
    return value or default


def some_of(params: QueryDict, name: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a parameter that may be given several times, each once."""
    values = [value for value in params.getlist(name) if value]
    for value in values:
        if value not in allowed:
            raise wrong(name, f"{name} “{value}” is not known: use {either(allowed)}.")
    return tuple(dict.fromkeys(values))


def text(params: QueryDict, name: str) -> str:
    """Return the value of a parameter that is given once or not at all."""
    values = params.getlist(name)
    if len(values) > 1:
        raise wrong(name, f"{name} is given {len(values)} times: give it once.")
    return values[0] if values else ""


def wrong(name: str, sentence: str) -> BadQueryError:
    return BadQueryError({name: [sentence]})
