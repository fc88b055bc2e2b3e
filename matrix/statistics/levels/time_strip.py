"""How many links were tested, failing or slower in each hour or day of a time range. Pure numpy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from matrix.statistics.arrays import ArrayFields, Flags, Integers, each
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.run import FAILED_BIT, Run, by_day


@dataclass(frozen=True)
class TimeBuckets:
    """``count`` buckets of ``width`` ms, the first of which begins at ``first`` (Unix ms).

    They divide a UTC day and begin with it, or are whole UTC days; there are less than 2^16.
    """

    first: int
    width: int
    count: int


class ConditionSpan(NamedTuple):
    """Links, by their numbers, that were failing or else slow from ``start`` to before ``end``.

    The moments are in Unix ms; a condition that ended when it began counts in that bucket.
    """

    links: Integers
    start: int
    end: int
    is_failing: bool


@dataclass(frozen=True)
class StripCounts(ArrayFields):
    """Counts by bucket: arrays of shape (buckets).

    ``links`` were tested, ``failed_links`` have a failed test and ``all_failed_links`` no other.
    ``failing_links`` are members of a failing condition that was open in a part of the bucket,
    tested in it or not; ``slower_links`` are members of a slow one and not failing in that bucket.
    ``ok`` and ``failed`` count tests.
    """

    links: Integers
    failed_links: Integers
    all_failed_links: Integers
    failing_links: Integers
    slower_links: Integers
    ok: Integers
    failed: Integers


# What the results of a day say, without those of other days.
COUNTED_BY_DAY = ("links", "failed_links", "all_failed_links", "ok", "failed")


def count(
    runs: Sequence[Run],
    spans: Iterable[ConditionSpan],
    numbering: Numbering,
    shown: Flags,
    buckets: TimeBuckets,
) -> StripCounts:
    """Count by bucket the links that are ``shown``, of shape (ids, ids), and their tests.

    ``runs`` have offsets and are in the order of time.
    """
    own, is_shown = shown.ravel(), np.pad(shown, (0, 1)).ravel()
    blank = np.zeros((len(COUNTED_BY_DAY), buckets.count), dtype=np.int64)

    def of_day(day: list[Run]) -> Integers:
        """Return the fields of COUNTED_BY_DAY as rows; a group is what a link has in a bucket."""
        keys = np.concatenate([run.keys for run in day])
        started = np.concatenate([run.started(np.arange(len(run.keys))) for run in day])
        bucket = ((started - buckets.first) // buckets.width).astype(np.uint16)
        rows = np.flatnonzero(is_shown.take(numbering.numbers(keys)))
        keys, bucket = keys.take(rows), bucket.take(rows)
        # Runs are sorted by key, which a merge makes use of; numbers of 16 bits get a radix sort.
        order = np.lexsort((keys, bucket))
        keys, bucket = keys.take(order), bucket.take(order)
        links = (keys >> np.uint64(32)).astype(np.uint32)
        is_first = np.ones(len(keys), dtype=bool)
        is_first[1:] = (links[1:] != links[:-1]) | (bucket[1:] != bucket[:-1])
        starts = np.flatnonzero(is_first)
        if not starts.size:
            return blank
        failed = np.add.reduceat((keys & FAILED_BIT) > 0, starts, dtype=np.int64)
        ok = np.diff(starts, append=len(keys)) - failed
        flags = [np.ones(len(starts)), failed > 0, ok == 0, ok, failed]
        counted = [np.bincount(bucket[starts], flag, minlength=buckets.count) for flag in flags]
        return np.stack(counted).astype(np.int64)

    parts = each(of_day, [day for _, day in by_day(runs)])
    counts = dict(zip(COUNTED_BY_DAY, sum(parts, blank), strict=True))
    chosen = [span._replace(links=span.links[own[span.links]]) for span in spans]
    failing = _covered([span for span in chosen if span.is_failing], buckets)
    # Each link counts once, as what is worse.
    return StripCounts(
        **counts, failing_links=failing, slower_links=_covered(chosen, buckets) - failing
    )


def _covered(spans: Sequence[ConditionSpan], buckets: TimeBuckets) -> Integers:
    """Count by bucket the links of which a span touches it, each once."""
    lengths = [len(span.links) for span in spans]
    edges = np.array([(span.start, span.end) for span in spans], dtype=np.int64).reshape(-1, 2)
    bounds = (edges - buckets.first) // buckets.width
    ends_between = (edges[:, 1] - buckets.first) % buckets.width > 0
    bounds[:, 1] = np.maximum(bounds[:, 1] + ends_between, bounds[:, 0] + 1)
    first, past = np.repeat(bounds.clip(0, buckets.count), lengths, axis=0).T
    links = np.concatenate([np.empty(0, np.int64), *(span.links for span in spans)])
    # Links are so far apart that what one of them reaches is no bucket of the next.
    place = links * (buckets.count + 1)
    order = np.argsort(place + first)
    first, past, place = first[order], past[order], place[order]
    reached = np.maximum.accumulate(place + past)
    first[1:] = np.maximum(first[1:], reached[:-1] - place[1:])
    is_more = past > first
    turns = [np.bincount(edge[is_more], minlength=buckets.count + 1) for edge in (first, past)]
    return np.cumsum(turns[0] - turns[1], dtype=np.int64)[:-1]
