"""Statistics of cells as published sonar tables define them. Pure numpy.

``cell`` is the index of each sample's cell, ``cells`` how many cells there are; every result
has one value for each cell, NaN where the cell has nothing to compute it from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Samples:
    """Finished transfers as columns of one length, in the order in which they were read."""

    cell: Integers
    ok: Flags
    bytes: Floats
    seconds: Floats

    @property
    def done(self) -> Samples:
        return Samples(
            self.cell[self.ok], self.ok[self.ok], self.bytes[self.ok], self.seconds[self.ok]
        )

    @property
    def rate(self) -> Floats:
        """Return bytes per second of each; only meaningful for samples that are ok."""
        return self.bytes / self.seconds


def count(cell: Integers, cells: int) -> Integers:
    return np.bincount(cell, minlength=cells)


def mean(cell: Integers, values: Floats, cells: int) -> Floats:
    return ratio(np.bincount(cell, values, minlength=cells), count(cell, cells))


def std(cell: Integers, values: Floats, cells: int) -> Floats:
    """Return the sample standard deviation (n - 1); NaN for fewer than two values."""
    # Two passes: the sum of squares minus the square of the sum loses digits.
    deviations = (values - mean(cell, values, cells)[cell]) ** 2
    squares = np.bincount(cell, deviations, minlength=cells)
    return np.sqrt(ratio(squares, np.maximum(count(cell, cells) - 1, 0)))


def minimum(cell: Integers, values: Floats, cells: int) -> Floats:
    lowest = np.full(cells, np.nan)
    np.fmin.at(lowest, cell, values)
    return lowest


def maximum(cell: Integers, values: Floats, cells: int) -> Floats:
    highest = np.full(cells, np.nan)
    np.fmax.at(highest, cell, values)
    return highest


def quantile(cell: Integers, values: Floats, cells: int, fraction: float) -> Floats:
    """Return the quantile of each cell, interpolated as SQL's percentile_cont does.

    ``values`` are not negative and are taken as float32: the result is exact to 1e-7.
    """
    # The bits of floats that are not negative order as the floats do, so one sort of
    # cell << 32 | bits orders the cells and the values in each.
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    keys = cell.astype(np.uint64) << np.uint64(32) | bits
    keys.sort()
    ordered = keys.astype(np.uint32).view(np.float32).astype(np.float64)
    sizes = count(cell, cells)
    filled = sizes > 0
    position = (sizes[filled] - 1) * fraction
    below = np.floor(position).astype(np.int64)
    first = (np.cumsum(sizes) - sizes)[filled]
    low = ordered[first + below]
    high = ordered[first + np.ceil(position).astype(np.int64)]
    result = np.full(cells, np.nan)
    result[filled] = low + (high - low) * (position - below)
    return result


def ratio(above: NDArray[np.generic], below: NDArray[np.generic]) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    result = np.full(np.shape(above), np.nan)
    np.divide(above, below, out=result, where=np.asarray(below) != 0)
    return result


def throughput(done: Samples, cells: int) -> Floats:
    """Return all bytes of a cell over all its seconds, in bytes per second."""
    total = np.bincount(done.cell, done.bytes, minlength=cells)
    return ratio(total, np.bincount(done.cell, done.seconds, minlength=cells))


def rates(stat: str, done: Samples, cells: int) -> Floats:
    """Return a statistic of the rates of ok samples, in bytes per second."""
    if stat == "throughput":
        return throughput(done, cells)
    if stat in QUANTILES:
        return quantile(done.cell, done.rate, cells, QUANTILES[stat])
    return MOMENTS[stat](done.cell, done.rate, cells)


QUANTILES = {"p05": 0.05, "median": 0.5, "p95": 0.95}
MOMENTS = {"mean": mean, "std": std, "min": minimum, "max": maximum}


@dataclass(frozen=True)
class Averages:
    """Plain means of the cells that have a value: by row, by column and of all."""

    row: Floats
    column: Floats
    grand: float


def averages(values: Floats) -> Averages:
    """Average a (rows, columns) matrix; blank cells (NaN) are left out."""
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    return Averages(
        row=ratio(filled.sum(axis=1), known.sum(axis=1)),
        column=ratio(filled.sum(axis=0), known.sum(axis=0)),
        grand=float(ratio(filled.sum(), known.sum())),
    )
