"""Five weeks of made-up results before those of a running `make run`: `make screenshots`.

A sandbox that was started just now has no usual, and nothing that is slower than it. So each link
gets a past at about the rates that it has now, some of them at others until lately, and the one
that always fails a time when it did not. Its endpoints are simulated ones, and labelled as such.
"""

from __future__ import annotations

import csv
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TextIO

from sonar.units import MB
from sonar.windows import format_time
from tests.screenshots import CLASSES, ROOT, Link, Sonar, arguments, links_by, manage

FILE = ROOT / "build" / "history.csv"
PAST = timedelta(days=36)
# The sandbox's own results begin about here; its tests go on.
RECENT = timedelta(hours=1)
INTERVAL_HOURS = {"small": 8, "medium": 8, "large": 4}
BYTES = {"small": 100_000, "medium": 1_000_000, "large": 10_000_000}
SPREAD = 0.2
FAILURE_RATE = 0.01
FAILING_HOURS = 64
RATE_OF_FAILING_MB_S = 5.0
COLUMNS = ["id", "source", "destination", "started_at", "seconds", "bytes", "state"]
COLUMNS += ["error", "error_where", "mover", "mode", "ip_version", "origin"]
DONE, FAILED = ("done", "", ""), ("failed", "507 Insufficient Storage", "destination")


@dataclass(frozen=True)
class Past:
    """How a link was: its rate lately, and until so many hours ago so many times as much.

    One that is ``failing`` has failed ever since.
    """

    rate_mb_s: float
    factor: float = 1
    hours: float = 0
    failing: bool = False

    def result(self, draws: random.Random, age_hours: float, size: int) -> tuple[object, ...]:
        """Draw seconds, bytes, state, error and where it was."""
        lately = age_hours < self.hours
        is_failed = draws.random() < FAILURE_RATE or (lately and self.failing)
        rate = self.rate_mb_s * (1 if lately else self.factor) * draws.lognormvariate(0, SPREAD)
        return (round(size / rate / MB, 3), size, *(FAILED if is_failed else DONE))


# By place among all links, in the order of their names: what was faster or slower until lately.
CHANGES = {60: (3, 14), 130: (2.4, 9), 200: (2.8, 30), 270: (0.2, 19)}


def pasts(sonar: Sonar, size: str) -> dict[Link, Past]:
    """Give each link a past at the mean rate that it has so far."""
    answer = sonar.matrix(size=size, stat="mean")
    rates = {link: rate for rate, link in links_by(answer, "value")}
    found = {
        link: Past(rates[link], *CHANGES.get(place, ()))
        for place, link in enumerate(sorted(rates, key=Link.path))
    }
    failing = [link for failed, link in links_by(answer, "failed") if failed and link not in rates]
    return found | {
        link: Past(RATE_OF_FAILING_MB_S, hours=FAILING_HOURS, failing=True) for link in failing
    }


def moments(draws: random.Random, hours: float, end: datetime) -> Iterator[datetime]:
    started = end - PAST + timedelta(hours=draws.random() * hours)
    while started < end - RECENT:
        yield started
        started += timedelta(hours=hours * draws.uniform(0.9, 1.1))


def write(file: TextIO, sonar: Sonar, end: datetime) -> int:
    """Write the results of all links and size classes; return how many there are."""
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    count = 0
    for size in CLASSES:
        for link, past in pasts(sonar, size).items():
            draws = random.Random(f"{size} {link.path()}")
            for started in moments(draws, INTERVAL_HOURS[size], end):
                result = past.result(draws, (end - started) / timedelta(hours=1), BYTES[size])
                start = uuid.uuid4(), link.source, link.destination, format_time(started)
                writer.writerow([*start, *result, "http-tpc", "pull", 4, "test"])
                count += 1
    return count


def has_past(sonar: Sonar, end: datetime) -> bool:
    bounds = {"from": end - timedelta(days=20), "to": end - timedelta(days=10)}
    query = {name: format_time(moment) for name, moment in bounds.items()}
    states = sonar.get("matrix/", size="large", **query)["cells"]["state"]
    return any("measured" in row for row in states)


def main() -> None:
    sonar = Sonar(arguments().url)
    end = datetime.now(UTC).replace(microsecond=0)
    if has_past(sonar, end):
        print("There are results of weeks ago: none are made up.")
        return
    sonar.wait_until_full()
    FILE.parent.mkdir(exist_ok=True)
    with FILE.open("w", newline="") as file:
        count = write(file, sonar, end)
    print(f"{count:,} results of five weeks are made up.", flush=True)
    manage("import_results", str(FILE))
    manage("find_changes")


if __name__ == "__main__":
    main()
