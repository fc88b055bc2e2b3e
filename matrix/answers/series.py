"""One link over time: its results in a window, one by one and in buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from matrix.query.catalogue import LINK_QUANTILES
from matrix.query.filters import Filter
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.quantiles import quantiles
from matrix.statistics.reduce import ratio
from matrix.store.profile_filters import made_so
from matrix.store.read_plan import DAY_MS, HOUR_MS, Span, floor
from sonar import pg_copy, segments
from sonar.models import SizeClass, Transfer
from sonar.units import MB
from sonar.windows import Window

BUCKETS = {"5m": HOUR_MS // 12, "1h": HOUR_MS, "6h": 6 * HOUR_MS, "1d": DAY_MS}
AUTO = "auto"
# What it chooses from; the fourth is for pictures that know how much there is to put in.
CHOSEN = ("5m", "1h", "1d")
# A picture of more is no clearer. Beyond the second number nothing is answered any more.
MOST_IF_AUTO = 200
MOST = 30_000
FILLED = 5
FEWEST_CUTS = 4
FIELDS = {
    "started_at": pg_copy.TIME,
    "bytes": pg_copy.INTEGER,
    "seconds": pg_copy.FLOAT,
    "ok": pg_copy.FLAG,
}


@dataclass(frozen=True)
class BucketPoints:
    """Single results in the order of time: when each started (Unix s), its rate, its state.

    Rates are in MB/s, exact to float32, as everywhere in the matrix; NaN for a failed one.
    """

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
    """Read a link, given by the ids of its ends, with one SQL statement.

    From raw rows: a link has few, and an index finds them, where segments hold those of all
    links. Raises ValueError for more than MOST buckets.
    """
    cut = cut_for(window, bucket)
    rows = read_rows(link, size, window, filters)
    return in_buckets(pg_copy.unix_ms(rows["started_at"]), segments.rates(rows), cut)


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
        # The finest of which the window has at most MOST_IF_AUTO, else the day.
        fine = (name for name in CHOSEN if count_of(span, BUCKETS[name]) <= MOST_IF_AUTO)
        bucket = next(fine, "1d")
    width = BUCKETS[bucket]
    count = count_of(span, width)
    if count > MOST:
        raise ValueError(f"a bucket of {bucket} makes {count} of them: at most {MOST} can be shown")
    return Cut(bucket, floor(span.start, width), count)


def is_too_long(window: Window) -> bool:
    """Say whether even the days of a window are more than can be shown."""
    return count_of(Span.of(window), BUCKETS["1d"]) > MOST


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


def cut_to_fill(window: Window, several: Sequence[Integers]) -> Cut:
    """Cut a window so that a bucket has enough results to be more than its single results.

    ``several`` are when the results started (Unix ms), those that make a line of their own.
    Takes the finest bucket that has FILLED of them where it has any, else the longest of which
    the window has some.
    """
    span = Span.of(window)
    fitting = [
        cut_for(window, name)
        for name, width in BUCKETS.items()
        if FEWEST_CUTS <= count_of(span, width) <= MOST_IF_AUTO
    ]
    results = sum(map(len, several))
    for cut in fitting:
        width = BUCKETS[cut.bucket]
        filled = sum(len(np.unique((started - cut.first) // width)) for started in several)
        if results >= FILLED * max(filled, 1):
            return cut
    return fitting[-1] if fitting else cut_for(window)


def count_of(span: Span, width: int) -> int:
    return -(-(span.end - floor(span.start, width)) // width)


def read_rows(
    link: tuple[int, int], size: str, window: Window, filters: Sequence[Filter]
) -> NDArray[np.void]:
    """Read the results of a link that say something about it, in the order of time."""
    source, destination = link
    transfers = Transfer.objects.filter(
        source=source,
        destination=destination,
        size_class=SizeClass.objects.filter(name=size).values("id")[:1],
        started_at__gte=window.start,
        started_at__lt=window.end,
        state__in=[Transfer.State.DONE, Transfer.State.FAILED],
    )
    judged = made_so(transfers, filters).annotate(ok=Q(state=Transfer.State.DONE))
    return pg_copy.columns(judged.order_by("started_at"), FIELDS)
