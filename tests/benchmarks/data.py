"""Seeded results, day by day: uniform random links, lognormal rates, three in a hundred failed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from sonar.notation.units import MB
from tests.benchmarks.scale import END, SEED, Scale

# Ends, class and profile are numbers from 0; load.py turns them into the ids of the registry.
ROW = np.dtype(
    [
        ("started_us", "<i8"),
        ("bytes", "<i8"),
        ("seconds", "<f8"),
        ("source", "<u2"),
        ("destination", "<u2"),
        ("size_class", "u1"),
        ("profile", "u1"),
        ("failed", "?"),
    ]
)
DAY_US = 86_400 * 10**6
HOUR_US = 3_600 * 10**6
FAILURES = 0.03
PROFILES = 4
# Of the size classes that every Sonar begins with.
TEST_BYTES = np.array([20 * MB, 200 * MB, 2000 * MB])
SPREAD_OF_LINKS = 1.0
SPREAD_OF_SAMPLES = 0.5
TYPICAL_RATE = 10 * MB


@dataclass(frozen=True)
class Day:
    start: datetime
    rows: NDArray[np.void]


def days(scale: Scale) -> Iterator[Day]:
    """Make the rows of each day, oldest first, in order of time."""
    usual = usual_rates(scale.endpoints)
    for number in range(scale.days):
        start = scale.start + timedelta(days=number)
        rng = np.random.default_rng([SEED, number])
        started = np.sort(rng.integers(0, DAY_US, scale.rows_of_day(number)))
        yield Day(start, drawn(rng, unix_us(start) + started, usual))


def drawn(
    rng: np.random.Generator, started_us: NDArray[np.int64], usual: NDArray[np.float64]
) -> NDArray[np.void]:
    """Draw a result of any link and class for each of these moments."""
    count, endpoints = len(started_us), len(usual)
    rows = np.zeros(count, dtype=ROW)
    rows["started_us"] = started_us
    rows["source"] = source = rng.integers(0, endpoints, count)
    rows["destination"] = (source + rng.integers(1, endpoints, count)) % endpoints
    rows["size_class"] = rng.integers(0, len(TEST_BYTES), count)
    measure(rng, rows, usual)
    return rows


def hourly(endpoints: int) -> Day:
    """Make the samples of the last day, none of which failed.

    This is what a time series database is asked for as well.
    """
    start = END - timedelta(days=1)
    rows = of_each_link(np.random.default_rng([SEED, 10**6]), endpoints, start, hours=24)
    rows["failed"] = False
    return Day(start, rows)


def of_each_link(
    rng: np.random.Generator, endpoints: int, start: datetime, hours: int
) -> NDArray[np.void]:
    """Make one sample for each link in the middle of each hour, of the largest class."""
    ends = np.indices((endpoints, endpoints)).reshape(2, -1)
    source, destination = ends[:, ends[0] != ends[1]]
    rows = np.zeros(hours * len(source), dtype=ROW)
    hour = np.repeat(np.arange(hours), len(source))
    rows["started_us"] = unix_us(start) + hour * HOUR_US + HOUR_US // 2
    rows["source"], rows["destination"] = np.tile(source, hours), np.tile(destination, hours)
    rows["size_class"] = len(TEST_BYTES) - 1
    measure(rng, rows, usual_rates(endpoints))
    return rows


def usual_rates(endpoints: int) -> NDArray[np.float64]:
    """Return the median rate of each link in bytes per second."""
    rng = np.random.default_rng(SEED)
    return TYPICAL_RATE * rng.lognormal(0.0, SPREAD_OF_LINKS, (endpoints, endpoints))


def measure(rng: np.random.Generator, rows: NDArray[np.void], usual: NDArray[np.float64]) -> None:
    """Fill in what a transfer measures: sizes around those of the tests, rates around the usual."""
    count = len(rows)
    rows["bytes"] = TEST_BYTES[rows["size_class"]] * rng.uniform(0.5, 1.4, count)
    rate = usual[rows["source"], rows["destination"]]
    rows["seconds"] = rows["bytes"] / (rate * rng.lognormal(0.0, SPREAD_OF_SAMPLES, count))
    rows["profile"] = rng.integers(0, PROFILES, count)
    rows["failed"] = rng.random(count) < FAILURES


def unix_us(moment: datetime) -> int:
    return round(moment.timestamp()) * 10**6
