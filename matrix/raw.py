"""Read rows of fixed width out of PostgreSQL straight into numpy columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.backends.postgresql.operations import DatabaseOperations
from django.db.models import QuerySet
from numpy.typing import NDArray
from psycopg import Cursor

# Types of PostgreSQL's binary format, by the width that each has there.
INTEGER = ">i8"
SHORT = ">i4"
FLOAT = ">f8"
FLAG = "?"
TIME = ">i8"

_SIGNATURE_BYTES = 19
_TRAILER_BYTES = 2
_EPOCH_2000 = 946_684_800


def columns(queryset: QuerySet[Any, Any], fields: Mapping[str, str]) -> NDArray[np.void]:
    """Return the fields of a queryset as a record array; one SQL statement, no Python rows.

    ``fields`` gives the type of each; none may be NULL, as the rows must have one width.
    A binary COPY costs about a tenth of fetching tuples.
    """
    try:
        sql, params = queryset.values_list(*fields).query.sql_with_params()
    except EmptyResultSet:
        return np.empty(0, dtype=_row(fields))
    with connection.cursor() as cursor:
        operations = cast("DatabaseOperations", connection.ops)
        statement = operations.compose_sql(f"COPY ({sql}) TO STDOUT (FORMAT BINARY)", params)
        # A cursor that logs queries takes no parameters here, hence the composed text.
        with cast("Cursor[Any]", cursor).copy(statement) as copy:
            payload = b"".join(map(bytes, copy))
    body = payload[_SIGNATURE_BYTES:-_TRAILER_BYTES]
    return np.frombuffer(body, dtype=_row(fields))


def _row(fields: Mapping[str, str]) -> np.dtype[np.void]:
    """Return the layout of a row: a field count, then each value behind its length."""
    parts = [("fields", ">i2")]
    for name, kind in fields.items():
        parts += [(f"{name} width", ">i4"), (name, kind)]
    return np.dtype(parts)


def unix_time(times: NDArray[np.int64]) -> NDArray[np.float64]:
    """Turn PostgreSQL's microseconds since 2000 into Unix time."""
    return times / 1e6 + _EPOCH_2000
