"""Cursors for what every request asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from django.db import connection

if TYPE_CHECKING:
    from django.db.backends.utils import CursorWrapper

    from sonar.database.base import DatabaseWrapper


def planned_cursor() -> CursorWrapper:
    """Return a cursor whose statements PostgreSQL plans once for each connection."""
    return cast("DatabaseWrapper", connection).planned_cursor()


@contextmanager
def pipelined() -> Iterator[None]:
    """Let PostgreSQL work on statements while the next ones are written; errors come at the end."""
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield
