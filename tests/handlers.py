"""One chain of middleware for all clients of the tests, as a server has one for all requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.core.signals import setting_changed
from django.test.client import ClientHandler

PARTS = (
    "_middleware_chain",
    "_view_middleware",
    "_template_response_middleware",
    "_exception_middleware",
)
_made: dict[str, Any] = {}


@contextmanager
def shared() -> Iterator[None]:
    """Let each new client take the chain that stands until a setting changes.

    A client makes its own else, which costs as much as a third of a small request.
    """
    load = ClientHandler.load_middleware

    def load_once(handler: ClientHandler, is_async: bool = False) -> None:
        if is_async or type(handler) is not ClientHandler:
            load(handler, is_async)
            return
        if not _made:
            load(handler)
            _made.update({name: getattr(handler, name) for name in PARTS})
        vars(handler).update(_made)

    setting_changed.connect(_forget)
    try:
        with patch.object(ClientHandler, "load_middleware", load_once):
            yield
    finally:
        setting_changed.disconnect(_forget)
        _made.clear()


def _forget(**_: object) -> None:
    _made.clear()
