"""Rows as PostgreSQL's binary COPY wants them, made by numpy without a Python object for each."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

EPOCH_2000_US = 946_684_800 * 10**6
EMPTY_LIST = b"\x01[]"  # jsonb, version 1
NULL = -1
# What a failed row says, and what a row that is done says in its place.
ERROR = b"503 Service Unavailable"
WHERE = b"destination"
WORKER = b"bench"

# Column -> type with room for the longest value; NULL columns have no value at all.
COLUMNS = {
    "id": "V16",
    "source_id": ">i8",
    "destination_id": ">i8",
    "size_class_id": ">i8",
    "profile_id": ">i8",
    "state": "S6",
    "started_at": ">i8",
    "seconds": ">f8",
    "bytes": ">i8",
    "first_byte_seconds": "V0",
    "samples": "S3",
    "remote_connections": "S3",
    "error": f"S{len(ERROR)}",
    "error_where": f"S{len(WHERE)}",
    "error_is_permanent": "?",
    "worker": f"S{len(WORKER)}",
}
# Width of those columns whose width depends on whether the transfer failed.
WIDTHS = {
    False: {"state": 4, "error": 0, "error_where": 0},
    True: {"state": 6, "error": len(ERROR), "error_where": len(WHERE)},
}


@dataclass(frozen=True)
class Ids:
    """The ids of what the rows number from 0."""

    endpoints: NDArray[np.int64]
    size_classes: NDArray[np.int64]
    profiles: NDArray[np.int64]


def row_of(fields: Mapping[str, str]) -> np.dtype[np.void]:
    """Return the layout of a row of a binary COPY: a field count, each value behind its length."""
    parts = [("fields", ">i2")]
    for name, kind in fields.items():
        parts += [(f"{name} width", ">i4"), (name, kind)]
    return np.dtype(parts)


LAYOUT = row_of(COLUMNS)


def template(*, failed: bool) -> NDArray[np.void]:
    """Return one row with all that does not differ from row to row."""
    row = np.zeros(1, dtype=LAYOUT)
    row["fields"] = len(COLUMNS)
    for name in COLUMNS:
        row[f"{name} width"] = WIDTHS[failed].get(name, LAYOUT[name].itemsize)
    row["first_byte_seconds width"] = NULL
    row["samples"] = row["remote_connections"] = EMPTY_LIST
    row["worker"] = WORKER
    row["state"] = b"failed" if failed else b"done"
    if failed:
        row["error"], row["error_where"] = ERROR, WHERE
    return row


def offset_of(name: str) -> int:
    names = list(LAYOUT.names or ())
    return sum(LAYOUT[before].itemsize for before in names[: names.index(name)])


def kept_bytes(*, failed: bool) -> NDArray[np.bool_]:
    """Return which bytes of the widest layout are in such a row."""
    kept = np.ones(LAYOUT.itemsize, dtype=bool)
    for name, width in WIDTHS[failed].items():
        offset = offset_of(name)
        kept[offset + width : offset + LAYOUT[name].itemsize] = False
    return kept


# Not by np.concatenate: it would turn the bytes of numbers into the machine's order.
TEMPLATES = np.zeros(2, dtype=LAYOUT)
TEMPLATES[:1], TEMPLATES[1:] = template(failed=False), template(failed=True)
KEPT = np.stack([kept_bytes(failed=failed) for failed in (False, True)])


def encode(rows: NDArray[np.void], ids: Ids, rng: np.random.Generator) -> bytes:
    """Return the rows (data.ROW) as COPY takes them, without its header and trailer."""
    failed = rows["failed"].astype(np.intp)
    wide = TEMPLATES[failed]
    wide["id"] = np.frombuffer(rng.bytes(16 * len(rows)), dtype="V16")
    wide["source_id"] = ids.endpoints[rows["source"]]
    wide["destination_id"] = ids.endpoints[rows["destination"]]
    wide["size_class_id"] = ids.size_classes[rows["size_class"]]
    wide["profile_id"] = ids.profiles[rows["profile"]]
    wide["started_at"] = rows["started_us"] - EPOCH_2000_US
    wide["seconds"] = rows["seconds"]
    wide["bytes"] = rows["bytes"]
    table = wide.view(np.uint8).reshape(len(wide), LAYOUT.itemsize)
    return table[KEPT[failed]].tobytes()
