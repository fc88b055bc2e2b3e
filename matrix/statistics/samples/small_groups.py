"""Mean, scatter and quantiles of many small groups of rates at once, side by side. Pure numpy."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.samples.quantiles import (
    EXCHANGES,
    WIDTH_OF,
    WIDTHS,
    Bits,
    exchange,
    of_large,
    of_sorted,
)

# So many zeros stand behind the bits, for the last group to be as wide as any.
BEHIND = WIDTHS[-1]
# Up to this width the first samples of all groups lie beside each other, then the second ones:
# numpy adds and exchanges whole rows of these. Wider groups are rows themselves.
NARROW = max(EXCHANGES)
# As WIDTH_OF, but that a group of none has no width.
_WIDTH_OF = np.append(np.uint8(len(WIDTHS) + 1), WIDTH_OF[1:])


@dataclass(frozen=True)
class Groups:
    """Where each group is in bits of float32, none negative, with BEHIND more behind the last.

    ``counts`` samples from ``starts`` on, in the order of their rates if they are ``ordered``; a
    group of none is left out. ``cells`` says where in a result each group stands.
    """

    bits: Bits
    starts: Integers
    counts: Integers
    cells: Integers
    ordered: bool

    def fill(self, mean: Floats, std: Floats, quantiles: Sequence[tuple[float, Floats]]) -> None:
        """Put the results of all groups into arrays by cell, in float64.

        ``std`` is that of a sample (n - 1), NaN for one alone. Each of the ``quantiles`` is a
        fraction and where it goes; interpolated as SQL's percentile_cont does.
        """
        width_of = _WIDTH_OF.take(self.counts, mode="clip")
        fractions = [fraction for fraction, _ in quantiles]
        targets = [mean, std, *(target for _, target in quantiles)]
        for index, width in enumerate((*WIDTHS, 0)):
            of_width = np.flatnonzero(width_of == index)
            if of_width.size:
                cells = self.cells.take(of_width)
                results = self._of_width(of_width, width, fractions)
                for target, values in zip(targets, results, strict=True):
                    target[cells] = values

    def _of_width(self, groups: Integers, width: int, fractions: Sequence[float]) -> list[Floats]:
        """Return means, standard deviations and quantiles of groups; width 0 is more than any."""
        starts, counts = self.starts.take(groups), self.counts.take(groups)
        if width == 1:
            values = self.bits.take(starts).view(np.float32).astype(np.float64)
            return [values, np.full(len(values), np.nan), *[values] * len(fractions)]
        if width == 2:
            return self._of_pairs(starts, fractions)
        if not width:
            return self._of_large(starts, counts, fractions)
        of_many = self._of_columns if width <= NARROW else self._of_rows
        mean, squares, *quantiles = of_many(starts, counts, width, fractions)
        return [mean, np.sqrt(squares / (counts - 1)), *quantiles]

    def _of_pairs(self, starts: Integers, fractions: Sequence[float]) -> list[Floats]:
        low, high = (self.bits.take(starts + place) for place in range(2))
        if not self.ordered:
            low, high = np.minimum(low, high), np.maximum(low, high)
        first, last = (bits.view(np.float32).astype(np.float64) for bits in (low, high))
        more = last - first
        return [first + more / 2, more / np.sqrt(2), *(first + more * share for share in fractions)]

    def _of_columns(
        self, starts: Integers, counts: Integers, width: int, fractions: Sequence[float]
    ) -> list[Floats]:
        """Take groups of three and four: the samples of each are a column."""
        samples = self.bits.take(starts + np.arange(width)[:, None])
        first, blank, is_short = np.arange(len(starts)), -1, counts < width
        # A zero stands before all others in the order of rates.
        np.putmask(samples[blank], is_short, 0)
        if not self.ordered:
            exchange(samples)
            first, blank = first + is_short * len(starts), 0
        quantiles = of_sorted(samples.ravel(), first, counts, fractions, step=len(starts))
        rates = samples.view(np.float32).astype(np.float64)
        mean = rates.sum(axis=0) / counts
        rates -= mean
        np.putmask(rates[blank], is_short, 0)
        return [mean, np.square(rates, out=rates).sum(axis=0), *quantiles]

    def _of_rows(
        self, starts: Integers, counts: Integers, width: int, fractions: Sequence[float]
    ) -> list[Floats]:
        """Take groups of more than four: each is a row, with zeros for what it has not."""
        samples = sliding_window_view(self.bits, width)[starts]
        samples &= _all_bits(width).take(counts, axis=0)
        first = np.arange(0, samples.size, width)
        if not self.ordered:
            samples.sort(axis=1)
            first += width - counts
        quantiles = of_sorted(samples.ravel(), first, counts, fractions)
        rates = samples.view(np.float32).astype(np.float64)
        # A sum along an axis takes twice as long.
        mean = np.einsum("ij->i", rates) / counts
        rates -= mean[:, None]
        rates *= _is_sample(width, self.ordered).take(counts, axis=0)
        return [mean, np.einsum("ij,ij->i", rates, rates), *quantiles]

    def _of_large(
        self, starts: Integers, counts: Integers, fractions: Sequence[float]
    ) -> list[Floats]:
        """Take groups too large for a row one after the other."""
        results = np.empty((2 + len(fractions), len(starts)))
        for group, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
            samples = self.bits[start : start + count]
            rates = samples.view(np.float32).astype(np.float64)
            results[:2, group] = rates.mean(), rates.std(ddof=1)
            results[2:, group] = of_large(samples, count, fractions)
        return list(results)


@cache
def _is_sample(width: int, ordered: bool) -> Floats:
    """Return by count 1 for as many places, on the left if ordered, and 0 for the others."""
    places = np.arange(width) if ordered else np.arange(width)[::-1]
    return (places < np.arange(width + 1)[:, None]).astype(np.float64)


@cache
def _all_bits(width: int) -> NDArray[np.uint32]:
    """Return by count all bits for as many places on the left, and none for the others."""
    return np.where(_is_sample(width, True) > 0, 0xFFFFFFFF, 0).astype(np.uint32)
