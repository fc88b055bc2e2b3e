"""Storing rows that were checked: each id once, and in PostgreSQL's binary form by the column."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from sonar.notation.result_columns import STORED
from sonar.records.columns import EPOCH_2000, MICROSECOND, Batch, Rows
from sonar.results import store
from sonar.results.store import TYPES, Result, Stored

ROWS_PER_PIECE = 20_000
# Fewer rows go through the triggers of the table: to copy by the month has costs of its own.
MANY = 20_000
# To make the form of an error costs as much as to copy so many rows one by one.
ROWS_FOR_A_FORM = 8
_HOUR = 3600 * 10**6
_BEYOND_IDS = 1 << 40
_NULL = -1
# What is the same in each imported result; what is not named here or filled in by _encoded is NULL.
_AS_COPIED = {"": b"", (): b"\x01[]", False: b"\0"}  # jsonb, version 1
_SAME = {
    column.name: _AS_COPIED[column.empty]
    for column in STORED
    if not column.required and column.empty is not None
}
_DONE = {"state": b"done", "error": b"", "error_where": b""}
_FILLED_IN = {
    "id": "V16",
    **dict.fromkeys(("source_id", "destination_id", "size_class_id", "profile_id"), ">i8"),
    "started_at": ">i8",
    "seconds": ">f8",
    "bytes": ">i8",
}
Error = tuple[str, str]


class Alike(NamedTuple):
    """Rows that COPY takes in one form: those that are done, or that failed for one reason."""

    form: NDArray[np.void]
    """One row as it is copied, with all that is the same in each."""
    numbers: NDArray[np.intp]
    """Which of the rows of a batch they are."""


def _form(outcome: Mapping[str, bytes]) -> NDArray[np.void]:
    same = {**_SAME, **outcome}
    parts = [("fields", ">i2")]
    for name in TYPES:
        kind = _FILLED_IN.get(name, f"V{len(same.get(name, b''))}")
        parts += [(f"{name} width", ">i4"), (name, kind)]
    form = np.zeros(1, np.dtype(parts))
    form["fields"] = len(TYPES)
    for name in TYPES:
        has_value = name in _FILLED_IN or name in same
        form[f"{name} width"] = form.dtype[name].itemsize if has_value else _NULL
        if same.get(name):
            form[name] = np.void(same[name])
    return form


_FORM_OF_DONE = _form(_DONE)


def store_batch(batch: Batch, profiles: Sequence[int]) -> Stored:
    """Store those of a batch that are new; ``profiles`` gives the id of each profile of the batch.

    Looks for all of its ids in one statement. The caller holds the lock of imports.
    """
    fresh = _new(batch.rows)
    rows = batch.rows
    errors = dict(zip(np.flatnonzero(rows["failed"]).tolist(), batch.errors, strict=True))
    alike = list(_alike(batch, fresh & (rows["account"] < 0), errors))
    _append(rows, alike, np.array(profiles, np.int64))
    others = fresh.copy()
    for _, numbers in alike:
        others[numbers] = False
    results = []
    for number in np.flatnonzero(others).tolist():
        row, error = rows[number], errors.get(number, ("", ""))
        results.append(
            Result(
                id=UUID(int=int(row["high"]) << 64 | int(row["low"])),
                source_id=int(row["source"]),
                destination_id=int(row["destination"]),
                size_class_id=int(row["size_class"]),
                profile_id=profiles[row["profile"]],
                state="failed" if row["failed"] else "done",
                started_at=EPOCH_2000 + int(row["started"]) * MICROSECOND,
                seconds=float(row["seconds"]),
                bytes=int(row["bytes"]),
                error=error[0],
                error_where=error[1],
                **(batch.accounts[row["account"]] if row["account"] >= 0 else {}),
            )
        )
    store.copy_results(results)
    ends = np.unique([rows[end][fresh] for end in ("source", "destination")])
    store.end_drafts(ends.tolist())
    return Stored(int(fresh.sum()), int((~fresh).sum()))


def _alike(batch: Batch, chosen: NDArray[np.bool_], errors: Mapping[int, Error]) -> Iterator[Alike]:
    """Give those chosen rows, in their order, whose form many have."""
    yield Alike(_FORM_OF_DONE, np.flatnonzero(chosen & ~batch.rows["failed"]))
    by_error = defaultdict[Error, list[int]](list)
    for number, error in errors.items():
        if chosen[number]:
            by_error[error].append(number)
    for (why, where), numbers in by_error.items():
        if len(numbers) >= ROWS_FOR_A_FORM:
            outcome = {"error": why.encode(), "error_where": where.encode()}
            yield Alike(_form({"state": b"failed", **outcome}), np.array(numbers))


def _new(rows: Rows) -> NDArray[np.bool_]:
    """Say of each row whether its id is not stored, and stands here for the first time."""
    order = np.lexsort((rows["low"], rows["high"]))
    high, low = rows["high"][order], rows["low"][order]
    first = np.ones(len(rows), bool)
    first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    packed = _packed(high[first], low[first])
    fresh = np.ones(len(packed), bool)
    if stored := set(store.known_ids(packed.tobytes())):
        fresh = np.array([UUID(bytes=row.tobytes()) not in stored for row in packed])
    new = np.zeros(len(rows), bool)
    # lexsort leaves like ids in the order in which they came: the first one counts.
    new[order[first][fresh]] = True
    return new


def _packed(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the sixteen bytes of each id, whatever the order of bytes of this machine."""
    return np.stack((high, low), axis=1).astype(">u8")


def _append(rows: Rows, alike: Sequence[Alike], profiles: NDArray[np.int64]) -> None:
    """Append rows: few through the triggers of the table, of many those that stand for all."""
    numbers = np.concatenate([rows_alike.numbers for rows_alike in alike])
    if not len(numbers):
        return
    # Months are counted from January 1970.
    times = rows["started"].astype("M8[us]") + (
        np.datetime64("2000-01-01", "us") - np.datetime64(0, "us")
    )
    months = times.astype("M8[M]").astype(np.int64)
    through = np.zeros(len(rows), bool)
    if len(numbers) <= MANY:
        through[numbers] = True
    else:  # of each hour and class, each end and each profile one
        hours = rows["started"][numbers] // _HOUR * _BEYOND_IDS + rows["size_class"][numbers]
        ends = (rows[name][numbers] for name in ("source", "destination", "profile"))
        for column in (hours, *ends):
            through[numbers[np.unique(column, return_index=True)[1]]] = True
    whole_months = [_month(number) for number in np.unique(months[numbers]).tolist()]
    store.append(_encoded(rows, _only(alike, through), profiles), whole_months)
    rest = np.zeros(len(rows), bool)
    rest[numbers] = ~through[numbers]
    for number in np.unique(months[rest]).tolist():
        of_month = _only(alike, rest & (months == number))
        store.append_marked(_encoded(rows, of_month, profiles), _month(number))


def _only(alike: Iterable[Alike], chosen: NDArray[np.bool_]) -> list[Alike]:
    return [Alike(form, numbers[chosen[numbers]]) for form, numbers in alike]


def _encoded(rows: Rows, alike: Iterable[Alike], profiles: NDArray[np.int64]) -> Iterator[bytes]:
    for form, numbers in alike:
        for start in range(0, len(numbers), ROWS_PER_PIECE):
            piece = rows[numbers[start : start + ROWS_PER_PIECE]]
            copied = np.repeat(form, len(piece))
            copied["id"] = _packed(piece["high"], piece["low"]).view("V16").ravel()
            copied["source_id"], copied["destination_id"] = piece["source"], piece["destination"]
            copied["size_class_id"] = piece["size_class"]
            copied["profile_id"] = profiles[piece["profile"]]
            copied["started_at"] = piece["started"]
            copied["seconds"], copied["bytes"] = piece["seconds"], piece["bytes"]
            yield copied.tobytes()


def _month(number: int) -> datetime:
    return datetime(1970 + number // 12, number % 12 + 1, 1, tzinfo=UTC)
