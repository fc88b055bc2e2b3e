"""Rows of fixed width out of PostgreSQL, by COPY, straight into numpy columns."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet
from numpy.typing import NDArray

from sonar.database.pg_copy import SIGNATURE, TRAILER, copying, sql_of


class Kind(NamedTuple):
    """A type: how numpy reads what PostgreSQL's function sends."""

    dtype: str
    send: str


INTEGER = Kind(">i8", "int8send")
SHORT = Kind(">i4", "int4send")
SHORTEST = Kind(">i2", "int2send")
FLOAT = Kind(">f8", "float8send")
FLAG = Kind("?", "boolsend")
TIME = Kind(">i8", "timestamptz_send")
UUID = Kind("V16", "uuid_send")

_EPOCH_2000_MS = 946_684_800_000
# As rows, psycopg would take as long for each as PostgreSQL; a single value of all of them may have
# a gigabyte at most.
_COPY = """
    COPY (
        SELECT count(*)::int4, string_agg({values}, '') FROM ({rows}) of_rows ({names})
        GROUP BY {first}
    ) TO STDOUT (FORMAT BINARY)
"""
_HEAD = np.dtype([("fields", ">i2"), ("count width", ">i4"), ("count", ">i4"), ("width", ">i4")])


def columns(queryset: QuerySet[Any, Any], fields: Mapping[str, Kind]) -> NDArray[np.void]:
    """Return the fields of a queryset as a record array; one SQL statement, no Python rows.

    They are in no order. ``fields`` gives the type of each, which has to be that of the column; the
    first one has few values, such as the source. Raises ValueError if a value is NULL, as the
    rows must have one width.
    """
    row = np.dtype([(name, kind.dtype) for name, kind in fields.items()])
    try:
        rows = sql_of(queryset.values_list(*fields))
    except EmptyResultSet:
        return np.empty(0, dtype=row)
    # Names of their own: of two tables, columns may have the same.
    names = [f"c{number}" for number in range(len(fields))]
    sent = [f"{kind.send}({name})" for name, kind in zip(names, fields.values(), strict=True)]
    statement = _COPY.format(
        values=" || ".join(sent), rows=rows, names=", ".join(names), first=names[0]
    )
    with copying(statement) as copy:
        payload = b"".join(copy)
    return np.frombuffer(b"".join(_pieces(payload, row.itemsize)), row)


def _pieces(payload: bytes, row_bytes: int) -> Iterator[memoryview]:
    """Yield the rows of each value of a COPY."""
    at = len(SIGNATURE)
    while at < len(payload) - len(TRAILER):
        head = np.frombuffer(payload, _HEAD, 1, at)[0]
        at += _HEAD.itemsize
        width = int(head["width"])
        if width != head["count"] * row_bytes:
            raise ValueError("a field is NULL")
        yield memoryview(payload)[at : at + width]
        at += width


def unix_ms(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Turn PostgreSQL's microseconds since 2000 into Unix milliseconds, rounded down."""
    return times.astype(np.int64) // 1000 + _EPOCH_2000_MS
