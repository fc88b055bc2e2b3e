"""COPY: rows into PostgreSQL and out of it. Its columns as arrays: pg_columns."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from django.db import connection
from django.db.backends.postgresql.operations import DatabaseOperations
from django.db.models import QuerySet
from psycopg import Copy, Cursor
from psycopg.sql import SQL, Composed

# What stands before the rows of the binary format, and after them.
SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"


@contextmanager
def copying(statement: str | SQL | Composed) -> Iterator[Copy]:
    """Run a COPY; its errors are Django's, as those of other statements."""
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cast("Cursor[Any]", cursor).copy(cast("SQL", statement)) as copy,
    ):
        yield copy


def sql_of(queryset: QuerySet[Any, Any]) -> str:
    """Return what a queryset selects as SQL, its parameters put in.

    Raises EmptyResultSet where it needs no database to know that this is nothing.
    """
    sql, params = queryset.query.sql_with_params()
    operations = cast("DatabaseOperations", connection.ops)
    # A cursor that logs queries takes no parameters with a COPY, hence the composed text.
    return str(operations.compose_sql(sql, params))
