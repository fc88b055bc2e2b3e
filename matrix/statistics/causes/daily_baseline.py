"""Rates in a window and on each day before it, against what is usual for each link. Pure numpy.

Each link is taken against its own mean of all those days, so that it does not matter which links of
a cell were tested on a day.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from matrix.statistics.arrays import Floats, Integers, each
from matrix.statistics.samples.pooling import Pooling
from matrix.statistics.samples.reduce import LogSums, log_sums, mean_log
from matrix.statistics.samples.run import Run, by_day


@dataclass(frozen=True)
class DailyBaseline:
    """Mean natural logs of the rates of cells, beside what is usual for their links.

    ``window`` has shape (rows, columns) and ``days`` (days, rows, columns), a day being one of UTC
    that has results; NaN for none. ``ok`` and ``other_ok`` count the successes that these are made
    of, in the same shapes: those of links that have some in the window and before.
    """

    window: Floats
    days: Floats
    ok: Integers
    other_ok: Integers

    @classmethod
    def of(cls, results: Sequence[Run], before: Sequence[Run], pooling: Pooling) -> Self:
        """Reduce the runs of a window and, in the order of time, those of the days before it."""
        runs_of_days = [runs for _, runs in by_day(before)]
        # They are all kept: 16 bytes for each link and day cost less than to go over them twice.
        own, *days = each(
            lambda runs: log_sums(runs, pooling.numbering), [list(results), *runs_of_days]
        )
        links = JudgedLinks.of(own, days, pooling)
        (total, ok), *of_days = each(links.pooled, [own, *days])
        blank = np.zeros((0, *pooling.shape), dtype=np.int64)
        other_ok = np.stack([count for _, count in of_days]) if of_days else blank
        means = np.stack([mean_log(sums) for sums in of_days]) if of_days else blank.astype(float)
        return cls(mean_log((total, ok)), means, ok, other_ok)


@dataclass(frozen=True)
class JudgedLinks:
    """Links with successes in the window and before: their numbers, usual mean logs, and cells."""

    numbers: Integers
    usual: Floats
    cells: Integers
    shape: tuple[int, int]

    @classmethod
    def of(cls, own: LogSums, days: Sequence[LogSums], pooling: Pooling) -> Self:
        total, count = np.zeros(len(own[0])), np.zeros(len(own[0]), dtype=np.int64)
        for of_day, count_of_day in days:
            total += of_day
            count += count_of_day
        # Behind the last place stands what is not registered.
        shown = np.pad(pooling.shown, (0, 1)).ravel()
        numbers = np.flatnonzero(shown & (own[1] > 0) & (count > 0))
        source, destination = np.divmod(numbers, pooling.numbering.stride)
        cells = pooling.rows[source] * pooling.shape[1] + pooling.columns[destination]
        return cls(numbers, total[numbers] / count[numbers], cells, pooling.shape)

    def pooled(self, sums: LogSums) -> LogSums:
        """Add up the logs of the links of each cell, each beside its usual one; (rows, columns)."""
        total, count = sums[0][self.numbers], sums[1][self.numbers]
        cells = self.shape[0] * self.shape[1]
        beside = total - count * self.usual
        sums_of_cells = np.asarray(np.bincount(self.cells, beside, cells), dtype=float)
        counts = np.asarray(np.bincount(self.cells, count, cells), dtype=np.int64)
        return sums_of_cells.reshape(self.shape), counts.reshape(self.shape)
