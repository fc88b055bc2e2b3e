"""The samples of two sides of many groups, ordered together: counts, centres, ranks. Pure numpy.

Rates are taken as the bits of their floats, which order as the numbers do where these are not
negative. One bit more, behind the others, says which side a rate is of: one sort then gives the
joint ranks, and each side in its own order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.quantiles import WIDTH_OF, WIDTHS, Bits, sorted_rows
from matrix.statistics.rank_test import MOST_TIED, tie_patterns

Marked = NDArray[np.uint32] | NDArray[np.uint64]
# By the bytes of the bits.
FLOATS: dict[int, type] = {4: np.float32, 8: np.float64}
# The error of a median of more is told by the normal distribution.
TABLED = 200


@dataclass(frozen=True)
class Pairs:
    """Two samples for each group, of shape (9, groups) or (9, rows, columns).

    Of both sides the counts, the centres (medians or means, NaN for none), and the variances of
    the logarithms of these; then what rank_test.p_values takes: wins, ties, and patterns of ties.
    """

    table: Floats

    @classmethod
    def blank(cls, *shape: int) -> Pairs:
        table = np.zeros((9, *shape))
        table[2:6] = np.nan
        return cls(table)

    @property
    def counts(self) -> Integers:
        return np.asarray(self.table[:2], dtype=np.int64)

    @property
    def centres(self) -> Floats:
        return np.asarray(self.table[2:4])

    @property
    def errors(self) -> Floats:
        return np.asarray(self.table[4:6])

    @property
    def wins(self) -> Floats:
        return np.asarray(self.table[6])

    @property
    def ties(self) -> Floats:
        return np.asarray(self.table[7])

    @property
    def patterns(self) -> Integers:
        return np.asarray(self.table[8], dtype=np.int64)


def pairs(bits: Bits, counts: Integers, of: str) -> Pairs:
    """Order the samples of groups, ``counts`` of shape (2, groups) by side.

    ``bits`` are rates with their side (0 for this one, 1 for the other) behind them, all of a
    group together, groups in their order; what is behind the last group is left out. ``of`` is
    `median` or `mean`.
    """
    result = Pairs.blank(counts.shape[1])
    result.table[:2] = counts
    total = counts.sum(axis=0)
    starts = np.cumsum(total) - total
    bits = np.append(bits, np.zeros(WIDTHS[-1], dtype=np.uint32))
    width_of = WIDTH_OF.take(total, mode="clip")
    for index, width in enumerate(WIDTHS):
        groups = np.flatnonzero((width_of == index) & (total > 0))
        if groups.size:
            rows = sorted_rows(bits, starts[groups], total[groups], width)
            result.table[2:, groups] = of_rows(rows, counts[:, groups], of).table[2:]
    for group in np.flatnonzero(width_of == len(WIDTHS)).tolist():
        row = np.sort(bits[starts[group] : starts[group] + total[group]])
        result.table[:, [group]] = of_rows(row[None], counts[:, [group]], of).table
    return result


def of_rows(rows: Marked, counts: Integers, of: str) -> Pairs:
    """Return the pairs of groups that are sorted rows of marked rates, padded with set bits."""
    result = Pairs.blank(len(rows))
    result.table[:2] = counts
    own = (rows & 1) == 0
    # The padding, too, is of the other side, and last there.
    widths = counts[0], rows.shape[1] - counts[0]
    places = np.flatnonzero(own), np.flatnonzero(~own)
    error = error_of_medians if of == "median" else error_of_means
    for side in range(2):
        filled = np.flatnonzero(counts[side])
        samples = OrderedSamples(
            rows, places[side], (np.cumsum(widths[side]) - widths[side])[filled]
        )
        centres, errors = error(samples, counts[side, filled])
        result.centres[side, filled], result.errors[side, filled] = centres, errors
    _rank(result, rows, own, places[0])
    return result


def _rank(result: Pairs, rows: Marked, own: Flags, places: Integers) -> None:
    """Fill in what rank_test takes; ``places`` are those of this side as rows are flat."""
    counts, total = result.counts[0], result.counts.sum(axis=0)
    filled = np.flatnonzero(counts)
    if filled.size:
        first = (np.cumsum(counts) - counts)[filled]
        before = filled * rows.shape[1] * counts[filled]
        # How many are below, less those of this side: equal ones of the other do not count.
        below = np.add.reduceat(places, first) - before
        result.table[6, filled] = below - counts[filled] * (counts[filled] - 1) // 2
    # Neighbours that differ in nothing but their side, or in nothing.
    same = (rows[:, 1:] ^ rows[:, :-1]) < 2
    padded = np.maximum(rows.shape[1] - total - 1, 0)
    if np.count_nonzero(same) == padded.sum():
        return
    tied = np.flatnonzero(np.count_nonzero(same, axis=1) > padded)
    same, own, counts = same[tied], own[tied], counts[tied]
    same &= np.arange(1, rows.shape[1]) < total[tied, None]
    rank_sums, result.table[7, tied] = _shared_ranks(same, own)
    result.table[6, tied] = rank_sums - counts * (counts + 1) / 2
    small = total[tied] <= MOST_TIED
    result.table[8, tied[small]] = tie_patterns(~same[small, : MOST_TIED - 1])


def _shared_ranks(same: Flags, own: Flags) -> tuple[Floats, Floats]:
    """Return the sums of the ranks of this side, equal ones shared, and of t^3 - t for ties.

    ``same`` says which rates but the first of each row are equal to those before them.
    """
    height, width = own.shape
    group = np.cumsum(np.pad(~same, ((0, 0), (1, 0)), constant_values=True).ravel()) - 1
    size = np.bincount(group)
    rank = np.bincount(group, np.tile(np.arange(1.0, width + 1), height)) / size
    row = np.repeat(np.arange(height), width)
    sums = np.bincount(row, rank[group] * own.ravel()).astype(np.float64)
    # Each rate brings t^2 - 1 of its group.
    ties = np.bincount(row, (size.astype(np.float64) ** 2 - 1)[group])
    return sums, ties.astype(np.float64)


class OrderedSamples(NamedTuple):
    """Ascending samples in rows: ``places`` are theirs, those of a group from ``starts`` on."""

    rows: Marked
    places: Integers
    starts: Integers

    def at(self, ranks: Integers) -> Floats:
        """Return the sample of each group that has this rank, from 0 on."""
        return self.rates(self.places[self.starts + ranks])

    def rates(self, places: Integers) -> Floats:
        """Return the rates at these places of the rows."""
        bits = self.rows.ravel().take(places) >> 1
        return np.asarray(bits.view(FLOATS[bits.itemsize]), dtype=np.float64)


def error_of_medians(samples: OrderedSamples, counts: Integers) -> tuple[Floats, Floats]:
    """Return the medians of samples, none is empty, and the variances of their logarithms.

    Bonett and Price (2002): by how far two order statistics around the median lie apart.
    """
    low, high = samples.at((counts - 1) // 2), samples.at(counts // 2)
    rank, z = _around(counts)
    with np.errstate(divide="ignore", invalid="ignore"):  # a rate of 0
        apart = np.log(samples.at(counts - rank) / samples.at(rank - 1))
    return low + (high - low) * 0.5, np.square(apart / (2 * z))


def _around(counts: Integers) -> tuple[Integers, Floats]:
    """Return from which rank to its mirror the median is framed, and by how many deviations."""
    ranks_by_count, z_by_count = _framed()
    ranks, z = ranks_by_count.take(counts, mode="clip"), z_by_count.take(counts, mode="clip")
    large = np.flatnonzero(counts > TABLED)
    if large.size:
        count = counts[large]
        ranks[large] = np.rint((count + 1) / 2 - np.sqrt(count))
        z[large] = (count / 2 - ranks[large] + 0.5) / np.sqrt(count / 4)
    return ranks, z


@lru_cache(maxsize=1)
def _framed() -> tuple[Integers, Floats]:
    """Return by count, up to TABLED, the rank that frames a median and what it stands for."""
    ranks, z = [1], [1.0]
    for count in range(1, TABLED + 1):
        rank = max(round((count + 1) / 2 - sqrt(count)), 1)
        below = sum(comb(count, wins) for wins in range(rank)) / 2**count
        ranks.append(rank)
        z.append(-NormalDist().inv_cdf(below) if below < 0.5 else 1.0)
    return np.array(ranks), np.array(z)


def error_of_means(samples: OrderedSamples, counts: Integers) -> tuple[Floats, Floats]:
    """Return the means of samples, none is empty, and the variances of their logarithms.

    NaN for the variance of one.
    """
    if not counts.size:
        return np.empty(0), np.empty(0)
    starts = np.cumsum(counts) - counts
    each = np.arange(counts.sum()) + np.repeat(samples.starts - starts, counts)
    rates = samples.rates(samples.places[each])
    mean = np.add.reduceat(rates, starts) / counts
    square = np.add.reduceat(np.square(rates - np.repeat(mean, counts)), starts)
    with np.errstate(divide="ignore", invalid="ignore"):  # of one sample, or all are 0
        return mean, square / (counts - 1) / counts / np.square(mean)
