"""Rates in a window and on each day before it, against the mean of each link. Pure numpy."""

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
    """Mean natural logs of the rates of cells, less the means of the days of their links.

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
        # Links with successes in the window and before, what is usual for each, and their cells.
        total, count = np.zeros(len(own[0])), np.zeros(len(own[0]), dtype=np.int64)
        for of_day, count_of_day in days:
            total += of_day
            count += count_of_day
        # After the last place is what is not registered.
        shown = np.pad(pooling.shown, (0, 1)).ravel()
        numbers = np.flatnonzero(shown & (own[1] > 0) & (count > 0))
        usual = total[numbers] / count[numbers]
        source, destination = np.divmod(numbers, pooling.numbering.stride)
        cells = pooling.rows[source] * pooling.shape[1] + pooling.columns[destination]

        def pooled(sums: LogSums) -> LogSums:
            """Add up the logs of the links of each cell, less the usual ones; (rows, columns)."""
            of_links, counts = sums[0][numbers], sums[1][numbers]
            size = pooling.shape[0] * pooling.shape[1]
            of_cells = np.bincount(cells, of_links - counts * usual, size).astype(float)
            counts = np.bincount(cells, counts, size).astype(np.int64)
            return of_cells.reshape(pooling.shape), counts.reshape(pooling.shape)

        (in_window, ok), *of_days = each(pooled, [own, *days])
        blank = np.zeros((0, *pooling.shape), dtype=np.int64)
        other_ok = np.stack([count for _, count in of_days]) if of_days else blank
        means = np.stack([mean_log(sums) for sums in of_days]) if of_days else blank.astype(float)
        return cls(mean_log((in_window, ok)), means, ok, other_ok)
