"""Rows of fixed width out of PostgreSQL, by COPY, straight into numpy columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet
from numpy.typing import NDArray

from sonar.database.pg_copy import SIGNATURE, TRAILER, copy_of, copying

# Types of PostgreSQL's binary format, by the width that each has there.
INTEGER = ">i8"
SHORT = ">i4"
FLOAT = ">f8"
FLAG = "?"
TIME = ">i8"

_EPOCH_2000_MS = 946_684_800_000


def columns(queryset: QuerySet[Any, Any], fields: Mapping[str, str]) -> NDArray[np.void]:
    """Return the fields of a queryset as a record array; one SQL statement, no Python rows.

    ``fields`` gives the type of each; none may be NULL, as the rows must have one width.
    A binary COPY costs about a tenth of fetching tuples.
    """
    try:
        statement = copy_of(queryset.values_list(*fields), "BINARY")
    except EmptyResultSet:
        return np.empty(0, dtype=row_of(fields))
    with copying(statement) as copy:
        # Piece by piece, as psycopg gives them row by row: a list of them takes ten times as much.
        payload = bytearray()
        for piece in copy:
            payload += piece
    row = row_of(fields)
    count = (len(payload) - len(SIGNATURE) - len(TRAILER)) // row.itemsize
    return np.frombuffer(payload, row, count, len(SIGNATURE))


def row_of(fields: Mapping[str, str]) -> np.dtype[np.void]:
    """Return the layout of a row: a field count, then each value behind its length."""
    parts = [("fields", ">i2")]
    for name, kind in fields.items():
        parts += [(f"{name} width", ">i4"), (name, kind)]
    return np.dtype(parts)


def unix_ms(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Turn PostgreSQL's microseconds since 2000 into Unix milliseconds, rounded down."""
    return times.astype(np.int64) // 1000 + _EPOCH_2000_MS
