"""Cursors for what every request asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.db import connection

if TYPE_CHECKING:
    from django.db.backends.utils import CursorWrapper

    from sonar.database.base import DatabaseWrapper


def planned_cursor() -> CursorWrapper:
    """Return a cursor whose statements PostgreSQL plans once for each connection."""
    return cast("DatabaseWrapper", connection).planned_cursor()
