"""One link over time: its results in a window, one by one and in buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from matrix.buckets import DAY_MS, HOUR_MS, Span, floor
from matrix.filters import Filter
from matrix.profiles import PROFILE_FIELDS, condition
from matrix.quantiles import quantiles
from matrix.statistics import Flags, Floats, Integers, ratio
from sonar import binary, segments
from sonar.models import Profile, SizeClass, Transfer
from sonar.units import MB
from sonar.windows import Window

BUCKETS = {"5m": HOUR_MS // 12, "1h": HOUR_MS, "1d": DAY_MS}
AUTO = "auto"
# A picture of more is no clearer. Beyond the second number nothing is answered any more.
MOST_IF_AUTO = 200
MOST = 30_000
QUANTILES = (0.05, 0.5, 0.95)
FIELDS = {
    "started_at": binary.TIME,
    "bytes": binary.INTEGER,
    "seconds": binary.FLOAT,
    "ok": binary.FLAG,
}


@dataclass(frozen=True)
class Points:
    """Single results in the order of time: when each started (Unix s), its rate, its state.

    Rates are in MB/s, exact to float32, as everywhere in the matrix; NaN for a failed one.
    """

    started: Floats
    rate: Floats
    ok: Flags


@dataclass(frozen=True)
class Series:
    """The results of a link by bucket, empty ones too: counts 0 and NaN. Rates in MB/s.

    ``starts`` are when the buckets begin, in Unix s and in full minutes, hours or days of
    UTC; the first and the last reach over the edge of the window, but hold no result from
    outside of it.
    """

    bucket: str
    starts: Floats
    ok: Integers
    failed: Integers
    mean: Floats
    p05: Floats
    median: Floats
    p95: Floats
    points: Points


def build(
    link: tuple[int, int],
    size: str,
    window: Window,
    bucket: str = AUTO,
    filters: Sequence[Filter] = (),
) -> Series:
    """Read a link, given by the ids of its ends, with one SQL statement.

    From raw rows: a link has few, and an index finds them, where segments hold those of all
    links. Raises ValueError for more than MOST buckets.
    """
    span = Span.of(window)
    name = auto(span) if bucket == AUTO else bucket
    width = BUCKETS[name]
    first = floor(span.start, width)
    count = count_of(span, width)
    if count > MOST:
        raise ValueError(f"a bucket of {name} makes {count} of them: at most {MOST} can be shown")
    rows = read_rows(link, size, window, filters)
    rates = segments.rates(rows)
    started = binary.unix_ms(rows["started_at"])
    ok, failed, mean, (p05, median, p95) = reduced((started - first) // width, rates, count)
    return Series(
        name,
        (first + np.arange(count) * width) / 1000,
        ok,
        failed,
        mean / MB,
        p05 / MB,
        median / MB,
        p95 / MB,
        Points(started / 1000, np.where(rows["ok"], rates / np.float64(MB), np.nan), rows["ok"]),
    )


def auto(span: Span) -> str:
    """Return the finest bucket of which a window has at most MOST_IF_AUTO, else the day."""
    fine = [name for name, width in BUCKETS.items() if count_of(span, width) <= MOST_IF_AUTO]
    return fine[0] if fine else "1d"


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
    if made := condition(filters, PROFILE_FIELDS):
        transfers = transfers.filter(profile__in=Profile.objects.filter(made).values("id"))
    judged = transfers.annotate(ok=Q(state=Transfer.State.DONE))
    return binary.columns(judged.order_by("started_at"), FIELDS)


def reduced(
    bucket: Integers, rates: NDArray[np.float32], count: int
) -> tuple[Integers, Integers, Floats, Floats]:
    """Return ok, failed, mean and QUANTILES of each bucket; ``bucket`` is ascending."""
    done = rates >= 0
    tests = np.bincount(bucket, minlength=count)
    ok = np.bincount(bucket[done], minlength=count)
    total = np.bincount(bucket[done], rates[done], minlength=count)
    starts = np.cumsum(tests) - tests
    parts = quantiles(rates.view(np.uint32), starts, tests, ok, QUANTILES)
    return ok, tests - ok, ratio(total, ok), parts
