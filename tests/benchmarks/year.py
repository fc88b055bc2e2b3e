"""A year of kept results in a database of its own, and files of new ones imported into it.

Runs as processes of their own: `python -m tests.benchmarks.year fill SCALE` fills the database
that its environment names, `... import SCALE FILE ROUNDS` prints rows per second of each round.
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


def fill(scale: Scale) -> None:
    from django.core.management import call_command

    from tests.benchmarks import load, registry

    call_command("migrate", verbosity=0)
    ids = registry.register(scale.endpoints)
    load.load(data.days(scale), ids, lambda _: None)
    load.vacuum("sonar_transfer")


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
    rows = np.zeros(count, data.ROW)
    span = scale.days * data.DAY_US
    rows["started_us"] = data.unix_us(END) - np.sort(rng.integers(1, span, count))[::-1]
    rows["source"], rows["destination"] = data.random_links(rng, scale.endpoints, count)
    rows["size_class"] = rng.integers(0, len(data.TEST_BYTES), count)
    data.measure(rng, rows, data.usual_rates(scale.endpoints))
    for row in rows:
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


def main(what: str, name: str, *more: str) -> None:
    django.setup()
    if what == "fill":
        fill(year_of(name))
    else:
        path, rounds = more
        sys.stdout.write(json.dumps(rates(year_of(name), Path(path), int(rounds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
