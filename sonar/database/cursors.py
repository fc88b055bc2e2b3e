"""Cursors for what every request asks, and locks until the end of a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from django.db import connection

if TYPE_CHECKING:
    from django.db.backends.utils import CursorWrapper

    from sonar.database.base import DatabaseWrapper


def planned_cursor() -> CursorWrapper:
    """Return a cursor whose statements PostgreSQL plans once for each connection."""
    return cast("DatabaseWrapper", connection).planned_cursor()


def planned_rows(statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """Return the rows of such a statement; parameters as its cursor takes them."""
    with planned_cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def lock_until_commit(*key: int, wait: bool = True) -> bool:
    """Take an advisory lock, of one number or two, until the transaction ends.

    Return whether it was taken: with ``wait`` always, else only if nobody has it.
    """
    function = "pg_advisory_xact_lock" if wait else "pg_try_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}({', '.join(['%s'] * len(key))})", key)
        return wait or bool(cursor.fetchone()[0])


@contextmanager
def pipelined() -> Iterator[None]:
    """Let PostgreSQL work on statements while the next ones are written; errors come at the end."""
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield
