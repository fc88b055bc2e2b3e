"""Who acts, for the triggers that keep the history (migration 0042).

It goes with each statement that writes, in the same message: no round trip is added, and as it
counts for one transaction it works behind a pooler.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db.backends.postgresql.base import ServerBindingCursor
from psycopg.sql import Literal

WRITES = ("INSERT", "UPDATE", "DELETE")
_prefix = ContextVar("actor", default="")


def enter(channel: str, who: str, token: str = "") -> None:
    """Say who acts from now on in this thread: an account, with a token's name, or a process."""
    actor = json.dumps({"channel": channel, "who": who, "token": token})
    _prefix.set(f"SET LOCAL sonar.actor = {Literal(actor).as_string(None)}; ")


def leave() -> None:
    _prefix.set("")


@contextmanager
def acting(channel: str, who: str) -> Iterator[None]:
    """Say who acts within; who acts around it does so again after it."""
    before = _prefix.get()
    enter(channel, who)
    try:
        yield
    finally:
        _prefix.set(before)


def signed(
    execute: Callable[..., object],
    sql: str,
    params: Any,  # noqa: ANN401 - as Django has it
    many: bool,
    context: dict[str, Any],
) -> object:
    """Execute a statement; before one that writes, say who does. A wrapper as Django wants it.

    Not before a planned one, which takes no other beside it: such write what has no history.
    """
    prefix, is_planned = _prefix.get(), isinstance(context["cursor"].cursor, ServerBindingCursor)
    if not prefix or many or is_planned or not str(sql).lstrip().startswith(WRITES):
        return execute(sql, params, many, context)
    result = execute(_beside_placeholders(prefix, params) + sql, params, many, context)
    context["cursor"].nextset()  # past what SET answers
    return result


def _beside_placeholders(text: str, params: object) -> str:
    return text if params is None else text.replace("%", "%%")
