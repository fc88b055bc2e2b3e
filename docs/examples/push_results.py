#!/usr/bin/env python3
"""Send new results to Sonar from cron: from a growing file, or from the files in a directory.

Files are CSV with a header (*.csv) or NDJSON (*.ndjson), others are ignored. Nothing is moved
or deleted: PLACE.pushed records how far each file was read, and results that Sonar refuses go to
PLACE.refused with the reason. A result without an id gets one derived from its fields, so that
nothing is stored twice, however often this runs.

Exit code: 0, 1 if results were refused or wait for the next run, 2 if the command line is wrong.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import json
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sonar_client import Record, Sonar, SonarError, batches, connected, read_results, which_sonar

OURS = uuid.UUID("0d3a3c0e-6a0c-4d0c-9a4f-2b1f7f0f5a11")
READ_BYTES = 32_000_000
# Sonar names 20 wrong results of a call; after so many calls all of the list is suspect.
MOST_CALLS = 10


@contextmanager
def only_one(place: Path) -> Iterator[None]:
    """Raise SonarError if another run is under way."""
    handle = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise SonarError(f"Another run is already processing {place}.") from error
    finally:
        os.close(handle)


def beside(place: Path, ending: str) -> Path:
    return place.with_name(place.name + ending)


def new_part(path: Path, start: int) -> tuple[bytes, int]:
    """Return the whole lines of a file from a byte on, and where they end."""
    with path.open("rb") as file:
        header = file.readline() if start and path.suffix == ".csv" else b""
        file.seek(start)
        lines = file.read(READ_BYTES)
    lines = lines[: lines.rfind(b"\n") + 1]
    while path.suffix == ".csv" and lines.count(b'"') % 2:  # a line break in an open quote
        lines = lines[: lines.rfind(b"\n", 0, -1) + 1]
    return header + lines if lines else b"", start + len(lines)


def results_of(path: Path, part: bytes) -> Iterator[Record]:
    """Give results with ids; what cannot be read as one goes on, to be refused with a reason."""
    text = part.decode("utf-8-sig", errors="replace")
    if path.suffix == ".csv":
        results = read_results(io.StringIO(text, newline=""))
    else:
        results = (of_line(line) for line in text.split("\n") if line.strip())
    for result in results:
        yield {"id": uuid.uuid5(OURS, json.dumps(result, sort_keys=True)), **result}


def of_line(line: str) -> Record:
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError):
        return {"not a result": line}


def push_list(sonar: Sonar, results: list[Record]) -> tuple[int, list[Record]]:
    """Store the results that are right; return how many are new, and those that are wrong."""
    refused: list[Record] = []
    for _ in range(MOST_CALLS):
        try:
            return sonar.push(results).accepted, refused
        except SonarError as error:
            why = {name.partition(".")[0]: some[0] for name, some in error.errors.items()}
            if not why:
                raise
        numbered = [(str(number), one) for number, one in enumerate(results)]
        refused += [{**one, "why": why[number]} for number, one in numbered if number in why]
        results = [one for number, one in numbered if number not in why]
    raise SonarError(
        f"More than {len(refused)} of {len(results) + len(refused):,} results are invalid."
    )


def push_file(sonar: Sonar, path: Path, known: Record, refusals: Path) -> tuple[int, int]:
    """Send what a file has beyond what is known of it; return how many are stored and refused."""
    state = path.stat()
    if known.get("inode") != state.st_ino or known["bytes"] > state.st_size:  # another file
        known.update(inode=state.st_ino, bytes=0)
    stored = refused = 0
    while (found := new_part(path, known["bytes"]))[0]:
        for batch in batches(results_of(path, found[0])):
            new, wrong = push_list(sonar, batch)
            write_down(refusals, wrong)
            stored, refused = stored + new, refused + len(wrong)
        known["bytes"] = found[1]
    return stored, refused


def write_down(path: Path, refused: list[Record]) -> None:
    if refused:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(one, default=str) + "\n" for one in refused)


def push_place(sonar: Sonar, place: Path) -> int:
    """Send what is new in a file or a directory; return how many results were refused."""
    notes, total = beside(place, ".pushed"), 0
    known: Record = json.loads(notes.read_text()) if notes.exists() else {}
    for path in sorted(place.iterdir()) if place.is_dir() else [place]:
        if path.suffix not in (".csv", ".ndjson"):
            continue
        try:
            of_file = known.setdefault(path.name, {})
            stored, refused = push_file(sonar, path, of_file, beside(place, ".refused"))
        finally:
            notes.write_text(json.dumps(known))
        if stored or refused:
            print(f"{path.name}: {stored:,} stored, {refused:,} rejected")
        total += refused
    return total


def main() -> int:
    known = argparse.ArgumentParser(
        description=__doc__,
        parents=[which_sonar()],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known.add_argument("place", type=Path, metavar="PLACE", help="a file or a directory of files")
    wanted = known.parse_args()
    try:
        with only_one(wanted.place):
            return int(push_place(connected(wanted), wanted.place.resolve()) > 0)
    except (SonarError, OSError) as error:
        print(f"push_results: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
