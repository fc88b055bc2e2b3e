"""Checked results between checking and storing: in a temporary file, however many they are."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import Self

import numpy as np
import orjson

from sonar.records.columns import ROW, Batch

_LENGTHS = struct.Struct(">QQQ")


class Spool:
    """Batches in order, each with where its file was read to; 80 bytes a result on disk."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, batch: Batch, position: int) -> None:
        rows, errors = batch.rows.tobytes(), orjson.dumps(batch.errors)
        self._file.write(_LENGTHS.pack(len(rows), len(errors), position))
        self._file.write(rows)
        self._file.write(errors)

    def batches(self, rows: int) -> Iterator[tuple[Batch, int]]:
        """Give all that was written, in batches of about so many rows."""
        self._file.seek(0)
        waiting, failed, position = bytearray(), [], 0
        while head := self._file.read(_LENGTHS.size):
            size, errors, position = _LENGTHS.unpack(head)
            waiting += self._file.read(size)
            failed += [(why, where) for why, where in orjson.loads(self._file.read(errors))]
            if len(waiting) >= rows * ROW.itemsize:
                yield Batch(np.frombuffer(waiting, ROW), failed), position
                waiting, failed = bytearray(), []
        if waiting:
            yield Batch(np.frombuffer(waiting, ROW), failed), position
