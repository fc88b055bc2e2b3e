"""One link over time: its results in a window, one by one and in buckets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrix.query.catalogue import LINK_QUANTILES
from matrix.query.filters import Filter
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.samples.quantiles import quantiles
from matrix.statistics.samples.reduce import ratio
from matrix.store import transfers
from matrix.store.read_plan import DAY_MS, HOUR_MS, Span, floor
from sonar.database import pg_columns
from sonar.notation.units import MB
from sonar.notation.windows import Window
from sonar.results import segments

BUCKETS = {"5m": HOUR_MS // 12, "1h": HOUR_MS, "6h": 6 * HOUR_MS, "1d": DAY_MS}
AUTO = "auto"
# How many of each it takes: 30 days by the hour, so that a change is seen at its hour.
MOST_IF_AUTO = {"5m": 200, "1h": 750, "6h": 750, "1d": 30_000}
# Beyond this nothing is answered any more.
MOST = 30_000
# A table for people has fewer lines.
MOST_IN_TABLE = 200


@dataclass(frozen=True)
class BucketPoints:
    """Single results in the order of time: Unix s, rates in MB/s (NaN for a failed one), states."""

    started: Floats
    rate: Floats
    ok: Flags


@dataclass(frozen=True)
class TimeSeries:
    """The results of a link by bucket, empty ones too: counts 0 and NaN. Rates in MB/s.

    ``starts`` are when the buckets begin, in Unix s and in full minutes, hours or days of
    UTC; the first and the last reach over the edge of the window, but hold no result from
    outside of it. ``rates`` are statistics by name, those that the catalogue has of a link.
    """

    bucket: str
    starts: Floats
    ok: Integers
    failed: Integers
    rates: dict[str, Floats]
    points: BucketPoints


def build(
    link: tuple[int, int],
    size: str,
    window: Window,
    bucket: str = AUTO,
    filters: Sequence[Filter] = (),
) -> TimeSeries:
    """Read a link with one SQL statement; raise ValueError for more than MOST buckets."""
    cut = cut_for(window, bucket)
    rows = transfers.read_links([link], window, filters, size)
    return in_buckets(pg_columns.unix_ms(rows["started_at"]), segments.rates(rows), cut)


@dataclass(frozen=True)
class Cut:
    """How a window is cut into buckets: the name of their length, ms of the first, how many."""

    bucket: str
    first: int
    count: int


def cut_for(window: Window, bucket: str = AUTO) -> Cut:
    """Cut a window into buckets; raise ValueError for more than MOST."""
    span = Span.of(window)
    if bucket == AUTO:
        bucket = finest(span, MOST_IF_AUTO)
    width = BUCKETS[bucket]
    count = count_of(span, width)
    if count > MOST:
        raise ValueError(
            f"a bucket size of {bucket} divides the time range into {count} buckets: at most "
            f"{MOST} buckets can be shown"
        )
    return Cut(bucket, floor(span.start, width), count)


def check_length(query: MatrixQuery) -> None:
    """Raise BadQueryError for a window that is too long to be drawn, on either side."""
    for parameter, sides in (("from", query), ("compare", query.compare)):
        if not (sides and sides.start and sides.end):
            continue
        if count_of(Span.of(Window(sides.start, sides.end)), BUCKETS["1d"]) > MOST:
            sentence = f"{parameter} must be at most {MOST:,} days before the end of the time range"
            raise BadQueryError({parameter: [f"{sentence}, the maximum for the link page."]})


def in_buckets(started: Integers, rates: NDArray[np.float32], cut: Cut) -> TimeSeries:
    """Put results into buckets: when each started (Unix ms, ascending), its rate in bytes/s."""
    width = BUCKETS[cut.bucket]
    bucket = (started - cut.first) // width
    done = rates >= 0
    tests = np.bincount(bucket, minlength=cut.count)
    ok = np.bincount(bucket[done], minlength=cut.count)
    total = np.bincount(bucket[done], rates[done], minlength=cut.count)
    fractions = list(LINK_QUANTILES.values())
    parts = quantiles(rates.view(np.uint32), np.cumsum(tests) - tests, tests, ok, fractions)
    of_link = {"mean": ratio(total, ok), **dict(zip(LINK_QUANTILES, parts, strict=True))}
    return TimeSeries(
        cut.bucket,
        (cut.first + np.arange(cut.count) * width) / 1000,
        ok,
        tests - ok,
        {name: values / MB for name, values in of_link.items()},
        BucketPoints(started / 1000, np.where(done, rates / np.float64(MB), np.nan), done),
    )


def cut_for_table(window: Window) -> Cut:
    """Cut a window into as many buckets as somebody may want to read."""
    return cut_for(window, finest(Span.of(window), dict.fromkeys(BUCKETS, MOST_IN_TABLE)))


def finest(span: Span, most: Mapping[str, int]) -> str:
    """Return the finest bucket of which there are not too many, else the day."""
    fine = (name for name, width in BUCKETS.items() if count_of(span, width) <= most[name])
    return next(fine, "1d")


def count_of(span: Span, width: int) -> int:
    return -(-(span.end - floor(span.start, width)) // width)
