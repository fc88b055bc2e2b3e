"""What an address asks for: to read it anew takes longer than to say that nothing has changed."""

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar

from cachetools import LRUCache
from django.http import QueryDict
from rest_framework.request import Request

from matrix.query.attributes import INTERNAL
from matrix.query.comparison import PREFIX
from matrix.store import registry
from matrix.store.data_version import DataVersion

T = TypeVar("T")
# An address has up to 4,094 bytes (gunicorn_conf).
ADDRESSES_KEPT = 1000


# What an address asks for, as long as the registry has a version: both by path, parameters and
# Accept header.
_questions: LRUCache[tuple[str, str, str], tuple[str, Any]] = LRUCache(ADDRESSES_KEPT)
_lock = Lock()


def read_once(
    request: Request, read: Callable[[], T], version: Callable[[T], DataVersion]
) -> tuple[T, DataVersion]:
    """Return what a request asks for and the version of its answer, for one SQL statement.

    ``read`` reads path, parameters and Accept header; what it allows may change with the registry
    and with nothing else. Then it reads anew; what it refuses is not kept.
    """
    meta = request.META
    address = request.path, meta.get("QUERY_STRING", ""), meta.get("HTTP_ACCEPT", "")
    with _lock:
        kept = _questions.get(address)
    if kept is not None:
        of_registry, value = kept
        present = version(value)
        if present.registry == of_registry:
            return value, present
    # Read before the question: it may be newer than its version, never older.
    of_registry = registry.read_versions().registry
    value = read()
    with _lock:
        _questions[address] = of_registry, value
    return value, version(value)


@lru_cache(ADDRESSES_KEPT)
def internal_filters(query_string: str) -> tuple[str, ...]:
    """Return which filters an address has that are not for all, its own and those of its views."""
    params = QueryDict(query_string)
    # A wall has the addresses of other pages in its own.
    nested = [QueryDict(text.strip().removeprefix("?")) for text in params.getlist("views")]
    names = (*INTERNAL, *(f"{PREFIX}{name}" for name in INTERNAL))
    return tuple(name for name in names if any(name in each for each in (params, *nested)))


def forget() -> None:
    with _lock:
        _questions.clear()
