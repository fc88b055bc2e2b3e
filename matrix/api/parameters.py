"""What calls for single results and series have in common: parameters of their own, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.http import QueryDict

from matrix.query.filters import PROFILE_FILTERS, either
from matrix.query.forms import BadQueryError, unknown

WINDOW_AND_METHOD = ("size", "window", "from", "to", *PROFILE_FILTERS)


def check_names(params: QueryDict, allowed: Sequence[str]) -> None:
    """Raise BadQueryError for a parameter that the call does not have."""
    if errors := unknown(params, allowed):
        raise BadQueryError(errors)


def one_of(params: QueryDict, name: str, allowed: Sequence[str], default: str = "") -> str:
    given = text(params, name)
    if given and given not in allowed:
        raise wrong(name, f"{name} “{given}” is not known: use {either(allowed)}.")
    return given or default


def some_of(params: QueryDict, name: str, allowed: Iterable[str]) -> tuple[str, ...]:
    """Return the values of a parameter that may be given several times, each once."""
    known = tuple(allowed)
    given = [one for one in params.getlist(name) if one]
    for one in given:
        if one not in known:
            raise wrong(name, f"{name} “{one}” is not known: use {either(known)}.")
    return tuple(dict.fromkeys(given))


def text(params: QueryDict, name: str) -> str:
    """Return the value of a parameter that is given once or not at all."""
    given = params.getlist(name)
    if len(given) > 1:
        raise wrong(name, f"{name} is given {len(given)} times: give it once.")
    return given[0] if given else ""


def wrong(name: str, sentence: str) -> BadQueryError:
    return BadQueryError({name: [sentence]})
