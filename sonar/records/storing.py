"""Storing rows that were checked: each id once, and in PostgreSQL's binary form by the column."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from sonar.notation.result_columns import STORED
from sonar.records.columns import EPOCH_2000, MICROSECOND, Batch, Rows
from sonar.results import store
from sonar.results.store import TYPES, Result, Stored

ROWS_PER_PIECE = 20_000
_NULL = -1
# What is the same in each imported result that is done; what is not named here or filled in by
# _encoded is NULL.
_AS_COPIED = {"": b"", (): b"\x01[]", False: b"\0"}  # jsonb, version 1
_SAME = {"state": b"done"} | {
    column.name: _AS_COPIED[column.empty]
    for column in STORED
    if not column.required and column.empty is not None
}
_FILLED_IN = {
    "id": "V16",
    "source_id": ">i8",
    "destination_id": ">i8",
    "size_class_id": ">i8",
    "profile_id": ">i8",
    "started_at": ">i8",
    "seconds": ">f8",
    "bytes": ">i8",
}
_HEX = np.array([f"{byte:02x}" for byte in range(256)], "S2")


def _row_as_copied() -> NDArray[np.void]:
    """Return the row of a result that is done, with all that is the same in each."""
    parts = [("fields", ">i2")]
    for name in TYPES:
        kind = _FILLED_IN.get(name, f"V{len(_SAME.get(name, b''))}")
        parts += [(f"{name} width", ">i4"), (name, kind)]
    row = np.zeros(1, np.dtype(parts))
    row["fields"] = len(TYPES)
    for name in TYPES:
        has_value = name in _FILLED_IN or name in _SAME
        row[f"{name} width"] = row.dtype[name].itemsize if has_value else _NULL
        if _SAME.get(name):
            row[name] = np.void(_SAME[name])
    return row


_ROW = _row_as_copied()


def store_batch(batch: Batch, profiles: Sequence[int]) -> Stored:
    """Store those of a batch that are new; ``profiles`` gives the id of each profile of the batch.

    Looks for all of its ids in one statement. The caller holds the lock of imports.
    """
    fresh = _new(batch.rows)
    alike = ~batch.rows["failed"] & (batch.rows["account"] < 0)
    _append(batch.rows[fresh & alike], profiles)
    store.copy_results(
        [
            _result(batch, number, error, profiles)
            for number, error in _others(batch, alike)
            if fresh[number]
        ]
    )
    return Stored(int(fresh.sum()), int((~fresh).sum()))


def _new(rows: Rows) -> NDArray[np.bool_]:
    """Say of each row whether its id is not stored, and stands here for the first time."""
    order = np.lexsort((rows["low"], rows["high"]))
    high, low = rows["high"][order], rows["low"][order]
    first = np.ones(len(rows), bool)
    first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    packed = _packed(high[first], low[first])
    fresh = np.ones(len(packed), bool)
    if stored := set(store.known_ids(_as_hex(packed))):
        fresh = np.array([UUID(bytes=row.tobytes()) not in stored for row in packed])
    new = np.zeros(len(rows), bool)
    # lexsort leaves like ids in the order in which they came: the first one counts.
    new[order[first][fresh]] = True
    return new


def _packed(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the sixteen bytes of each id, whatever the order of bytes of this machine."""
    return np.stack((high, low), axis=1).astype(">u8")


def _as_hex(packed: NDArray[np.uint64]) -> str:
    lines = np.zeros(len(packed), np.dtype([("id", "S32"), ("comma", "S1")]))
    lines["id"], lines["comma"] = _HEX[packed.view(np.uint8)].view("S32").ravel(), b","
    return str(lines.data.cast("B")[:-1], "ascii")


def _append(rows: Rows, profiles: Sequence[int]) -> None:
    if len(rows):
        store.append(_encoded(rows, np.array(profiles, np.int64)), _months(rows["started"]))


def _encoded(rows: Rows, profiles: NDArray[np.int64]) -> Iterator[bytes]:
    for start in range(0, len(rows), ROWS_PER_PIECE):
        piece = rows[start : start + ROWS_PER_PIECE]
        copied = np.repeat(_ROW, len(piece))
        copied["id"] = _packed(piece["high"], piece["low"]).view("V16").ravel()
        copied["source_id"], copied["destination_id"] = piece["source"], piece["destination"]
        copied["size_class_id"] = piece["size_class"]
        copied["profile_id"] = profiles[piece["profile"]]
        copied["started_at"] = piece["started"]
        copied["seconds"], copied["bytes"] = piece["seconds"], piece["bytes"]
        yield copied.tobytes()


def _months(started: NDArray[np.int64]) -> list[datetime]:
    times = started.astype("M8[us]") + (np.datetime64("2000-01-01", "us") - np.datetime64(0, "us"))
    months = np.unique(times.astype("M8[M]")).astype("M8[us]")
    since_2000 = (months - np.datetime64("2000-01-01", "us")).astype(int)
    return [_moment(int(microseconds)) for microseconds in since_2000]


def _moment(microseconds: int) -> datetime:
    return EPOCH_2000 + microseconds * MICROSECOND


def _others(batch: Batch, alike: NDArray[np.bool_]) -> Iterator[tuple[int, tuple[str, str]]]:
    """Give the numbers of those that are not alike, and why and where each failed if it did."""
    errors = iter(batch.errors)
    for number in np.flatnonzero(~alike).tolist():
        yield number, next(errors) if batch.rows["failed"][number] else ("", "")


def _result(batch: Batch, number: int, error: tuple[str, str], profiles: Sequence[int]) -> Result:
    row = batch.rows[number]
    return Result(
        id=UUID(int=int(row["high"]) << 64 | int(row["low"])),
        source_id=int(row["source"]),
        destination_id=int(row["destination"]),
        size_class_id=int(row["size_class"]),
        profile_id=profiles[row["profile"]],
        state="failed" if row["failed"] else "done",
        started_at=_moment(int(row["started"])),
        seconds=float(row["seconds"]),
        bytes=int(row["bytes"]),
        error=error[0],
        error_where=error[1],
        **(batch.accounts[row["account"]] if row["account"] >= 0 else {}),
    )
