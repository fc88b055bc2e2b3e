"""The samples of two sides of many groups, ordered together: counts, centres, ranks. Pure numpy.

Rates are taken as the bits of their floats, which order as the numbers do where these are not
negative. One bit more, behind the others, says which side a rate is of, and above them stands the
group: one sort then gives the joint ranks, and each side in its own order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.quantiles import Bits
from matrix.statistics.rank_test import MOST_TIED, tie_patterns

# The bits of a rate as float32, and that of its side: the group stands above them.
GROUP = np.uint64(33)
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

    @classmethod
    def of(cls, samples: OrderedSamples, of: str) -> Pairs:
        """Summarise the samples of each group, by `median` or `mean`."""
        centres, errors = CENTRES[of](samples)
        empty = samples.counts == 0
        centres[empty] = errors[empty] = np.nan
        return cls(np.concatenate([samples.counts, centres, errors, samples.ranks()]))

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


def pairs(group: NDArray[np.integer[Any]], bits: Bits, counts: Integers, of: str) -> Pairs:
    """Order the samples of groups, ``counts`` of shape (2, groups) by side.

    ``group`` is that of each sample, ``bits`` its rate with its side (0 for this one, 1 for the
    other) behind it; what is of a group behind the last is left out. ``of`` is `median` or `mean`.
    """
    # With vector instructions at 5 ns a sample, where to gather the groups alone takes as long.
    order = group.astype(np.uint64)
    order <<= GROUP
    order |= bits
    order.sort()
    return Pairs.of(OrderedSamples(order[: counts.sum()], counts), of)


@dataclass(frozen=True)
class OrderedSamples:
    """The samples of groups in their ``order``, ``counts`` of shape (2, groups) by side.

    Group after group; in each as the bits of the rates, which are ``floats``, with their side
    behind them.
    """

    order: NDArray[np.uint64]
    counts: Integers
    floats: type = np.float32

    @cached_property
    def total(self) -> Integers:
        return np.asarray(self.counts.sum(axis=0))

    @cached_property
    def first(self) -> Integers:
        """Return where each group begins."""
        return np.asarray(np.cumsum(self.total) - self.total)

    @cached_property
    def places(self) -> tuple[Integers, Integers]:
        """Return where the samples of this side are, and those of the other."""
        own = (self.order & np.uint64(1)) == 0
        return np.flatnonzero(own), np.flatnonzero(~own)

    @cached_property
    def starts(self) -> Integers:
        """Return where among the places of its side each group begins, of shape (2, groups)."""
        return np.asarray(np.cumsum(self.counts, axis=1) - self.counts)

    def at(self, ranks: Integers) -> Floats:
        """Return the samples that have these ranks on their side, from 0 on, (..., 2, groups).

        Of a side without samples it is anything.
        """
        rates = np.zeros(ranks.shape)
        for side, places in enumerate(self.places):
            if places.size:
                index = self.starts[side] + ranks[..., side, :]
                rates[..., side, :] = self.rates(places.take(index, mode="clip"))
        return rates

    def rates(self, places: Integers) -> Floats:
        """Return the rates at these places."""
        bits = self.order.take(places) >> np.uint64(1)
        if self.floats is np.float32:
            return bits.astype(np.uint32).view(np.float32).astype(np.float64)
        return bits.view(np.float64)

    def ranks(self) -> Floats:
        """Return what rank_test takes: wins, ties, and patterns of ties, of shape (3, groups)."""
        result, counts, start = np.zeros((3, len(self.total))), self.counts[0], self.starts[0]
        # How many are below, less those of this side: equal ones of the other do not count.
        sums = np.append(0, np.cumsum(self.places[0]))
        below = sums[start + counts] - sums[start] - self.first * counts
        result[0] = below - counts * (counts - 1) // 2
        # Neighbours that differ in nothing but their side, or in nothing.
        same = (self.order[1:] ^ self.order[:-1]) < 2
        if same.any():
            self._share(result, np.append(True, ~same))
        return result

    def _share(self, ranks: Floats, is_above: Flags) -> None:
        """Let equal rates share their ranks; ``is_above`` says which differ from those before."""
        group = np.repeat(np.arange(len(self.total)), self.total)
        is_tied = np.zeros(len(self.total), dtype=bool)
        is_tied[group[~is_above]] = True
        tied = np.flatnonzero(is_tied)
        counts, total, first = self.counts[0, tied], self.total[tied], self.first[tied]
        samples = np.flatnonzero(is_tied[group])
        own = (self.order[samples] & np.uint64(1)) == 0
        rank = samples - np.repeat(first, total) + 1.0
        row = np.repeat(np.arange(len(tied)), total)
        level = np.cumsum(is_above[samples]) - 1
        size = np.bincount(level).astype(np.float64)
        shared = (np.bincount(level, rank) / size)[level]
        ranks[0, tied] = np.bincount(row, shared * own) - counts * (counts + 1) / 2
        # Each rate brings t^2 - 1 of its group.
        ranks[1, tied] = np.bincount(row, (size**2 - 1)[level])
        small, behind = total <= MOST_TIED, np.arange(1, MOST_TIED)
        starts = is_above.take(first[small, None] + behind, mode="clip")
        ranks[2, tied[small]] = tie_patterns(starts | (behind >= total[small, None]))


def medians(samples: OrderedSamples) -> tuple[Floats, Floats]:
    """Return the medians of both sides and the variances of their logarithms, (2, groups) each.

    Bonett and Price (2002): by how far two order statistics around the median lie apart.
    """
    counts = samples.counts
    rank, z = _around(counts)
    ranks = np.stack([(counts - 1) // 2, counts // 2, counts - rank, rank - 1])
    low, high, above, below = samples.at(ranks)
    with np.errstate(divide="ignore", invalid="ignore"):  # a rate of 0
        apart = np.log(above / below)
    return low + (high - low) * 0.5, np.square(apart / (2 * z))


def _around(counts: Integers) -> tuple[Integers, Floats]:
    """Return from which rank to its mirror the median is framed, and by how many deviations."""
    ranks_by_count, z_by_count = _framed()
    ranks, z = ranks_by_count.take(counts, mode="clip"), z_by_count.take(counts, mode="clip")
    large = np.nonzero(counts > TABLED)
    if large[0].size:
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


def means(samples: OrderedSamples) -> tuple[Floats, Floats]:
    """Return the means of both sides and the variances of their logarithms, (2, groups) each.

    NaN for the variance of one.
    """
    centres, errors = np.full((2, *samples.counts.shape), np.nan)
    for side, places in enumerate(samples.places):
        filled = np.flatnonzero(samples.counts[side])
        if not filled.size:
            continue
        rates, starts = samples.rates(places), samples.starts[side, filled]
        count = samples.counts[side, filled]
        mean = np.add.reduceat(rates, starts) / count
        square = np.add.reduceat(np.square(rates - np.repeat(mean, count)), starts)
        centres[side, filled] = mean
        with np.errstate(divide="ignore", invalid="ignore"):  # of one sample, or all are 0
            errors[side, filled] = square / (count - 1) / count / np.square(mean)
    return centres, errors


CENTRES: dict[str, Callable[[OrderedSamples], tuple[Floats, Floats]]] = {
    "median": medians,
    "mean": means,
}
