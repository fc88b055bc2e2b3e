"""Files of result records: CSV with a header, in UTF-8, plain or gzip."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Protocol, cast

from sonar.records.record import (
    FIELDS,
    REQUIRED,
    TOLD_BESIDES,
    Record,
    WrongRecordError,
    from_text,
    unknown_fields,
)

GZIP_MAGIC = b"\x1f\x8b"
LINES = 5000  # in a batch
# In characters. The longest result has half as many: an error of nothing but quotes, each twice.
LONGEST_LINE = 50_000
# A batch of long lines has fewer of them.
BATCH_CHARACTERS = 5_000_000

Progress = Callable[[int], None]
Line = tuple[int, list[str]]


class BrokenFileError(Exception):
    """A file that cannot be read, or not beyond some line; its sentence says why."""


class TooLongError(Exception):
    """A line that is longer than any result, or does not end at all."""


@dataclass(slots=True)
class Read:
    """How many characters were read of the line of a result, which may span several of text."""

    of_line: int = 0


class Reader(Protocol):
    """What csv.reader returns."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...


def batches(path: Path, progress: Progress) -> Iterator[list[Line]]:
    """Give the cells of each line that is not blank, and its number: the first if it spans some.

    Reports the bytes of the file that were read. Raises BrokenFileError, after giving all
    lines before the place that cannot be read.
    """
    with _broken_in_words(path), path.open("rb") as file:
        text = io.TextIOWrapper(_unpacked(file), encoding="utf-8-sig", newline="")
        read = Read()
        reader, broken = csv.reader(_bounded(text, read), strict=True), None
        began = 1
        while not broken:
            ends: list[Line] = []
            try:
                with _broken_in_words(path):
                    # What came before an error is in the list: extend takes one by one.
                    ends.extend(_batch(reader, read))
            except TooLongError:
                broken = BrokenFileError(_too_long(ends[-1][0] + 1 if ends else began))
            except csv.Error as error:
                broken = BrokenFileError(_quoting(ends[-1][0] + 1 if ends else began, error))
            except BrokenFileError as error:
                broken = error
            if not (ends or broken):
                return
            numbers = [began, *(end + 1 for end, _ in ends)]
            lines = [
                (number, cells) for number, (_, cells) in zip(numbers, ends, strict=False) if cells
            ]
            began = numbers[-1]
            progress(file.tell())
            yield lines
        raise broken


def _bounded(text: IO[str], read: Read) -> Iterator[str]:
    """Give lines of text as they are, and none of which too much would have to be held."""
    for line in iter(partial(text.readline, LONGEST_LINE + 1), ""):
        read.of_line += len(line)
        if read.of_line > LONGEST_LINE:
            raise TooLongError
        yield line


def _batch(reader: Reader, read: Read) -> Iterator[Line]:
    """Give the cells of the lines of a batch, one by one, and the number of the last of each."""
    characters = 0
    for cells in islice(reader, LINES):
        yield reader.line_num, cells
        characters += read.of_line
        read.of_line = 0
        if characters > BATCH_CHARACTERS:
            return


def _too_long(began: int) -> str:
    return (
        f"line {began}: it has more than {LONGEST_LINE:,} characters, too many for a "
        'result. A cell that begins with " continues up to the next "'
    )


def _unpacked(file: io.BufferedReader) -> IO[bytes]:
    """Return what a file holds, unpacked if it begins as gzip does, whatever its name."""
    if file.peek(2)[:2] != GZIP_MAGIC:
        return file
    return cast(IO[bytes], gzip.GzipFile(fileobj=file, mode="rb"))


@contextmanager
def _broken_in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except EOFError as error:
        raise BrokenFileError("its gzip data end too early: the file is truncated") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BrokenFileError(f"its gzip data are damaged: {error}") from error
    except UnicodeDecodeError as error:
        raise BrokenFileError(_undecodable(path)) from error
    except OSError as error:
        raise BrokenFileError(f"it cannot be read: {error.strerror or error}") from error


def _undecodable(path: Path) -> str:
    """Find the line by reading once more: the decoder works in blocks and knows none."""
    with path.open("rb") as file:
        text = io.TextIOWrapper(_unpacked(file), "utf-8", errors="surrogateescape", newline="")
        for number, line in enumerate(iter(partial(text.readline, LONGEST_LINE + 1), ""), 1):
            if escaped := re.search("[\udc80-\udcff]", line):
                return f"line {number}: byte {ord(escaped[0]) - 0xDC00:#04x} is not UTF-8 text"
    return "it is not UTF-8 text"


def _quoting(began: int, error: csv.Error) -> str:
    if "expected after" in str(error):
        return f"line {began}: a quoted cell goes on after its closing quote; double inner quotes"
    return f'line {began}: a cell that begins there with " does not end: {error}'


def columns(header: Line | None) -> list[str]:
    """Check the names of the columns; raise BrokenFileError."""
    if header is None:
        raise BrokenFileError("it is empty: its first line must name the columns")
    number, names = header
    unknown = [name for name in names if name not in (*FIELDS, *TOLD_BESIDES)]
    missing = [name for name in REQUIRED if name not in names]
    if unknown:
        raise BrokenFileError(f"line {number}: {unknown_fields(unknown)}")
    if missing:
        raise BrokenFileError(f"line {number}: there is no column {', '.join(missing)}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BrokenFileError(f"line {number}: the column {twice} appears twice")
    return names


def record(names: list[str], cells: list[str]) -> Record:
    """Read one line; raise WrongRecordError."""
    if len(cells) != len(names):
        sentence = f"{len(cells)} cells, but the header names {len(names)} columns"
        raise WrongRecordError([("", sentence)])
    return from_text(dict(zip(names, cells, strict=True)))
