"""The cells of many lines of a file, by the column: of lines that were read, or of plain text.

Plain text is ASCII without quotes and has as many cells in each line: where they begin and end
is found by numpy, without an object for each. The csv module takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Texts = Sequence[str]
Places = NDArray[np.int32]

_COMMA, _NEWLINE, _RETURN = b",\n\r"
# Beyond this, a column is as wide as its longest cell, and the rest of it is nothing.
_WIDEST = 1_000
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)


class OtherwiseError(Exception):
    """A batch that is not plain, or not right: to know which, read its rows."""


def require(holds: object) -> None:
    if not holds:
        raise OtherwiseError


class ReadCells:
    """Of lines whose cells were read one by one; raises OtherwiseError if one has others.

    Both kinds give cells by the names of columns; those of a column that is not there are empty.
    """

    def __init__(self, lines: Sequence[Sequence[str]], names: Sequence[str]) -> None:
        require(set(map(len, lines)) == {len(names)})
        self._count = len(lines)
        self._columns: dict[str, Texts] = dict(zip(names, zip(*lines, strict=True), strict=True))

    def __len__(self) -> int:
        return self._count

    def letters(self, name: str, widths: tuple[int, ...]) -> NDArray[np.uint8]:
        """Return cells that have the same width, one of these, as a table of ASCII letters."""
        texts = self.texts(name)
        width = len(texts[0])
        require(width in widths and set(map(len, texts)) == {width})
        joined = "".join(texts)
        require(joined.isascii())
        return np.frombuffer(joined.encode(), np.uint8).reshape(len(texts), width)

    def texts(self, name: str) -> Texts:
        return self._columns.get(name, ("",) * self._count)

    def of_lines(self, name: str, numbers: list[int]) -> list[str]:
        texts = self.texts(name)
        return [texts[number] for number in numbers]

    def filled(self, name: str) -> int:
        return sum(map(bool, self._columns.get(name, ())))

    def distinct(self, name: str) -> tuple[list[str], NDArray[np.intp]]:
        """Return what stands in a column, each text once, and which of them each line has."""
        texts = self.texts(name)
        codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
        return list(codes), np.fromiter(map(codes.__getitem__, texts), np.intp, len(texts))

    def line(self, number: int) -> dict[str, str]:
        return {name: texts[number] for name, texts in self._columns.items()}


@dataclass(frozen=True, slots=True)
class PlainCells:
    """Of plain text: where each cell begins and ends in it, by line and column."""

    text: NDArray[np.uint8]
    names: dict[str, int]
    begins: Places
    ends: Places

    def __len__(self) -> int:
        return len(self.begins)

    def letters(self, name: str, widths: tuple[int, ...]) -> NDArray[np.uint8]:
        begins, lengths = self._places(name)
        width = int(lengths[0])
        require(width in widths and (lengths == width).all())
        places = np.arange(width, dtype=np.int32)
        return self.text.take(np.add.outer(begins, places))

    def texts(self, name: str) -> Texts:
        table = self._table(name)
        return b",".join(table.view(f"S{table.shape[1]}").ravel().tolist()).decode().split(",")

    def of_lines(self, name: str, numbers: list[int]) -> list[str]:
        begins, lengths = self._places(name)
        return [
            self.text[begin : begin + length].tobytes().decode()
            for begin, length in zip(
                begins[numbers].tolist(), lengths[numbers].tolist(), strict=True
            )
        ]

    def filled(self, name: str) -> int:
        return int(np.count_nonzero(self._places(name)[1]))

    def distinct(self, name: str) -> tuple[list[str], NDArray[np.intp]]:
        if not self.filled(name):
            return [""], np.zeros(len(self), np.intp)
        words = self._table(name).view(np.uint64)
        if (words == words[0]).all():
            return self.of_lines(name, [0]), np.zeros(len(self), np.intp)
        mixed = words[:, 0].copy()
        for column in range(1, words.shape[1]):
            mixed = mixed * _MIX + words[:, column]
        _, first, codes = np.unique(mixed, return_index=True, return_inverse=True)
        require((words == words[first[codes]]).all())
        return self.of_lines(name, first.tolist()), codes

    def line(self, number: int) -> dict[str, str]:
        return {name: self.of_lines(name, [number])[0] for name in self.names}

    def _places(self, name: str) -> tuple[Places, Places]:
        """Return where the cells of a column begin, and how long they are."""
        column = self.names.get(name)
        if column is None:
            nothing = np.zeros(len(self), np.int32)
            return nothing, nothing
        begins = self.begins[:, column]
        return begins, self.ends[:, column] - begins

    def _table(self, name: str) -> NDArray[np.uint8]:
        """Return a column as letters, behind which is nothing up to a multiple of eight."""
        begins, lengths = self._places(name)
        require(0 <= (longest := int(lengths.max())) <= _WIDEST)
        places = np.arange(max(8, -(-longest // 8) * 8), dtype=np.int32)
        table = self.text.take(begins[:, None] + places, mode="clip")
        table *= places < lengths[:, None]
        return table


Cells = ReadCells | PlainCells


def plain(data: bytes, names: Sequence[str], longest: int) -> PlainCells | None:
    """Find the cells of whole lines; None if the text is not plain or a line is too long."""
    if not data.isascii() or b'"' in data or b"\0" in data or not data.endswith(b"\n"):
        return None
    text = np.frombuffer(data, np.uint8)
    marks = np.flatnonzero((text == _COMMA) | (text == _NEWLINE)).astype(np.int32)
    if len(marks) % len(names):
        return None
    ends = marks.reshape(-1, len(names))
    newlines = ends[:, -1].copy()
    if data.count(b"\n") != len(ends) or (text[newlines] != _NEWLINE).any():
        return None
    begins = np.empty_like(ends)
    begins[:, 1:] = ends[:, :-1] + 1
    begins[0, 0], begins[1:, 0] = 0, newlines[:-1] + 1
    if returns := data.count(b"\r"):
        if returns != len(ends) or (text[newlines - 1] != _RETURN).any():
            return None
        ends[:, -1] -= 1
    if (newlines - begins[:, 0]).max() > longest:
        return None
    return PlainCells(text, {name: place for place, name in enumerate(names)}, begins, ends)
