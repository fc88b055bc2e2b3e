"""Files without an end in them: a line, a cell, a record. None takes more memory than any other."""

import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sonar.records import files
from sonar.records.files import LONGEST_LINE, BrokenFileError

MB = 10**6
HEADER = b"id,source,destination,started_at,seconds,bytes,state,mover\n"
# What all lines of such a file come to, unpacked: more than may be held.
ENDLESS_MB = 250
MOST_MB = 120
# Reads files as an import does and says by how much that raised what it ever held.
READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 * 10**9,) * 2)
from pathlib import Path
import django
django.setup()
from sonar.records import files
def held():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
before = held()
for path in sys.argv[1:]:
    try:
        for lines in files.batches(Path(path), lambda position: None):
            pass
        print("read")
    except files.BrokenFileError as error:
        print(error)
    print(held() - before)
"""


def packed(path: Path, *pieces: tuple[bytes, int]) -> Path:
    """Write some bytes so many times each, in little room."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(HEADER)
        for piece, times in pieces:
            block = piece * max(1, MB // len(piece))
            for _ in range(max(1, times * len(piece) // len(block))):
                file.write(block)
    return path


def read(*paths: Path) -> Iterator[tuple[str, int]]:
    """Read files in a process of their own; say of each what was said, and the most MB by then."""
    done = subprocess.run(
        [sys.executable, "-c", READ, *paths], capture_output=True, text=True, check=True
    )
    lines = iter(done.stdout.splitlines())
    return ((said, int(held)) for said, held in zip(lines, lines, strict=True))


ENDLESS = {
    "line": b"0",
    "text": "ñ".encode(),
    "cells over lines": b'"\n",',
    "cell over lines": b'"a\nb',
    "no text": b"\xff",
}


@pytest.mark.long
def test_what_has_no_end_is_refused_by_its_line_before_it_is_held(tmp_path: Path) -> None:
    paths = {
        kind: packed(tmp_path / f"{kind}.csv.gz", (piece, ENDLESS_MB * MB // len(piece)))
        for kind, piece in ENDLESS.items()
    }
    assert max(path.stat().st_size for path in paths.values()) < 8 * MB
    for kind, (said, held) in zip(paths, read(*paths.values()), strict=True):
        assert said.startswith("line 2: "), kind
        assert held < MOST_MB, kind


@pytest.mark.long
def test_long_lines_are_not_held_by_the_thousand(tmp_path: Path) -> None:
    """A cell costs more than its comma: these would come to four times what is allowed."""
    long = b"," * (LONGEST_LINE - 10) + b"\n"
    ((said, held),) = read(packed(tmp_path / "long.csv.gz", (long, 1000)))
    assert said == "read"
    assert held < MOST_MB


def test_the_longest_result_that_there_can_be_is_a_line(tmp_path: Path) -> None:
    """Its error has 10,000 characters, each of them a quote that stands there twice."""
    error, name = '"' + '""' * 10_000 + '"', "A" * 80
    id_, moment = "6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e60", "2026-11-20T04:00:00.000000Z"
    line = ",".join([id_, name, name, moment, error, *["1234567890.123456789"] * 20])
    assert len(line) * 2 < LONGEST_LINE
    path = tmp_path / "longest.csv"
    path.write_text(f"header\n{line}\n")
    _, (number, cells) = lines_of(path)
    assert number == 2
    assert cells[4] == '"' * 10_000


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_a_line_may_have_so_many_characters_and_no_more(tmp_path: Path, end: str) -> None:
    path = tmp_path / "some.csv"
    path.write_text(f"a{end or chr(10)}{'b' * (LONGEST_LINE - len(end))}{end}", newline="")
    assert [number for number, _ in lines_of(path)] == [1, 2]
    path.write_text(f"a\n\n{'b' * (LONGEST_LINE + 1)}{end}c\n", newline="")
    with pytest.raises(BrokenFileError, match=r"^line 3: more than 50,000 characters"):
        lines_of(path)


def lines_of(path: Path) -> list[files.Line]:
    return [line for batch in files.batches(path, lambda position: None) for line in batch]


def test_lines_are_counted_one_by_one_however_many_there_are(tmp_path: Path) -> None:
    """What was counted of one line is no part of the next."""
    path = tmp_path / "many.csv"
    path.write_text(("b" * 999 + "\n") * 12_000)
    assert [number for number, _ in lines_of(path)] == list(range(1, 12_001))
