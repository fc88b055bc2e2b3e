"""What an address asks for: to read it anew takes longer than to say that nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from cachetools import LRUCache
from rest_framework.request import Request

from matrix.store import registry
from matrix.store.data_version import DataVersion

T = TypeVar("T")
# An address has up to 4,094 bytes (gunicorn_conf).
ADDRESSES_KEPT = 1000


class KeptQuestion(NamedTuple):
    """What an address asks for, as long as the registry has this version."""

    registry: str
    value: Any


_questions: LRUCache[tuple[str, str, str], KeptQuestion] = LRUCache(ADDRESSES_KEPT)
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
        present = version(kept.value)
        if present.registry == kept.registry:
            return kept.value, present
    # Read before the question: it may be newer than its version, never older.
    of_registry = registry.read_versions().registry
    value = read()
    with _lock:
        _questions[address] = KeptQuestion(of_registry, value)
    return value, version(value)


def forget() -> None:
    with _lock:
        _questions.clear()
