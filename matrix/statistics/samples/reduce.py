"""Exact statistics of the cells of a matrix, from the samples of a window. Pure numpy."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from matrix.query.catalogue import QUANTILES
from matrix.statistics.arrays import Floats, Integers, Numbers, each, nan_unless, zero_unless
from matrix.statistics.samples.pooling import (
    HIDDEN,
    Cells,
    Chunk,
    Numbering,
    Pooling,
    cut,
    parts_for,
)
from matrix.statistics.samples.quantiles import Bits
from matrix.statistics.samples.run import FAILED_BIT, Run
from matrix.statistics.samples.small_groups import BEHIND, Groups

# The sign of a float32 is set in failed samples, and nowhere else.
FAILED = np.uint32(1 << 31)
# What is above the rate in a key.
_LINK = np.uint64(32)
# How far the natural logs of the rates of a cell are from their mean: the squares, added up.
LOG_SQUARES = "log_squares"
# No rate is taken for less: that of an empty file has no logarithm.
LEAST_RATE = np.finfo(np.float32).tiny
# So many runs, each in the order of its keys, are merged in less time than their samples are
# grouped by cell. Of a hundred samples of each link, eight runs take as long either way.
FEW = 5


@dataclass(frozen=True)
class Reduced:
    """Arrays of one shape: counts, and statistics of the rates of ok samples in bytes/s.

    NaN where there is nothing to compute it from; ``std`` is that of a sample (n - 1).
    """

    ok: Integers
    failed: Integers
    mean: Floats
    std: Floats
    extras: dict[str, Floats]

    @classmethod
    def blank(cls, shape: tuple[int, int], extras: Collection[str]) -> Self:
        ok, failed = np.zeros((2, *shape), dtype=np.int64)
        mean, std, *others = np.full((2 + len(extras), *shape), np.nan)
        return cls(ok, failed, mean, std, dict(zip(extras, others, strict=True)))

    def put(self, rows: Integers | slice, part: Self) -> None:
        """Fill in rows, of which ``part`` has the cells one after the other."""
        shape = (-1, self.ok.shape[1])
        self.ok[rows], self.failed[rows] = part.ok.reshape(shape), part.failed.reshape(shape)
        self.mean[rows], self.std[rows] = part.mean.reshape(shape), part.std.reshape(shape)
        for name, values in part.extras.items():
            self.extras[name][rows] = values.reshape(shape)

    def fill(self, groups: Groups) -> None:
        """Compute mean, std and the quantiles among the extras, of groups by cell."""
        quantiles = [
            (QUANTILES[name], values.ravel())
            for name, values in self.extras.items()
            if name in QUANTILES
        ]
        groups.fill(self.mean.ravel(), self.std.ravel(), quantiles)


def reduce(runs: Sequence[Run], pooling: Pooling, extras: Collection[str] = ()) -> Reduced:
    """Pool the samples of all shown links by cell; arrays of shape (rows, columns).

    ``extras`` are names out of catalogue.EXTRAS, or LOG_SQUARES. Exact: rates are taken as the
    float32 that they are stored as, and everything is computed in float64.
    """
    whole = Reduced.blank(pooling.shape, extras)
    if not runs or not whole.ok.size:
        return whole
    is_small = parts_for(sum(len(run.keys) for run in runs)) == 1
    # Only where runs are cut are links that are not shown left alone.
    shows_most = 2 * np.count_nonzero(pooling.shown) > pooling.shown.size
    is_soon_ordered = is_small or (len(runs) <= FEW and shows_most)
    if is_soon_ordered and QUANTILES.keys() >= {*extras} != set() and pooling.keeps_links_apart():
        # The order of the keys is one by cell, too.
        _reduce_in_order(runs, pooling, whole)
        return whole
    cell_of, chunks = cut(runs, pooling)

    def work(chunk: Chunk) -> None:
        keys = np.concatenate([np.empty(0, dtype=np.uint64), *chunk.keys])
        cell = cell_of.take(pooling.numbering.numbers(keys))
        samples = Samples(chunk.cells, cell, keys.astype(np.uint32), chunk.sizes)
        whole.put(chunk.rows, samples.reduced(extras))

    each(work, chunks)
    return whole


def _reduce_in_order(runs: Sequence[Run], pooling: Pooling, whole: Reduced) -> None:
    """Fill in quantiles and all else of cells of one link each, by the order of the keys."""
    keys = runs[0].keys
    if len(runs) > 1:
        # For many samples that takes longer than to group them by cell.
        keys = np.concatenate([run.keys for run in runs])
        keys.sort(kind="stable")
    if not keys.size:
        return
    links = keys >> _LINK
    bounds = np.flatnonzero(np.concatenate([[True], links[1:] != links[:-1], [True]]))
    starts, counts = bounds[:-1], np.diff(bounds)
    if len(runs) == 1 and len(runs[0].links) == len(starts):
        numbers = pooling.numbering.numbers_of(runs[0])
    else:
        numbers = pooling.numbering.numbers(keys.take(starts))
    # Without any chunks: what is not shown is in none of the cells.
    height, width = pooling.shape
    kind = np.uint16 if height * width <= HIDDEN else np.uint32
    cells_of_all = pooling.cells(np.arange(0, height * width, max(width, 1)), kind)
    cells = cells_of_all.take(numbers).astype(np.intp)
    bits = np.zeros(len(keys) + BEHIND, dtype=np.uint32)
    bits[: len(keys)] = keys
    failed = np.flatnonzero(bits >= FAILED)
    # The failed ones of a link stand behind its others.
    failing = starts.searchsorted(failed, "right") - 1
    np.subtract.at(counts, failing, 1)
    cells_failing = cells.take(failing)
    # No cell has the number of what is hidden.
    if cells.max() >= whole.ok.size:
        shown = np.flatnonzero(cells < whole.ok.size)
        starts, counts, cells = (part[shown] for part in (starts, counts, cells))
        cells_failing = cells_failing[cells_failing < whole.ok.size]
    whole.ok.ravel()[cells] = counts
    np.add.at(whole.failed.ravel(), cells_failing, 1)

    def work(part: slice) -> None:
        whole.fill(Groups(bits, starts[part], counts[part], cells[part], ordered=True))

    size = -(-len(cells) // parts_for(len(keys))) or 1
    each(work, [slice(first, first + size) for first in range(0, len(cells), size)])


@dataclass(frozen=True)
class Samples:
    """Samples of ``cells`` cells; those whose cell is greater are not shown.

    ``bits`` are the bits of the rates in float32, ``sizes`` the bytes in pieces, if known.
    """

    cells: int
    cell: Cells
    bits: Bits
    sizes: list[Integers]

    def reduced(self, extras: Collection[str]) -> Reduced:
        failed = np.flatnonzero(self.bits >= FAILED)
        result = Reduced.blank((1, self.cells), extras)
        result.failed[:] = self.count(self.cell[failed])
        result.ok[:] = ok = self.count(self.cell) - result.failed[0]
        rates = self.bits.view(np.float32)
        if QUANTILES.keys().isdisjoint(extras):
            result.mean[:], squares = self._squares(rates.astype(np.float64), failed, ok)
            with np.errstate(invalid="ignore", divide="ignore"):  # of one sample, or of none
                result.std[:] = np.sqrt(squares / np.where(ok > 0, ok - 1, np.nan))
        else:
            # The successes of each cell together. What is hidden comes last, behind all that the
            # counts of the cells take up.
            cell = self.cell.copy()
            cell[failed] = HIDDEN
            bits = np.zeros(len(cell) + BEHIND, dtype=np.uint32)
            self.bits.take(cell.argsort(kind="stable"), out=bits[: len(cell)], mode="clip")
            starts = np.cumsum(ok) - ok
            result.fill(Groups(bits, starts, ok, np.arange(self.cells), ordered=False))
        if "throughput" in extras:
            if not self.sizes:
                raise ValueError(
                    "the throughput can be computed only from results that include file sizes"
                )
            sizes = np.concatenate(self.sizes, dtype=np.float64)
            sizes[failed] = 0
            # All bytes of each cell over all its seconds.
            throughput = ratio(self.total(sizes), self.total(sizes / rates))
            result.extras["throughput"][:] = throughput
        if LOG_SQUARES in extras:
            # To seven digits; of a failed sample it is anything.
            logs = np.log(np.maximum(rates, LEAST_RATE)).astype(np.float64)
            result.extras[LOG_SQUARES][:] = self._squares(logs, failed, ok)[1]
        return result

    @cached_property
    def _place(self) -> NDArray[np.intp]:
        return self.cell.astype(np.intp)

    def count(self, cell: Cells) -> Integers:
        return np.bincount(cell, minlength=self.cells)[: self.cells]

    def total(self, values: Floats) -> Floats:
        sums = np.bincount(self._place, values, minlength=self.cells)[: self.cells]
        return sums.astype(np.float64, copy=False)

    def _squares(self, values: Floats, failed: Integers, ok: Integers) -> tuple[Floats, Floats]:
        """Return the mean of the values of each cell, and the squares beside it, added up.

        In two passes, and in place: squares less the square of the sum lose digits.
        """
        values[failed] = 0
        mean = self.total(values) / np.where(ok > 0, ok, np.nan)
        values -= mean.take(self._place, mode="clip")
        np.square(values, out=values)
        values[failed] = 0
        return mean, self.total(values)


def ratio(above: Numbers, below: Numbers) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    below = np.asarray(below, dtype=np.float64)
    return np.asarray(above / nan_unless(below != 0, below))


@dataclass(frozen=True)
class Averages:
    """Plain means of the cells that have a value: by row, by column and of all."""

    row: Floats
    column: Floats
    grand: float


def averages(values: Floats) -> Averages:
    """Average a (rows, columns) matrix; blank cells (NaN) are left out."""
    is_number = ~np.isnan(values)
    filled, counted = zero_unless(is_number, values), is_number.astype(np.float64)
    (row, of_row), (column, of_column) = (
        (filled.sum(axis=axis), counted.sum(axis=axis)) for axis in (1, 0)
    )
    return Averages(
        row=ratio(row, of_row),
        column=ratio(column, of_column),
        grand=float(ratio(row.sum(), of_row.sum())),
    )


def geometric_averages(values: Floats) -> Averages:
    """Average ratios: half as fast and twice as fast make 1, and with one of 0 all make 0."""
    with np.errstate(divide="ignore"):
        logs = averages(np.log(values))
    return Averages(np.exp(logs.row), np.exp(logs.column), float(np.exp(logs.grand)))


# A sum of logs and how many there are, by the number of a link.
LogSums = tuple[Floats, Integers]


def log_sums(runs: Sequence[Run], numbering: Numbering) -> LogSums:
    """Add up the logs of the rates of successes, by link."""
    total = np.zeros(numbering.size)
    count = np.zeros(numbering.size, dtype=np.int64)
    for run in runs:
        keys = run.keys[run.keys & FAILED_BIT == 0]
        number = numbering.numbers(keys)
        logs = logs_of(keys)
        total += np.bincount(number, logs, minlength=len(total))
        count += np.bincount(number, minlength=len(total))
    return total, count


def logs_of(keys: NDArray[np.uint64]) -> Floats:
    rates = keys.astype(np.uint32).view(np.float32).astype(np.float64)
    return np.asarray(np.log(np.maximum(rates, LEAST_RATE)))


def mean_log(sums: LogSums) -> Floats:
    total, count = sums
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def log_moments(runs: Sequence[Run], numbering: Numbering) -> Floats:
    """Return by link the number of successes, their logs and the squares, added up."""
    moments = np.zeros((3, numbering.size))
    for run in runs:
        keys = run.keys[run.keys & FAILED_BIT == 0]
        number, logs = numbering.numbers(keys), logs_of(keys)
        for power, weights in enumerate((None, logs, np.square(logs))):
            moments[power] += np.bincount(number, weights, minlength=moments.shape[1])
    return moments


def squares_beside_mean(moments: Floats) -> Floats:
    count, total, squares = moments
    return np.asarray(np.maximum(squares - np.square(total) / np.maximum(count, 1), 0))
