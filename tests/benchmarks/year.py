"""Files of new results, imported into a database that has a year of kept ones.

Runs as a process of its own on the database that its environment names:
`python -m tests.benchmarks.year SCALE FILE ROUNDS` prints rows per second of each round.
"""

import csv
import json
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path

import django
import numpy as np

from tests.benchmarks import data
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


def lines(scale: Scale, count: int, number: int) -> Iterator[list[object]]:
    from sonar.models import Endpoint

    names = sorted(Endpoint.objects.values_list("name", flat=True))
    rng = np.random.default_rng([SEED, number])
    span = scale.days * data.DAY_US
    started = data.unix_us(END) - np.sort(rng.integers(1, span, count))[::-1]
    for row in data.drawn(rng, started, data.usual_rates(scale.endpoints)):
        moment = END + timedelta(microseconds=int(row["started_us"]) - data.unix_us(END))
        failed = ["failed", "503 Service Unavailable", "destination"]
        yield [
            uuid.UUID(bytes=rng.bytes(16), version=4),
            names[row["source"]],
            names[row["destination"]],
            f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}",
            float(row["seconds"]),
            int(row["bytes"]),
            *(failed if row["failed"] else ["done", "", ""]),
            "fts",
            ["pull", "push"][row["profile"] % 2],
            4,
            "",
            [4, 6][row["profile"] // 2],
            "production",
            *("", "", "", ""),  # of what ran beside it nothing is known
        ]


def rates(scale: Scale, path: Path, rounds: int) -> list[float]:
    """Import new files by the command, checks and all; return the results per second of each."""
    from django.core.management import call_command

    found = []
    for number in range(rounds):
        count = write(path, scale, number)
        began = time.perf_counter()
        call_command("import_results", str(path), stdout=StringIO())
        found.append(count / (time.perf_counter() - began))
    return found


def main(name: str, path: str, rounds: str) -> None:
    django.setup()
    sys.stdout.write(json.dumps(rates(year_of(name), Path(path), int(rounds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
