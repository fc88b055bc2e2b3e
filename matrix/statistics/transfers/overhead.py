"""Overhead and bandwidth: the line seconds = overhead + size / bandwidth. Pure numpy.

It goes through the medians of the size classes, so that single slow transfers do not move it. All
errors are relative, as those of rates are: small files weigh as much as large ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import ArrayFields, Flags, Floats, Integers, each
from matrix.statistics.samples.pooling import HIDDEN, Chunk, Pooling, cut
from matrix.statistics.samples.quantiles import quantiles
from matrix.statistics.samples.run import FAILED_BIT, Run
from sonar.notation.units import MB

# The median of fewer transfers says little.
FEWEST_TRANSFERS = 3
# Up to so many transfers a binomial distribution is summed; that of more is nearly normal.
SUMMED = 100
# Sizes that are nearly alike cannot tell what is overhead: the largest of them must be so many
# times the smallest.
LEAST_RATIO = 4.0
# A class is off the line where it is by more than so many standard errors, and by more than a
# quarter: of thousands of transfers anything is more than chance, and no link keeps to a line
# so well that a smaller difference would make its overhead useless.
SIGMAS = 2.0
TOLERANCE = 1.25
# 95 % of a normal distribution lie within so many standard deviations.
WITHIN = NormalDist().inv_cdf(0.975)
# Weights follow the line, and the line the weights: after so many rounds both stay.
ROUNDS = 8
# What the line of a link or cell is like: there is none, it fits, or a class is off it.
FITS = ("few", "line", "bent")
FEW, LINE, BENT = range(len(FITS))


@dataclass(frozen=True)
class ClassTimes(ArrayFields):
    """The successful transfers of a size class, arrays of one shape; NaN where there are none.

    ``size`` (MB) and ``seconds`` are medians, ``error`` is the standard error of the logarithm
    of ``seconds`` (Bonett and Price), NaN for fewer than FEWEST; ``ok`` counts them.
    """

    size: Floats
    seconds: Floats
    error: Floats
    ok: Integers

    @classmethod
    def blank(cls, shape: tuple[int, ...]) -> Self:
        size, seconds, error = np.full((3, *shape), np.nan)
        return cls(size, seconds, error, np.zeros(shape, dtype=np.int64))

    @classmethod
    def of_groups(cls, sizes: Floats, rates: NDArray[np.float32], ok: Integers) -> Self:
        """Take successes that stand together by group, ``ok`` of each; bytes, and bytes/s."""
        starts = np.cumsum(ok) - ok
        low, width = around_median(ok)
        seconds = (sizes / rates).astype(np.float32).view(np.uint32)
        median, lower, upper = quantiles(seconds, starts, ok, ok, [0.5, low, 1 - low])
        # Files of a class are mostly all of one size.
        if sizes.size and sizes.min() == sizes.max():
            size = np.where(ok > 0, sizes[0], np.nan)
        else:
            bits = sizes.astype(np.float32).view(np.uint32)
            size = np.asarray(quantiles(bits, starts, ok, ok, [0.5])[0])
        return cls(size / MB, median, np.log(upper / lower) / width, ok)

    @classmethod
    def of_runs(cls, runs: Sequence[Run], pooling: Pooling) -> Self:
        """Pool the results of all shown links by cell; the runs must have sizes."""
        whole = cls.blank(pooling.shape)
        if not runs or not whole.ok.size:
            return whole
        cell_of, chunks = cut(runs, pooling)

        def work(chunk: Chunk) -> None:
            keys = np.concatenate([np.empty(0, dtype=np.uint64), *chunk.keys])
            if len(chunk.sizes) != len(chunk.keys):
                raise ValueError(
                    "transfer times can be computed only from results that include file sizes"
                )
            sizes = np.concatenate([np.empty(0), *chunk.sizes], dtype=np.float64)
            number = pooling.numbering.numbers(keys)
            cell = np.where(keys & FAILED_BIT, HIDDEN, cell_of.take(number))
            ok = np.bincount(cell, minlength=chunk.cells)[: chunk.cells]
            order = cell.argsort(kind="stable")[: ok.sum()]
            rates = keys.astype(np.uint32).view(np.float32)
            part = cls.of_groups(sizes[order], rates[order], ok).arrays()
            for name, values in whole.arrays().items():
                values[chunk.rows] = part[name].reshape(-1, pooling.shape[1])

        each(work, chunks)
        return whole


def around_median(ok: Integers) -> tuple[Floats, Floats]:
    """Return between which quantiles the median of so many samples lies by about 95 %.

    The lower of the two as a fraction, and how many standard errors of the median the upper is
    above it: NaN for fewer than FEWEST.
    """
    number = np.maximum(ok, FEWEST_TRANSFERS)
    place = np.maximum(np.rint((number + 1) / 2 - np.sqrt(number)), 1)
    # Of more than SUMMED the normal distribution, with half a sample for its steps.
    width = 4 * (number / 2 - place + 0.5) / np.sqrt(number)
    width = np.where(number <= SUMMED, _widths().take(number, mode="clip"), width)
    return (place - 1) / (number - 1), np.where(ok >= FEWEST_TRANSFERS, width, np.nan)


@cache
def _widths() -> Floats:
    """Return that width for each number of samples up to SUMMED, of the binomial distribution."""
    widths = np.full(SUMMED + 1, np.nan)
    for number in range(FEWEST_TRANSFERS, SUMMED + 1):
        place = max(round((number + 1) / 2 - math.sqrt(number)), 1)
        below = sum(math.comb(number, smaller) for smaller in range(place)) / 2**number
        widths[number] = -2 * NormalDist().inv_cdf(below)
    return widths


@dataclass(frozen=True)
class Lines:
    """The line of each link or cell, arrays of one shape; NaN where there is none.

    ``overhead`` in seconds and ``bandwidth`` in MB/s with 95 % intervals. Where the times tell
    only how low the bandwidth may be, its high end is infinite; it is NaN where larger files take
    no longer at all. ``off`` has the classes first: how many times as long each took as the line
    through the others says, NaN for those at its ends. ``fit`` indexes FITS: a `bent` line has
    a class that is off by more than chance, or small files that are faster than any line allows.
    """

    overhead: Floats
    overhead_low: Floats
    overhead_high: Floats
    bandwidth: Floats
    bandwidth_low: Floats
    bandwidth_high: Floats
    off: Floats
    fit: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

    def of(self, name: str) -> Floats:
        """Return one of the arrays where the line fits; NaN elsewhere."""
        return np.where(self.fit == LINE, getattr(self, name), np.nan)

    @property
    def half_size(self) -> Floats:
        """Return the size in MB of which half of the time is overhead."""
        return self.overhead * self.bandwidth

    def seconds(self, size: Floats) -> Floats:
        """Return how long the line says that files of so many MB take."""
        return self.overhead + size / self.bandwidth


def fit(classes: Sequence[ClassTimes]) -> Lines:
    """Fit a line to each link or cell that has two sizes, the largest LEAST_RATIO of the smallest.

    A size counts with FEWEST successes. Weighted least squares of relative errors, with the
    number of transfers as weights; overhead is not below 0. The errors of the medians are summed
    up on either side (MOVER), so that intervals of few transfers need not be symmetric.
    """
    times = ClassTimes.joined(classes, np.stack)
    # Which classes count; none where their sizes are too much alike.
    usable: Flags = times.ok >= FEWEST_TRANSFERS
    least = np.where(usable, times.size, np.inf).min(axis=0)
    most = np.where(usable, times.size, 0).max(axis=0)
    usable = np.asarray(usable & (most >= LEAST_RATIO * least))
    of_overhead, of_pace = _fitted(times, usable)
    overhead, low, high = _interval(of_overhead, times)
    is_negative = overhead < 0
    # Without an overhead, the line goes through nothing at all: the pace is of other parts.
    number = np.where(usable, times.ok, 0)
    share = number / np.where(usable.any(axis=0), number.sum(axis=0), np.nan)
    through_zero = share / np.where(usable, times.size, 1)
    pace, pace_low, pace_high = _interval(np.where(is_negative, through_zero, of_pace), times)
    off, is_off = _off(times, usable)
    has_line = usable.any(axis=0)
    is_bent = is_off | (high < 0) | (pace_high <= 0)
    with np.errstate(divide="ignore"):
        return Lines(
            overhead=np.maximum(overhead, 0),
            overhead_low=np.maximum(low, 0),
            overhead_high=np.maximum(high, 0),
            bandwidth=np.where(pace > 0, 1 / pace, np.nan),
            bandwidth_low=np.where(pace_high > 0, 1 / pace_high, np.nan),
            bandwidth_high=np.where(pace > 0, 1 / np.maximum(pace_low, 0), np.nan),
            off=off,
            fit=np.where(has_line, np.where(is_bent, BENT, LINE), FEW).astype(np.uint8),
        )


def _fitted(times: ClassTimes, usable: Flags) -> tuple[Floats, Floats]:
    """Return the line by weighted least squares; weights are relative to the line itself.

    Overhead and pace (seconds per MB) are sums of the classes' seconds times what is returned.
    """
    size = np.where(usable, times.size, 0)
    seconds = np.where(usable, times.seconds, 1)
    number = np.where(usable, times.ok, 0)
    line = seconds
    for _ in range(ROUNDS):
        weight = number / line**2
        total, first = weight.sum(axis=0), (weight * size).sum(axis=0)
        second = (weight * size * size).sum(axis=0)
        determinant = total * second - first**2
        scale = weight / np.where(determinant > 0, determinant, np.nan)
        of_overhead, of_pace = scale * (second - size * first), scale * (size * total - first)
        overhead = np.maximum((of_overhead * seconds).sum(axis=0), 0)
        pace = np.maximum((of_pace * seconds).sum(axis=0), 0)
        fitted = overhead + pace * size
        # Of what is far off the line, a thousandth of the time is enough to keep it finite.
        line = np.where(usable & (fitted > 0), np.maximum(fitted, seconds / 1000), seconds)
    return of_overhead, of_pace


def _interval(part: Floats, times: ClassTimes) -> tuple[Floats, Floats, Floats]:
    """Return a sum of parts of the classes' seconds, and its 95 % interval."""
    used = part != 0
    seconds = np.where(used, times.seconds, 0)
    factor = np.exp(WITHIN * np.where(used, times.error, 0))
    above, below = seconds * (factor - 1), seconds * (1 - 1 / factor)
    value = (part * seconds).sum(axis=0)
    low = value - np.sqrt((np.where(part > 0, part * below, part * above) ** 2).sum(axis=0))
    high = value + np.sqrt((np.where(part > 0, part * above, part * below) ** 2).sum(axis=0))
    return value, low, high


def _off(times: ClassTimes, usable: Flags) -> tuple[Floats, Flags]:
    """Return how far each class is off the line through the others, and where that is no chance.

    Only those between the smallest and the largest: beyond the others a line is a guess.
    """
    off = np.full(times.size.shape, np.nan)
    is_off = np.zeros(times.size.shape[1:], dtype=bool)
    size = np.where(usable, times.size, np.nan)
    for place in range(len(size)):
        others = usable.copy()
        others[place] = False
        inside = usable[place] & (size[place] > np.where(others, size, np.inf).min(axis=0))
        inside &= size[place] < np.where(others, size, 0).max(axis=0)
        of_overhead, of_pace = _fitted(times, others & inside)
        line, low, high = _interval(of_overhead + of_pace * size[place], times)
        factor = np.where(inside & (line > 0), times.seconds[place] / line, np.nan)
        # The line's error towards the class, as a part of it.
        towards = np.where(factor > 1, high - line, line - low) / (WITHIN * line)
        error = np.hypot(times.error[place], towards)
        distance = np.abs(np.log(factor))
        off[place] = factor
        is_off |= (distance > SIGMAS * error) & (distance > np.log(TOLERANCE))
    return off, is_off
