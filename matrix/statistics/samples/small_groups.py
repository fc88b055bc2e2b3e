"""Mean, scatter and quantiles of many small groups of rates at once, side by side. Pure numpy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.samples.quantiles import EXCHANGES, Bits, exchange, of_large, of_sorted
from matrix.statistics.samples.quantiles import WIDTHS as ROWS

# Up to this width the first samples of all groups lie beside each other, then the second ones:
# numpy adds and exchanges whole rows of these, and all have as many. Wider groups are rows
# themselves.
NARROW = max(EXCHANGES)
WIDTHS = (*range(1, NARROW + 1), *(width for width in ROWS if width > NARROW))
# So many zeros stand behind the bits, for the last group to be as wide as any.
BEHIND = WIDTHS[-1]
# By count: the number of the width, from 1 on; 0 for none, one more than there are for too many.
_WIDTH_OF = np.searchsorted((0, *WIDTHS), np.arange(WIDTHS[-1] + 2)).astype(np.uint8)


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
        for number in range(1, int(width_of.max(initial=0)) + 1):
            of_width = np.flatnonzero(width_of == number)
            if of_width.size:
                cells = self.cells.take(of_width)
                results = self._of_width(of_width, (0, *WIDTHS, 0)[number], fractions)
                for target, values in zip(targets, results, strict=True):
                    target[cells] = values

    def _of_width(self, groups: Integers, width: int, fractions: Sequence[float]) -> list[Floats]:
        """Return means, standard deviations and quantiles of groups; width 0 is more than any."""
        starts = self.starts.take(groups)
        if width == 1:
            values = self.bits.take(starts).view(np.float32).astype(np.float64)
            return [values, np.full(len(values), np.nan), *[values] * len(fractions)]
        if 1 < width <= NARROW:
            # The samples of each group are a column.
            samples = self.bits.take(starts + np.arange(width)[:, None])
            if not self.ordered:
                exchange(samples)
            rates = samples.view(np.float32).astype(np.float64)
            quantiles = []
            for fraction in fractions:
                share, below = math.modf((width - 1) * fraction)
                low, high = rates[int(below)], rates[math.ceil(below + share)]
                quantiles.append(np.asarray(low + (high - low) * share))
            mean = rates.sum(axis=0) / width
            rates -= mean
            squares = np.square(rates, out=rates).sum(axis=0)
            return [mean, np.sqrt(squares / (width - 1)), *quantiles]
        counts = self.counts.take(groups)
        if not width:  # too large for a row: one after the other
            results = np.empty((2 + len(fractions), len(starts)))
            for group, (start, count) in enumerate(zip(starts, counts, strict=True)):
                samples = self.bits[start : start + count]
                rates = samples.view(np.float32).astype(np.float64)
                results[:2, group] = rates.mean(), rates.std(ddof=1)
                results[2:, group] = of_large(samples, int(count), fractions)
            return list(results)
        mean, squares, *quantiles = self._of_rows(starts, counts, width, fractions)
        return [mean, np.sqrt(squares / (counts - 1)), *quantiles]

    def _of_rows(
        self, starts: Integers, counts: Integers, width: int, fractions: Sequence[float]
    ) -> list[Floats]:
        """Take groups of more than four: each is a row, with zeros for what it has not."""
        # As numpy's sliding_window_view, which takes longer than all of a few groups.
        shape, step = (len(self.bits) - width + 1, width), self.bits.strides
        samples = np.ndarray(shape, np.uint32, self.bits, strides=step * 2)[starts]
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


@cache
def _is_sample(width: int, ordered: bool) -> Floats:
    """Return by count 1 for as many places, on the left if ordered, and 0 for the others."""
    places = np.arange(width) if ordered else np.arange(width)[::-1]
    return (places < np.arange(width + 1)[:, None]).astype(np.float64)


@cache
def _all_bits(width: int) -> NDArray[np.uint32]:
    """Return by count all bits for as many places on the left, and none for the others."""
    return np.where(_is_sample(width, True) > 0, 0xFFFFFFFF, 0).astype(np.uint32)
