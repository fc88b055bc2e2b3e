"""How many links were declared down or at risk in each hour or day of a window. Pure numpy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from matrix.statistics.arrays import ArrayFields, Flags, Integers
from matrix.statistics.levels.time_strip import TimeBuckets


class DeclaredSpan(NamedTuple):
    """Some places are down, or else at risk, from ``start`` to before ``end`` (Unix ms)."""

    places: Integers
    start: int
    end: int
    is_outage: bool


@dataclass(frozen=True)
class DeclaredCounts(ArrayFields):
    """Counts by bucket: arrays of shape (buckets).

    An end of ``down_links`` was down in at least a part of it; an end of ``at_risk_links``, which
    are none of these, was at risk.
    """

    down_links: Integers
    at_risk_links: Integers


def count(shown: Flags, spans: Iterable[DeclaredSpan], buckets: TimeBuckets) -> DeclaredCounts:
    """Count by bucket the links that are ``shown``, of shape (places, places)."""
    is_up = np.ones((len(shown), buckets.count), dtype=bool)
    is_safe = is_up.copy()
    for span in spans:
        first = max((span.start - buckets.first) // buckets.width, 0)
        past = max(-((buckets.first - span.end) // buckets.width), 0)
        is_safe[span.places, first:past] = False
        if span.is_outage:
            is_up[span.places, first:past] = False
    # The first bucket, and all in which a place is not as it was in the one before.
    turns = [np.any(each[:, 1:] != each[:, :-1], axis=0) for each in (is_up, is_safe)]
    starts = np.concatenate([[0], np.flatnonzero(np.logical_or(*turns)) + 1])
    lengths = np.diff(starts, append=buckets.count)
    total = int(np.count_nonzero(shown))
    down, affected = (
        np.repeat(total - _between(shown, flags[:, starts]), lengths) for flags in (is_up, is_safe)
    )
    return DeclaredCounts(down, affected - down)


def _between(shown: Flags, flags: Flags) -> Integers:
    """Count the links of which both ends are flagged, for each column of ``flags``."""
    numbers = flags.astype(np.float32)
    # Exact up to 2^24 destinations of one source.
    sums = (shown.astype(np.float32) @ numbers) * numbers
    return np.asarray(sums.sum(axis=0, dtype=np.float64), dtype=np.int64)
