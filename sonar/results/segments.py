"""Segments: the results of a size class in an hour or a day as columns of numpy arrays.

The columns, all little-endian, rows in the order of ``keys``:

``keys``      u64: link << 32 | bits of the rate as float32, in bytes per second, ascending
``offsets``   u32: when it started, in milliseconds since the start of the bucket
``sizes``     i64: bytes
``profiles``  u16: ids of profiles
``links``     u32: the distinct links, ascending
``lasts``     u32: offset of the newest result of each of those links

A link is source id << 16 | destination id. A failed result has the rate -1: its sign bit
sorts it behind all others of its link. Lost results say nothing about a link and are left out.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from sonar.database import pg_columns
from sonar.models import Transfer
from sonar.notation.windows import unix_ms

FAILED_RATE = -1.0
# Ids of profiles have 16 bits.
PROFILE_IDS = 2**16
DTYPES: dict[str, np.dtype[Any]] = {
    "keys": np.dtype("<u8"),
    "offsets": np.dtype("<u4"),
    "sizes": np.dtype("<i8"),
    "profiles": np.dtype("<u2"),
    "links": np.dtype("<u4"),
    "lasts": np.dtype("<u4"),
}
ROW_FIELDS = {
    "source_id": pg_columns.INTEGER,
    "destination_id": pg_columns.INTEGER,
    "started_at": pg_columns.TIME,
    "bytes": pg_columns.INTEGER,
    "seconds": pg_columns.FLOAT,
    "ok": pg_columns.FLAG,
    "profile_id": pg_columns.INTEGER,
}


class Columns(NamedTuple):
    """The columns of a bucket, as the top of this module and DTYPES have them."""

    keys: NDArray[np.uint64]
    offsets: NDArray[np.uint32]
    sizes: NDArray[np.int64]
    profiles: NDArray[np.uint16]
    links: NDArray[np.uint32]
    lasts: NDArray[np.uint32]


def read_rows(
    size_class_id: int, spans: Iterable[tuple[datetime, datetime]], condition: Q | None = None
) -> NDArray[np.void]:
    """Read the raw results that started in these half-open spans; one SQL statement.

    Of these, those that a condition on their rows holds of.
    """
    within = Q(pk__in=[])
    for start, end in spans:
        within |= Q(started_at__gte=start, started_at__lt=end)
    counted = Q(state__in=[Transfer.State.DONE, Transfer.State.FAILED])
    rows = Transfer.objects.filter(within, counted, condition or Q(), size_class=size_class_id)
    return pg_columns.columns(rows.annotate(ok=Q(state=Transfer.State.DONE)), ROW_FIELDS)


def split(rows: NDArray[np.void], spans: Iterable[tuple[int, int]]) -> Iterator[NDArray[np.void]]:
    """Yield the rows that started in each of these half-open spans of Unix milliseconds."""
    started = pg_columns.unix_ms(rows["started_at"])
    order = np.argsort(started, kind="stable")
    for span in spans:
        first, past = np.searchsorted(started, span, sorter=order)
        yield rows[order[first:past]]


def rates(rows: NDArray[np.void]) -> NDArray[np.float32]:
    """Return bytes per second of raw rows (bytes, seconds, ok); FAILED_RATE for those not ok."""
    rate_column = np.full(len(rows), FAILED_RATE, dtype=np.float32)
    np.divide(
        rows["bytes"], rows["seconds"], out=rate_column, where=rows["ok"], casting="same_kind"
    )
    return rate_column


def encode(rows: NDArray[np.void], start: datetime) -> Columns:
    """Turn raw rows (ROW_FIELDS) into columns; offsets count from ``start``.

    A span of up to 49 days fits the offsets.
    """
    links = rows["source_id"].astype(np.uint64) << np.uint64(16)
    links |= rows["destination_id"].astype(np.uint64)
    keys = links << np.uint64(32) | rates(rows).view(np.uint32)
    offsets = (pg_columns.unix_ms(rows["started_at"]) - unix_ms(start)).astype(np.uint32)
    order = np.argsort(keys, kind="stable")
    keys, offsets = keys[order], offsets[order]
    return Columns(
        keys,
        offsets,
        rows["bytes"][order].astype(np.int64),
        rows["profile_id"][order].astype(np.uint16),
        *newest(keys, offsets),
    )


def newest(
    keys: NDArray[np.uint64], offsets: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the distinct links of sorted keys, and the largest offset of each."""
    if not keys.size:
        return np.empty(0, np.uint32), np.empty(0, np.uint32)
    links = keys >> np.uint64(32)
    is_first = np.concatenate([[True], links[1:] != links[:-1]])
    first, others = np.flatnonzero(is_first), np.flatnonzero(~is_first)
    lasts = offsets.take(first)
    # Before each of the others there are as many others as it has links less than places. That is
    # twice as fast as a maximum of each stretch.
    np.maximum.at(lasts, others - np.arange(1, len(others) + 1), offsets.take(others))
    return links.take(first).astype(np.uint32), lasts


def decode(column: str, payload: bytes | memoryview) -> NDArray[Any]:
    """Return a column as an array that shares the payload's memory."""
    return np.frombuffer(payload, DTYPES[column])
