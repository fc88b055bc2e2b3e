"""Checked results between checking and storing: in a temporary file, however many they are."""

import struct
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import Any, Self

import numpy as np
import orjson

from sonar.records.columns import ROW, Batch

_LENGTHS = struct.Struct(">QQQQ")


class Spool:
    """Batches in order, each with where its file was read to; 80 bytes a result on disk."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, batch: Batch, position: int) -> None:
        parts = batch.rows.tobytes(), orjson.dumps(batch.errors), orjson.dumps(batch.accounts)
        self._file.write(_LENGTHS.pack(*map(len, parts), position))
        for part in parts:
            self._file.write(part)

    def batches(self, rows: int) -> Iterator[tuple[Batch, int]]:
        """Give all that was written, in batches of about so many rows."""
        self._file.seek(0)
        waiting, count, position = list[Batch](), 0, 0
        while head := self._file.read(_LENGTHS.size):
            *sizes, position = _LENGTHS.unpack(head)
            waiting.append(_read(*(self._file.read(size) for size in sizes)))
            count += len(waiting[-1].rows)
            if count >= rows:
                yield _joined(waiting), position
                waiting, count = [], 0
        if waiting:
            yield _joined(waiting), position


def _read(rows: bytes, errors: bytes, accounts: bytes) -> Batch:
    pairs = [(why, where) for why, where in orjson.loads(errors)]
    return Batch(np.frombuffer(rows, ROW), pairs, orjson.loads(accounts))


def _joined(batches: list[Batch]) -> Batch:
    rows = np.concatenate([batch.rows for batch in batches])
    errors, accounts, at = list[tuple[str, str]](), list[dict[str, Any]](), 0
    for batch in batches:
        part = rows["account"][at : at + len(batch.rows)]
        part[part >= 0] += len(accounts)
        at += len(batch.rows)
        errors += batch.errors
        accounts += batch.accounts
    return Batch(rows, errors, accounts)
