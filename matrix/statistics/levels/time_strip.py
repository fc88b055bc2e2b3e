"""How many links failed or were slow in each hour or day of a window. Pure numpy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import ArrayFields, Flags, Floats, Integers, each
from matrix.statistics.cells.standing import USUAL_FACTOR, UsualRates
from matrix.statistics.compare.two_samples import FALSE_SHARE, inflation
from matrix.statistics.levels import outages
from matrix.statistics.levels.outages import LinkTests
from matrix.statistics.samples.newest import NEWEST
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.quantiles import of_sorted
from matrix.statistics.samples.run import FAILED_BIT, Run, by_day


@dataclass(frozen=True)
class TimeBuckets:
    """``count`` buckets of ``width`` ms, the first of which begins at ``first`` (Unix ms).

    They divide a UTC day and begin with it, or are whole UTC days; there are less than 2^16.
    """

    first: int
    width: int
    count: int


@dataclass(frozen=True)
class StripCounts(ArrayFields):
    """Counts by bucket: arrays of shape (buckets).

    ``links`` were tested, ``failed_links`` have a failed test and ``all_failed_links`` no other.
    Of ``failing_links`` as many tests failed in a row as make a link failing, from the first to the
    last of these; of ``slower_links`` the median is no higher than limits() says. ``ok`` and
    ``failed`` count tests.
    """

    links: Integers
    failed_links: Integers
    all_failed_links: Integers
    failing_links: Integers
    slower_links: Integers
    ok: Integers
    failed: Integers


# What the results of a day say by themselves.
COUNTED_BY_DAY = ("links", "failed_links", "all_failed_links", "slower_links", "ok", "failed")


def limits(usual: UsualRates) -> Floats:
    """Return the rate up to which each link counts as slower than usual, shape (NEWEST, links).

    It is lowest where it is the median of a single test, then of two, and then of three or more.
    So low by chance is a link of all together in FALSE_SHARE of the buckets at most, whichever
    are shown. In bytes/s; NaN, which no rate is below, where the usual rate is not known.
    """
    counts = np.arange(1, NEWEST + 1)
    # How much more the median of fewer tests scatters.
    errors = np.sqrt(inflation("median", counts, np.zeros(NEWEST)) / counts)
    errors[0] = 1.0  # a median of one is that test
    links = int(np.count_nonzero(~np.isnan(usual.median)))
    reach = usual.precision.reach(FALSE_SHARE / max(links, 1))
    highest = [
        np.minimum(usual.median / USUAL_FACTOR, usual.median * np.exp(-reach * error / errors[-1]))
        for error in errors
    ]
    edges = [(0, 0), (0, 1), (0, 1)]
    return np.pad(highest, edges, constant_values=np.nan).reshape(NEWEST, -1)


def count(
    runs: Sequence[Run], numbering: Numbering, shown: Flags, highest: Floats, buckets: TimeBuckets
) -> StripCounts:
    """Count by bucket the links that are ``shown``, of shape (ids, ids), and their tests.

    ``runs`` have offsets and are in the order of time; ``highest`` is what limits() returns, in
    the unit of the runs (bytes/s).
    """
    is_shown = np.pad(shown, (0, 1)).ravel()

    def of_day(day: list[Run]) -> Integers:
        keys, bucket = _samples(day, numbering, is_shown, buckets)
        return _counts(keys, bucket, numbering, highest, buckets.count)

    parts = each(of_day, [day for _, day in by_day(runs)])
    blank = np.zeros((len(COUNTED_BY_DAY), buckets.count), dtype=np.int64)
    counts = dict(zip(COUNTED_BY_DAY, sum(parts, blank), strict=True))
    return StripCounts(**counts, failing_links=_failing(runs, numbering, is_shown, buckets))


def _failing(
    runs: Sequence[Run], numbering: Numbering, is_shown: Flags, buckets: TimeBuckets
) -> Integers:
    """Count by bucket the links that were failing: a row of failures may reach over a day."""
    links = np.unique(np.concatenate([np.empty(0, np.uint32), *(run.links for run in runs)]))
    links = outages.out_of(runs, links[is_shown.take(numbering.numbers(links))])
    rows = outages.of_links(LinkTests.of(runs, links))
    first, last = (
        (moments - buckets.first) // buckets.width for moments in (rows.began, rows.newest)
    )
    length = last - first + 1
    step = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    # Of a link that failed twice in a bucket there is one.
    each_once = np.unique(np.repeat(rows.owner * buckets.count + first, length) + step)
    return np.bincount(each_once % buckets.count, minlength=buckets.count).astype(np.int64)


def _samples(
    runs: Sequence[Run], numbering: Numbering, is_shown: Flags, buckets: TimeBuckets
) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    """Return the keys of shown links and the bucket of each, by bucket, link and rate."""
    keys = np.concatenate([run.keys for run in runs])
    started = np.concatenate([run.started(np.arange(len(run.keys))) for run in runs])
    bucket = ((started - buckets.first) // buckets.width).astype(np.uint16)
    rows = np.flatnonzero(is_shown.take(numbering.numbers(keys)))
    keys, bucket = keys.take(rows), bucket.take(rows)
    # Runs are sorted by key, which a merge makes use of; numbers of 16 bits get a radix sort.
    order = np.lexsort((keys, bucket))
    return keys.take(order), bucket.take(order)


def _counts(
    keys: NDArray[np.uint64],
    bucket: NDArray[np.uint16],
    numbering: Numbering,
    highest: Floats,
    count: int,
) -> Integers:
    """Return the fields of COUNTED_BY_DAY as rows; a group is what a link has in a bucket."""
    links = (keys >> np.uint64(32)).astype(np.uint32)
    is_first = np.ones(len(keys), dtype=bool)
    is_first[1:] = (links[1:] != links[:-1]) | (bucket[1:] != bucket[:-1])
    starts = np.flatnonzero(is_first)
    if not starts.size:
        return np.zeros((len(COUNTED_BY_DAY), count), dtype=np.int64)
    of_group, links = bucket[starts], links[starts]
    failed = np.add.reduceat((keys & FAILED_BIT) > 0, starts, dtype=np.int64)
    ok = np.diff(starts, append=len(keys)) - failed
    median = np.full(len(starts), np.nan)
    # The ok results of a group come first in it, in the order of their rates.
    has = ok > 0
    median[has] = of_sorted(keys.astype(np.uint32), starts[has], ok[has], [0.5])[0]
    slower = median <= highest[np.clip(ok, 1, NEWEST) - 1, numbering.numbers(links)]
    flags = [np.ones(len(starts)), failed > 0, ok == 0, slower, ok, failed]
    rows = [np.bincount(of_group, weights, minlength=count) for weights in flags]
    return np.stack(rows).astype(np.int64)
