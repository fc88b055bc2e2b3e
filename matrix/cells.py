"""The cells of a matrix: samples and promises of links, pooled by row and column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrix import statistics
from matrix.places import Axis, Links
from matrix.statistics import Flags, Floats, Integers, Samples
from sonar.units import MB

# A cell has one state; Cells.state holds its index in this tuple.
STATES = ("measured", "failed", "stale", "untested", "down", "not_applicable")
MEASURED, FAILED, STALE, UNTESTED, DOWN, NOT_APPLICABLE = range(len(STATES))
# A cell is stale when its last result is older than this many intervals of its mesh.
STALE_AFTER_INTERVALS = 2


@dataclass(frozen=True)
class Cells:
    """Arrays of shape (sources, destinations). Rates in MB/s; NaN where there is none.

    ``value`` is the asked statistic in Grid.unit; ``last`` is when the last result started,
    in Unix time; ``state`` indexes STATES.
    """

    value: Floats
    mean: Floats
    std: Floats
    ok: Integers
    failed: Integers
    last: Floats
    state: Integers


@dataclass(frozen=True)
class Frame:
    """Which links are in the matrix, and the cell of each, numbered row by row.

    ``applicable`` links are tested by a mesh or have results; ``promise`` is the interval in
    seconds at which a mesh tests them, infinity for no mesh.
    """

    rows: Axis
    columns: Axis
    cell: Integers
    applicable: Flags
    promise: Floats

    @classmethod
    def around(
        cls, links: Links, with_results: Integers, promise: Floats, grouping: tuple[str, str]
    ) -> Frame:
        """Lay out the rows and columns of the links that have a result or a promise."""
        applicable = np.isfinite(promise)
        applicable[with_results] = True
        rows = Axis.along(links.places, links.sources(applicable), grouping[0])
        columns = Axis.along(links.places, links.destinations(applicable), grouping[1])
        cell = (rows.of[:, None] * len(columns.groups) + columns.of[None, :]).ravel()
        return cls(rows, columns, cell, applicable, promise)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows.groups), len(self.columns.groups)

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def any_link(self, links: Flags) -> Flags:
        """Return the cells in which at least one of these links lies."""
        cells = np.zeros(self.size, dtype=bool)
        cells[self.cell[links]] = True
        return cells

    def promises(self) -> Floats:
        """Return the shortest promise in each cell."""
        shortest = np.full(self.size, np.inf)
        here = self.applicable
        np.minimum.at(shortest, self.cell[here], self.promise[here])
        return shortest

    def cells(
        self, samples: Samples, started: Floats, down: Flags, stat: str, moment: float
    ) -> Cells:
        """Reduce samples to cells as they stand at a moment (Unix time).

        ``started`` is the Unix time of each sample; ``down`` says which links have an end in
        a declared downtime.
        """
        done = samples.done
        ok = statistics.count(done.cell, self.size)
        failed = statistics.count(samples.cell, self.size) - ok
        last = statistics.maximum(samples.cell, started, self.size)
        return Cells(
            value=self._value(stat, samples, done, moment - last).reshape(self.shape),
            mean=(statistics.rates("mean", done, self.size) / MB).reshape(self.shape),
            std=(statistics.rates("std", done, self.size) / MB).reshape(self.shape),
            ok=ok.reshape(self.shape),
            failed=failed.reshape(self.shape),
            last=last.reshape(self.shape),
            state=self._states(ok, failed, moment - last, down).reshape(self.shape),
        )

    def _value(self, stat: str, samples: Samples, done: Samples, age: Floats) -> Floats:
        if stat == "last":
            return age
        if stat not in ("count", "success"):
            return statistics.rates(stat, done, self.size) / MB
        tests = statistics.count(samples.cell, self.size)
        if stat == "count":
            return np.where(tests > 0, tests, np.nan)
        return 100 * statistics.ratio(statistics.count(done.cell, self.size), tests)

    def _states(self, ok: Integers, failed: Integers, age: Floats, down: Flags) -> Integers:
        """Judge each cell; a group is down or not applicable only if all its links are."""
        up = self.any_link(self.applicable & ~down)
        return np.select(
            [
                ~self.any_link(self.applicable),
                ~up,
                (ok > 0) & (age > STALE_AFTER_INTERVALS * self.promises()),
                ok > 0,
                failed > 0,
            ],
            [NOT_APPLICABLE, DOWN, STALE, MEASURED, FAILED],
            default=UNTESTED,
        )
