"""How long files of a size class take: medians of links or cells, and their errors. Pure numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.pooling import HIDDEN, Cells, Chunk, Pooling, cut
from matrix.statistics.quantiles import quantiles
from matrix.statistics.run import FAILED_BIT, Run
from matrix.statistics.threads import each
from sonar.notation.units import MB

# The median of fewer transfers says little.
FEWEST = 3
# Up to so many transfers a binomial distribution is summed; that of more is nearly normal.
SUMMED = 100


@dataclass(frozen=True)
class ClassTimes:
    """The successful transfers of a size class, arrays of one shape; NaN where there are none.

    ``size`` (MB) and ``seconds`` are medians, ``error`` is the standard error of the logarithm
    of ``seconds`` (Bonett and Price), NaN for fewer than FEWEST; ``ok`` counts them.
    """

    size: Floats
    seconds: Floats
    error: Floats
    ok: Integers

    @classmethod
    def blank(cls, shape: tuple[int, ...]) -> ClassTimes:
        size, seconds, error = np.full((3, *shape), np.nan)
        return cls(size, seconds, error, np.zeros(shape, dtype=np.int64))

    @classmethod
    def stacked(cls, classes: Sequence[ClassTimes]) -> ClassTimes:
        """Put classes together, a new first axis; they have one shape."""
        return cls(
            *(np.stack([getattr(part, field.name) for part in classes]) for field in fields(cls))
        )

    def taken(self, where: Flags) -> ClassTimes:
        """Return those of some links, one after the other."""
        return ClassTimes(*(getattr(self, field.name)[where] for field in fields(self)))

    @classmethod
    def of_groups(cls, sizes: Floats, rates: NDArray[np.float32], ok: Integers) -> ClassTimes:
        """Take successes that stand together by group, ``ok`` of each; bytes, and bytes/s."""
        starts = np.cumsum(ok) - ok
        low, width = around_median(ok)
        seconds = (sizes / rates).astype(np.float32).view(np.uint32)
        median, lower, upper = quantiles(seconds, starts, ok, ok, [0.5, low, 1 - low])
        return cls(_medians(sizes, starts, ok) / MB, median, np.log(upper / lower) / width, ok)

    @classmethod
    def of_runs(cls, runs: Sequence[Run], pooling: Pooling) -> ClassTimes:
        """Pool the results of all shown links by cell; the runs must have sizes."""
        whole = cls.blank(pooling.shape)
        if not runs or not whole.ok.size:
            return whole
        cell_of, chunks = cut(runs, pooling)

        def work(chunk: Chunk) -> None:
            part = _of_chunk(chunk, pooling, cell_of)
            for field in fields(cls):
                values = getattr(part, field.name)
                getattr(whole, field.name)[chunk.rows] = values.reshape(-1, pooling.shape[1])

        each(work, chunks)
        return whole


def around_median(ok: Integers) -> tuple[Floats, Floats]:
    """Return between which quantiles the median of so many samples lies by about 95 %.

    The lower of the two as a fraction, and how many standard errors of the median the upper is
    above it: NaN for fewer than FEWEST.
    """
    number = np.maximum(ok, FEWEST)
    place = np.maximum(np.rint((number + 1) / 2 - np.sqrt(number)), 1)
    # Of more than SUMMED the normal distribution, with half a sample for its steps.
    width = 4 * (number / 2 - place + 0.5) / np.sqrt(number)
    width = np.where(number <= SUMMED, _widths().take(number, mode="clip"), width)
    return (place - 1) / (number - 1), np.where(ok >= FEWEST, width, np.nan)


@cache
def _widths() -> Floats:
    """Return that width for each number of samples up to SUMMED, of the binomial distribution."""
    widths = np.full(SUMMED + 1, np.nan)
    for number in range(FEWEST, SUMMED + 1):
        place = max(round((number + 1) / 2 - math.sqrt(number)), 1)
        below = sum(math.comb(number, smaller) for smaller in range(place)) / 2**number
        widths[number] = -2 * NormalDist().inv_cdf(below)
    return widths


def _medians(sizes: Floats, starts: Integers, ok: Integers) -> Floats:
    """Return the median of each group; files of a class are mostly all of one size."""
    if sizes.size and sizes.min() == sizes.max():
        return np.where(ok > 0, sizes[0], np.nan)
    bits = sizes.astype(np.float32).view(np.uint32)
    return np.asarray(quantiles(bits, starts, ok, ok, [0.5])[0])


def _of_chunk(chunk: Chunk, pooling: Pooling, cell_of: Cells) -> ClassTimes:
    keys = np.concatenate([np.empty(0, dtype=np.uint64), *chunk.keys])
    if len(chunk.sizes) != len(chunk.keys):
        raise ValueError("times need runs with sizes")
    sizes = np.concatenate([np.empty(0), *chunk.sizes], dtype=np.float64)
    cell = np.where(keys & FAILED_BIT, HIDDEN, cell_of.take(pooling.numbering.numbers(keys)))
    ok = np.bincount(cell, minlength=chunk.cells)[: chunk.cells]
    order = cell.argsort(kind="stable")[: ok.sum()]
    rates = keys.astype(np.uint32).view(np.float32)
    return ClassTimes.of_groups(sizes[order], rates[order], ok)
