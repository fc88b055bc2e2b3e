"""Exact quantiles of many small groups, and medians: how sure they are, and running ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from matrix.statistics.arrays import Floats, Integers

Bits = NDArray[np.uint32]

# A fraction is one for all groups, or an array with one for each.
Fractions = Sequence[float | Floats]

# Groups are sorted side by side, as rows of one of these widths: numpy sorts rows with vector
# instructions at 1 ns a sample, where sorting the samples of all groups at once takes 17 to 60.
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# By count: the index of the width. One more means too many.
WIDTH_OF = np.searchsorted(WIDTHS, np.arange(WIDTHS[-1] + 2)).astype(np.uint8)
# By width and count: all bits set behind the count, which sorts last.
_PADDING = {
    width: np.where(np.arange(width) < np.arange(width + 1)[:, None], 0, 0xFFFFFFFF).astype("u4")
    for width in WIDTHS
}
# Short rows cost more to begin with than to sort: exchange these columns of all rows instead.
EXCHANGES = {
    2: [(0, 1)],
    3: [(0, 1), (1, 2), (0, 1)],
    4: [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)],
}
# The ends of the middle half, and the median between them.
MIDDLE = (0.25, 0.5, 0.75)
# An interval misses the median once in so many times, or less often.
ONCE_IN = 20
# As the normal distribution has it; it stands for that of the counts of so many values.
NORMAL_95 = 1.96
MANY_VALUES = 1000
# A line of more places is no clearer.
MOST_PLACES = 1500
# The median of fewer follows each single test; one of more hides a change of a few hours.
FEWEST_AROUND = 5
PART_AROUND = 200
# A time this many times as long as is common between two tests is a gap in the line.
GAP = 6


def quantiles(
    bits: Bits, starts: Integers, counts: Integers, ok: Integers, fractions: Fractions
) -> Floats:
    """Return the quantiles of each group in float64, shape (fractions, groups).

    A group are ``counts`` samples from ``starts`` on, of which ``ok`` count. ``bits`` are
    those of float32: they order as the numbers do where these are not negative, and a failed
    sample's sign puts it behind. Interpolated as SQL's percentile_cont does; NaN for nothing.
    """
    # For groups of one, that is it.
    bits = np.append(bits, np.zeros(WIDTHS[-1], dtype=np.uint32))
    first = np.where(ok > 0, _numbers(bits[starts]), np.nan)
    result = np.tile(first, (len(fractions), 1))
    width_of = WIDTH_OF.take(np.where(ok > 0, counts, 0), mode="clip")
    for index in range(1, min(width_of.max(initial=0) + 1, len(WIDTHS))):
        groups = np.flatnonzero(width_of == index)
        # Each group as a sorted row, padded.
        width = WIDTHS[index]
        rows = sliding_window_view(bits, width)[starts[groups]]
        rows |= _PADDING[width].take(counts[groups], axis=0)
        if width in EXCHANGES:
            exchange(rows.T)
        else:
            rows.sort(axis=1)
        first = np.arange(0, rows.size, width)
        quantiles_of = of_sorted(rows.ravel(), first, ok[groups], _of(groups, fractions))
        # In one go, numpy takes four times as long to set these columns.
        for values, of_groups in zip(result, quantiles_of, strict=True):
            values[groups] = of_groups
    for group in np.flatnonzero(width_of == len(WIDTHS)).tolist():
        samples = bits[starts[group] : starts[group] + counts[group]]
        result[:, group] = of_large(samples, int(ok[group]), _of(group, fractions))
    return result


def _of(groups: Integers | int, fractions: Fractions) -> list[Any]:
    return [part[groups] if isinstance(part, np.ndarray) else part for part in fractions]


def exchange(samples: Bits) -> None:
    """Bring each column in order, in place, of as many samples as EXCHANGES has."""
    for left, right in EXCHANGES[len(samples)]:
        low = np.minimum(samples[left], samples[right])
        np.maximum(samples[left], samples[right], out=samples[right])
        samples[left] = low


def of_sorted(bits: Bits | Floats, starts: Integers, ok: Integers, fractions: Fractions) -> Floats:
    """Return the quantiles of groups that are sorted, each with at least one sample that is ok."""
    result = np.empty((len(fractions), len(starts)))
    last = ok - 1
    for values, fraction in zip(result, fractions, strict=True):
        position = np.multiply(last, fraction, dtype=np.float64)
        below = position.astype(np.int64)
        low = starts + below
        # The last one has none above it, and no need of one.
        high = low + (below < last)
        values[:] = _between(bits.take(low), bits.take(high), position - below)
    return result


def of_large(samples: Bits, ok: int, fractions: Sequence[float]) -> Floats:
    """Return the quantiles of one large group: it need not be sorted for them."""
    last = max(ok - 1, 0)
    position = last * np.array(fractions)
    below = position.astype(np.int64)
    above = np.minimum(below + 1, last)
    parted = np.partition(samples, np.unique([below, above]))
    return _between(parted[below], parted[above], position - below)


def _between(low: Bits | Floats, high: Bits | Floats, share: Floats) -> Floats:
    first = _numbers(low)
    return first + (_numbers(high) - first) * share


def _numbers(bits: Bits | Floats) -> Floats:
    """Return what 32 bits say, or numbers as they are."""
    values = bits.view(np.float32) if bits.dtype == np.uint32 else bits
    return values.astype(np.float64, copy=False)


def quantiles_by(
    group: Integers, values: Floats, groups: int, fractions: Sequence[float]
) -> Floats:
    """Return quantiles by number of ``group``, shape (fractions, groups), as percentile_cont."""
    ordered = values[np.lexsort((values, group))]
    count = np.bincount(group, minlength=groups)
    filled = np.flatnonzero(count)
    first = (np.cumsum(count) - count)[filled]
    result = np.full((len(fractions), groups), np.nan)
    result[:, filled] = of_sorted(ordered, first, count[filled], fractions)
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


def median_interval(values: Floats | Sequence[float]) -> tuple[float, float]:
    """Return the ends of an interval that holds the median of what values come from, NaN for none.

    Two of the values themselves, as far in as 95 % allow: each is above the median with a chance
    of a half. Fewer than six values have no such interval.
    """
    count = len(values)
    left_out = values_left_out(count)
    if not left_out:
        return math.nan, math.nan
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    return float(ordered[left_out - 1]), float(ordered[count - left_out])


def values_left_out(count: int) -> int:
    """Return which value from either side bounds the interval, from 1 on; 0 for none of them."""
    if count > MANY_VALUES:
        return int((count - NORMAL_95 * math.sqrt(count)) / 2)
    combinations, beyond, least = 1, 0, 0
    while True:
        beyond += 2 * combinations
        if ONCE_IN * beyond > 1 << count:
            return least
        combinations = combinations * (count - least) // (least + 1)
        least += 1


@dataclass(frozen=True)
class RunningMedian:
    """``values`` at moments (``started``, ascending); NaN where the line has a gap.

    Each is the median of ``around`` samples, the one at its moment in their middle, fewer at
    both ends of a stretch without gaps: the last is that of the newest (around + 1) / 2.
    """

    started: Integers
    values: Floats
    around: int


def running_median(started: Integers, values: Floats) -> RunningMedian:
    """Draw a line through samples in the order of time; none for fewer than two in a stretch.

    As a median keeps the edge of a step, the line changes at the sample at which they did.
    """
    around = max(FEWEST_AROUND, len(values) // PART_AROUND) | 1
    every = -(-len(values) // MOST_PLACES) or 1
    moments: list[Integers] = []
    medians: list[Floats] = []
    beyond = np.full(around // 2, np.nan)
    steps = np.diff(started)
    gaps = steps > GAP * np.median(steps) if steps.size else steps
    for stretch in np.split(np.arange(len(started)), np.flatnonzero(gaps) + 1):
        places = np.unique(np.append(np.arange(0, len(stretch), every), len(stretch) - 1))
        if len(stretch) > 1:
            moments += [started[stretch][places], started[stretch][-1:]]
            padded = np.concatenate([beyond, values[stretch], beyond])
            windows = sliding_window_view(padded, around)[places]
            medians += [np.nanmedian(windows, axis=1), np.array([np.nan])]
    if not moments:
        return RunningMedian(started[:0], values[:0], around)
    return RunningMedian(np.concatenate(moments), np.concatenate(medians), around)
