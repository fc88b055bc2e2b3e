"""Files of new results, imported into a database that has a year of kept ones.

Runs as a process of its own on the database that its environment names:
`python -m tests.benchmarks.year SCALE FILE ROUNDS` prints the seconds of each import, and then of
copies of the same rows by PostgreSQL alone: with the triggers of the table, and without.
"""

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from io import StringIO
from itertools import repeat
from pathlib import Path

import django
import numpy as np
from numpy.typing import NDArray

from tests.benchmarks import copy_rows, data
from tests.benchmarks.measured import elapsed
from tests.benchmarks.scale import END, SCALES, SEED, Scale

DAYS = 390
# New results, beside those that are kept.
SHARE = 10
# Of a record; what a transfer says of itself besides is left out, as in results from elsewhere.
COLUMNS = 19


def year_of(name: str) -> Scale:
    """Return the rows of a scale, spread over a year."""
    return replace(SCALES[name], days=DAYS)


def write(path: Path, scale: Scale, number: int) -> int:
    """Write a file of new results from all over the year, oldest first; return how many."""
    from sonar.records.record import FIELDS

    count = scale.rows // SHARE
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS[:COLUMNS])
        writer.writerows(lines(scale, count, number))
    return count


def rows_of(scale: Scale, count: int, number: int) -> NDArray[np.void]:
    """Draw results from all over the year, oldest first."""
    rng = np.random.default_rng([SEED, number])
    span = scale.days * data.DAY_US
    started = data.unix_us(END) - np.sort(rng.integers(1, span, count))[::-1]
    return data.drawn(rng, started, data.usual_rates(scale.endpoints))


def lines(scale: Scale, count: int, number: int) -> Iterator[tuple[object, ...]]:
    from sonar.models import Endpoint

    names = np.array(sorted(Endpoint.objects.values_list("name", flat=True)))
    rows = rows_of(scale, count, number)
    failed = ["failed", "503 Service Unavailable", "destination"]
    ends = zip(*[failed if one else ["done", "", ""] for one in rows["failed"]], strict=True)
    profiles = rows["profile"]
    return zip(
        identifiers(np.random.default_rng([SEED, 1, number]), count),
        names[rows["source"]].tolist(),
        names[rows["destination"]].tolist(),
        np.datetime_as_string(rows["started_us"].astype("M8[us]"), timezone="UTC").tolist(),
        rows["seconds"].tolist(),
        rows["bytes"].tolist(),
        *ends,
        repeat("fts"),
        np.array(["pull", "push"])[profiles % 2].tolist(),
        repeat(4),
        repeat(""),
        np.array([4, 6])[profiles // 2].tolist(),
        repeat("production"),
        *repeat(repeat(""), 4),  # of what ran beside it nothing is known
        strict=False,
    )


def identifiers(rng: np.random.Generator, count: int) -> list[str]:
    """Draw identifiers as text."""
    drawn = np.frombuffer(bytearray(rng.bytes(16 * count)), dtype=np.uint8).reshape(count, 16)
    drawn[:, 6] = drawn[:, 6] & 0x0F | 0x40
    drawn[:, 8] = drawn[:, 8] & 0x3F | 0x80
    text = drawn.tobytes().hex()
    every = (text[first : first + 32] for first in range(0, len(text), 32))
    return [f"{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:]}" for one in every]


def imports(scale: Scale, path: Path, rounds: int) -> list[float]:
    """Import new files by the command, checks and all; return the seconds of each."""
    from django.core.management import call_command

    found = []
    for number in range(rounds):
        write(path, scale, number)
        arguments = ("import_results", str(path))
        found.append(elapsed(partial(call_command, *arguments, stdout=StringIO())))
    return found


def copies(scale: Scale, rounds: int, *, triggers: bool) -> list[float]:
    """Copy the rows of the same files with other ids, each committed; return the seconds of each.

    They are prepared beforehand as PostgreSQL's binary COPY takes them: nobody can be faster.
    """
    from tests.benchmarks import load, registry

    ids, found = registry.known_ids(), []
    for number in range(rounds):
        rows = rows_of(scale, scale.rows // SHARE, number)
        rng = np.random.default_rng([SEED, 2 + triggers, number])
        pieces = [
            copy_rows.encode(rows[first : first + load.CHUNK], ids, rng)
            for first in range(0, len(rows), load.CHUNK)
        ]
        found.append(elapsed(partial(copy, pieces, triggers=triggers)))
    return found


def copy(pieces: list[bytes], *, triggers: bool) -> None:
    from django.db import connection, transaction

    from sonar.database import pg_copy

    statement = f"COPY sonar_transfer ({', '.join(copy_rows.COLUMNS)}) FROM STDIN (FORMAT BINARY)"
    with transaction.atomic(), connection.cursor() as cursor:
        if not triggers:
            cursor.execute("SET LOCAL session_replication_role = replica")
        with pg_copy.copying(statement) as stream:
            for piece in (pg_copy.SIGNATURE, *pieces, pg_copy.TRAILER):
                stream.write(piece)


def main(name: str, path: str, rounds: str) -> None:
    django.setup()
    scale, times = year_of(name), int(rounds)
    found = {
        "imports": imports(scale, Path(path), times),
        # They differ by less than imports do, and those with triggers are no goal.
        "bare": copies(scale, min(times, 3), triggers=False),
        "with triggers": copies(scale, 1, triggers=True),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
