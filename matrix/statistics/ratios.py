"""Rates of several links against what is usual for each of them. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matrix.statistics.arrays import Floats, Integers

# The ends of the middle half, and the median between them.
MIDDLE = (0.25, 0.5, 0.75)


def quantiles_by(
    group: Integers, values: Floats, groups: int, fractions: Sequence[float]
) -> Floats:
    """Return quantiles of the values of each group, shape (fractions, groups); NaN for no value.

    ``group`` numbers the group of each value. Interpolated as SQL's percentile_cont does.
    """
    ordered = values[np.lexsort((values, group))]
    count = np.bincount(group, minlength=groups)
    filled = np.flatnonzero(count)
    first, last = (np.cumsum(count) - count)[filled], count[filled] - 1
    position = last * np.array(fractions)[:, None]
    below = position.astype(np.int64)
    low = ordered[first + below]
    high = ordered[first + np.minimum(below + 1, last)]
    result = np.full((len(fractions), groups), np.nan)
    result[:, filled] = low + (high - low) * (position - below)
    return result


def across_links(
    link: Integers, bucket: Integers, ratios: Floats, buckets: int
) -> tuple[Floats, Integers]:
    """Return the MIDDLE of the links in each bucket, shape (3, buckets), and how many links.

    A link counts once in a bucket, with the median of its ratios there: one that is tested often
    does not outvote the others.
    """
    stride = int(link.max(initial=0)) + 1
    cells, cell = np.unique(bucket * stride + link, return_inverse=True)
    (medians,) = quantiles_by(cell, ratios, len(cells), [0.5])
    bucket_of = cells // stride
    middle = quantiles_by(bucket_of, medians, buckets, MIDDLE)
    return middle, np.bincount(bucket_of, minlength=buckets)
