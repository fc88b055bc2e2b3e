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

from sonar.notation.enumeration import first_twice
from sonar.records.cells import PlainCells, plain
from sonar.records.record import (
    FIELDS,
    REQUIRED,
    TOLD_BESIDES,
    Record,
    WrongRecordError,
    from_text,
    shown,
    unknown_fields,
)
from sonar.records.source import Source, unpacked

LINES = 5000  # in a batch
# In characters. The longest result has half as many: an error of nothing but quotes, each twice.
LONGEST_LINE = 50_000
# What programs write in place of the commas, and what it is called.
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# A batch of long lines has fewer of them.
BATCH_CHARACTERS = 5_000_000

Progress = Callable[[int], None]
Line = tuple[int, list[str]]


class BrokenFileError(Exception):
    """A file that cannot be read, or not beyond some line; its sentence says why."""


class TooLongError(Exception):
    """A line that is longer than any result, or does not end at all."""


@dataclass(frozen=True, slots=True)
class PlainLines:
    """Lines whose cells are where they are in the text (sonar.records.cells)."""

    number: int
    """Of the first."""
    data: bytes
    cells: PlainCells

    def __iter__(self) -> Iterator[Line]:
        """Give them as if each had been read."""
        texts = self.data.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")
        return ((number, text.split(",")) for number, text in enumerate(texts, self.number))


@dataclass(slots=True)
class Read:
    """How many lines were read so far, and how many characters of that of a result.

    That one may span several of text.
    """

    lines: int = 0
    of_line: int = 0
    text: str = ""
    """The line of text that was read last."""


def batches(path: Path, progress: Progress) -> Iterator[list[Line] | PlainLines]:
    """Give the cells of each line that is not blank, and its number: the first if it spans some.

    The first batch that is not empty is the header, alone. Reports the bytes of the file that were
    read. Raises BrokenFileError, after giving all lines before the place that cannot be read.
    """
    with _broken_in_words(path), path.open("rb") as file:
        source, read, names = Source(file), Read(), list[str]()
        reader = csv.reader(_bounded(source.lines(), read), strict=True)
        while True:
            began = read.lines + 1
            data = source.block() if names and not source.is_within_block else b""
            cells = plain(data, names, LONGEST_LINE) if data else None
            if cells is not None:
                source.take()
                read.lines += len(cells)
                progress(file.tell())
                yield PlainLines(began, data, cells)
                continue
            lines, broken = _read(path, source, reader, read, is_header=not names)
            if not names and lines:
                names = lines[0][1]
            if not broken and read.lines < began:
                return
            progress(file.tell())
            yield lines
            if broken:
                raise broken


def _read(
    path: Path, source: Source, reader: Iterator[list[str]], read: Read, *, is_header: bool
) -> tuple[list[Line], BrokenFileError | None]:
    """Read lines one by one: one, or the rest of a block, and why it goes no further."""
    lines, broken, characters = list[Line](), None, 0
    began = read.lines + 1
    try:
        with _broken_in_words(path):
            for cells in islice(reader, 1 if is_header else LINES):
                if cells:
                    lines.append((began, cells))
                began = read.lines + 1
                characters += read.of_line
                read.of_line = 0
                if characters > BATCH_CHARACTERS or not source.is_within_block:
                    break
    except TooLongError:
        broken = BrokenFileError(
            f"line {began}: more than {LONGEST_LINE:,} characters, which is too long for a "
            'result. A cell that begins with " continues up to the next "'
        )
    except csv.Error as error:
        separator = _separator_of(read.text) if is_header else ""
        problem = _separated(separator) if separator else _quoting(error)
        broken = BrokenFileError(f"line {began}: {problem}")
    except BrokenFileError as error:
        broken = error
    return lines, broken


def _bounded(text: Iterator[str], read: Read) -> Iterator[str]:
    """Give lines of text as they are, and none of which too much would have to be held."""
    for line in text:
        read.of_line += len(line)
        if read.of_line > LONGEST_LINE:
            raise TooLongError
        read.lines, read.text = read.lines + 1, line
        yield line


@contextmanager
def _broken_in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except EOFError as error:
        raise BrokenFileError("the gzip data end too early: the file is truncated") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BrokenFileError(f"the gzip data are damaged: {error}") from error
    except UnicodeDecodeError as error:
        raise BrokenFileError(_undecodable(path)) from error
    except OSError as error:
        raise BrokenFileError(f"the file cannot be read: {error.strerror or error}") from error


def _undecodable(path: Path) -> str:
    """Find the line by reading once more: the decoder works in blocks and knows none."""
    with path.open("rb") as file:
        text = io.TextIOWrapper(unpacked(file), "utf-8", errors="surrogateescape", newline="")
        for number, line in enumerate(iter(partial(text.readline, LONGEST_LINE + 1), ""), 1):
            if number == 1 and line.startswith(("\udcff\udcfe", "\udcfe\udcff")):
                return "the file is in UTF-16: save it in UTF-8"
            if escaped := re.search("[\udc80-\udcff]", line):
                return f"line {number}: byte {ord(escaped[0]) - 0xDC00:#04x} is not UTF-8 text"
    return "the file is not UTF-8 text"


def _quoting(error: csv.Error) -> str:
    if "expected after" in str(error):
        return "text follows the closing quote of a cell: write a quote inside a cell as two quotes"
    return f'a cell that begins with " has no closing quote: {error}'


def columns(header: Line | None) -> list[str]:
    """Check the names of the columns; raise BrokenFileError."""
    if header is None:
        raise BrokenFileError("the file is empty: its first line must name the columns")
    number, names = header
    columns = (*FIELDS, *TOLD_BESIDES)
    separator = _separator_of(names[0]) if len(names) == 1 else ""
    unknown = [name for name in names if name not in columns]
    spaced = next((name for name in unknown if name.strip() in columns), "")
    missing = [name for name in REQUIRED if name not in names]
    is_case = {name.strip().lower() for name in names} >= {*REQUIRED}
    unnamed = next((number for number, name in enumerate(names, 1) if not name.strip()), 0)
    cause = "the table written with its index" if unnamed == 1 else "there an extra comma"
    twice = first_twice(names)
    is_none = len(missing) == len(REQUIRED)
    problems = [  # likely causes first
        (separator, _separated(separator)),
        (is_none and is_case, f"column names must be in lower case: {', '.join(FIELDS)}"),
        (is_none, f"this line must name the columns: {unknown_fields(unknown)}"),
        (unnamed, f"column {unnamed} has no name: was {cause}?"),
        (spaced, f"the column {shown(spaced)} has a space before or after its name"),
        (unknown, unknown_fields(unknown)),
        (missing, f"required columns are missing: {', '.join(missing)}"),
        (twice, f"the column {twice} appears twice"),
    ]
    if problem := next((sentence for is_so, sentence in problems if is_so), ""):
        raise BrokenFileError(f"line {number}: {problem}")
    return names


def _separator_of(text: str) -> str:
    """Return what separates the columns of a header in place of commas; empty if nothing does."""
    names = {separator: text.replace('"', "").split(separator) for separator in SEPARATORS}
    separated = (each for each in SEPARATORS if len({*REQUIRED} & {*names[each]}) > 1)
    return next(separated, "")


def _separated(separator: str) -> str:
    name = SEPARATORS.get(separator, "")
    return f"the columns are separated by {name}: use commas"


def record(names: list[str], cells: list[str]) -> Record:
    """Read one line; raise WrongRecordError."""
    if len(cells) != len(names):
        sentence = f"{len(cells)} cells, but the header names {len(names)} columns"
        raise WrongRecordError([("", sentence)])
    return from_text(dict(zip(names, cells, strict=True)))
