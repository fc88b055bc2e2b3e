"""Cursors for what every request asks."""

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


@contextmanager
def pipelined() -> Iterator[None]:
    """Let PostgreSQL work on statements while the next ones are written; errors come at the end."""
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield
