"""The samples of two sides of many groups, ordered together: counts, centres, scatter. Pure numpy.

Rates are taken as the bits of their floats, which order as the numbers do where these are not
negative. One bit more, behind the others, says which side a rate is of, and above them stands the
group: one sort then gives each side of each group in its own order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.quantiles import Bits

# The bits of a rate as float32, and that of its side: the group stands above them.
GROUP = np.uint64(33)
# No rate is taken for less: that of an empty file has no logarithm.
LEAST_RATE = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class Pairs:
    """Two samples for each group, of shape (5, groups) or (5, rows, columns).

    Of both sides the counts and the centres (medians or means, NaN for none); then the squares of
    the natural logs of the rates beside the mean log of their side, added up.
    """

    table: Floats

    @classmethod
    def blank(cls, *shape: int) -> Pairs:
        table = np.zeros((5, *shape))
        table[2:4] = np.nan
        return cls(table)

    @classmethod
    def of(cls, samples: OrderedSamples, of: str) -> Pairs:
        """Summarise the samples of each group, by `median` or `mean`."""
        centres = CENTRES[of](samples)
        centres[samples.counts == 0] = np.nan
        return cls(np.concatenate([samples.counts, centres, samples.squares()[None]]))

    @property
    def counts(self) -> Integers:
        return np.asarray(self.table[:2], dtype=np.int64)

    @property
    def centres(self) -> Floats:
        return np.asarray(self.table[2:4])

    @property
    def squares(self) -> Floats:
        return np.asarray(self.table[4])


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

    def squares(self) -> Floats:
        """Return what Pairs.squares has, of shape (groups)."""
        total = np.zeros(len(self.total))
        for side in range(len(self.places)):
            filled, starts, rates = self.filled(side)
            if filled.size:
                logs, count = np.log(np.maximum(rates, LEAST_RATE)), self.counts[side, filled]
                beside = logs - np.repeat(np.add.reduceat(logs, starts) / count, count)
                total[filled] += np.add.reduceat(np.square(beside), starts)
        return total

    def filled(self, side: int) -> tuple[Integers, Integers, Floats]:
        """Return the groups that have samples on a side, where these begin, and their rates."""
        filled = np.flatnonzero(self.counts[side])
        return filled, self.starts[side, filled], self.rates(self.places[side])


def medians(samples: OrderedSamples) -> Floats:
    """Return the medians of both sides, (2, groups); of a side without samples it is anything."""
    counts = samples.counts
    low, high = samples.at(np.stack([(counts - 1) // 2, counts // 2]))
    return np.asarray(low + (high - low) * 0.5)


def means(samples: OrderedSamples) -> Floats:
    """Return the means of both sides, (2, groups); NaN for a side without samples."""
    centres = np.full(samples.counts.shape, np.nan)
    for side, counts in enumerate(samples.counts):
        filled, starts, rates = samples.filled(side)
        if filled.size:
            centres[side, filled] = np.add.reduceat(rates, starts) / counts[filled]
    return centres


CENTRES: dict[str, Callable[[OrderedSamples], Floats]] = {"median": medians, "mean": means}
