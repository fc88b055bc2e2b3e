"""Exact quantiles of many small groups of samples. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
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
_EXCHANGES = {2: [(0, 1)], 4: [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)]}


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
        rows = sorted_rows(bits, starts[groups], counts[groups], WIDTHS[index])
        first = np.arange(0, rows.size, WIDTHS[index])
        put(result, groups, of_sorted(rows.ravel(), first, ok[groups], _of(groups, fractions)))
    for group in np.flatnonzero(width_of == len(WIDTHS)).tolist():
        samples = bits[starts[group] : starts[group] + counts[group]]
        result[:, group] = _of_one(samples, int(ok[group]), _of(group, fractions))
    return result


def _of(groups: Integers | int, fractions: Fractions) -> list[Any]:
    """Return the fractions of these groups."""
    return [part[groups] if isinstance(part, np.ndarray) else part for part in fractions]


def sorted_rows(bits: Bits, starts: Integers, counts: Integers, width: int) -> Bits:
    """Return each group as a sorted row, padded behind with bits that are all set.

    ``bits`` have ``width`` more behind those of the last group.
    """
    rows = sliding_window_view(bits, width)[starts]
    rows |= _PADDING[width].take(counts, axis=0)
    if width not in _EXCHANGES:
        rows.sort(axis=1)
        return rows
    for left, right in _EXCHANGES[width]:
        low = np.minimum(rows[:, left], rows[:, right])
        np.maximum(rows[:, left], rows[:, right], out=rows[:, right])
        rows[:, left] = low
    return rows


def put(result: Floats, groups: Integers, quantiles: Floats) -> None:
    """Set the columns of these groups; in one go, numpy takes four times as long."""
    for values, of_groups in zip(result, quantiles, strict=True):
        values[groups] = of_groups


def of_sorted(bits: Bits, starts: Integers, ok: Integers, fractions: Fractions) -> Floats:
    """Return the quantiles of groups that are sorted, each with at least one sample that is ok."""
    result = np.empty((len(fractions), len(starts)))
    last = ok - 1
    for values, fraction in zip(result, fractions, strict=True):
        position = np.multiply(last, fraction, dtype=np.float64)
        below = position.astype(np.int64)
        low = starts + below
        # The last one has none above it, and no need of one.
        high = low + (below < last)
        values[:] = _between(bits[low], bits[high], position - below)
    return result


def _of_one(samples: Bits, ok: int, fractions: Sequence[float]) -> Floats:
    """Return the quantiles of one large group: it need not be sorted for them."""
    last = max(ok - 1, 0)
    position = last * np.array(fractions)
    below = position.astype(np.int64)
    above = np.minimum(below + 1, last)
    parted = np.partition(samples, np.unique([below, above]))
    return _between(parted[below], parted[above], position - below)


def _between(low: Bits, high: Bits, share: Floats) -> Floats:
    first = _numbers(low)
    return first + (_numbers(high) - first) * share


def _numbers(bits: Bits) -> Floats:
    return bits.view(np.float32).astype(np.float64)
