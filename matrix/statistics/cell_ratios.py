"""The rates of the cells of a matrix on two sides, from the runs of both. Pure numpy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matrix.statistics.arrays import Flags
from matrix.statistics.paired_samples import Pairs, pairs
from matrix.statistics.pooling import HIDDEN, Cells, Chunk, Numbering, Pooling, cut
from matrix.statistics.quantiles import Bits
from matrix.statistics.reduce import FAILED, Reduced, Samples
from matrix.statistics.run import Run
from matrix.statistics.threads import each
from matrix.statistics.two_samples import KnownScatter, Ratios, Rule, judged
from sonar.units import MB


@dataclass(frozen=True)
class SideRuns:
    """The results of one side, and which links count there, shape (places, places)."""

    runs: Sequence[Run]
    shown: Flags


@dataclass(frozen=True)
class Sides:
    """Both sides of each cell: ``reduced`` are the results of this one, as reduce() has them.

    ``rule`` is what the cells were judged by.
    """

    reduced: Reduced
    ratios: Ratios
    rule: Rule


def compare_cells(
    pooling: Pooling,
    own: SideRuns,
    other: SideRuns,
    of: str,
    extras: Collection[str] = (),
    *,
    known_scatter: KnownScatter | None = None,
    rule: Rule | None = None,
) -> Sides:
    """Compare the successes of each cell on both sides; arrays of the shape of the pooling.

    ``pooling`` gives rows and columns to the links of both sides, whichever it shows itself.
    ``of`` is `median` or `mean`; ``extras`` are those of reduce(). ``known_scatter`` is how far the
    tests of each cell scatter, where that is known beforehand; without a ``rule`` all cells make
    one.
    """
    reduced, whole = Reduced.blank(pooling.shape, extras), Pairs.blank(*pooling.shape)
    runs = [*own.runs, *other.runs]
    if runs and whole.squares.size:
        both = replace(pooling, shown=own.shown | other.shown)
        cell_of, chunks = cut(runs, both)
        hidden = [shown_only(cell_of, side.shown) for side in (own, other)]
        cells_of = np.concatenate(hidden)

        def work(chunk: Chunk) -> None:
            # As many pieces of each run, one run after the other.
            pieces = len(chunk.keys) * len(own.runs) // len(runs)
            samples = JointSamples.of(chunk, pieces, pooling.numbering, cells_of)
            reduced.put(chunk.rows, samples.own.reduced(extras))
            table = samples.pairs(of).table
            whole.table[:, chunk.rows] = table.reshape(len(table), -1, pooling.shape[1])

        each(work, chunks)
    ratios, used = judged(whole, of, known_scatter=known_scatter, rule=rule, unit=MB)
    return Sides(reduced, ratios, used)


def shown_only(cell_of: Cells, shown: Flags) -> Cells:
    """Hide the links that are not shown, of the cells by the numbers of links."""
    return np.where(np.pad(shown, (0, 1)).ravel(), cell_of, HIDDEN)


@dataclass(frozen=True)
class JointSamples:
    """The samples of both sides in some rows: ``cell`` and ``bits`` are first those of ``own``."""

    own: Samples
    cell: Cells
    bits: Bits

    @classmethod
    def of(cls, chunk: Chunk, pieces: int, numbering: Numbering, cells_of: Cells) -> JointSamples:
        """Take what is cut of the runs of both sides; the first ``pieces`` are of this one.

        ``cells_of`` are by the numbers of links, first on this side, then on the other.
        """
        keys = np.concatenate([np.empty(0, dtype=np.uint64), *chunk.keys])
        count = sum(map(len, chunk.keys[:pieces]))
        number = numbering.numbers(keys)
        number[count:] += len(cells_of) // 2
        cell, bits = cells_of.take(number), keys.astype(np.uint32)
        at = cell[:count].astype(np.intp)
        return cls(Samples(chunk.cells, at, bits[:count], chunk.sizes, ordered=False), cell, bits)

    def pairs(self, of: str) -> Pairs:
        """Compare the successes of both sides in each cell."""
        cells, cell = self.own.cells, self.cell.copy()
        cell[np.flatnonzero(self.bits >= FAILED)] = HIDDEN
        sides = np.split(cell, [len(self.own.cell)])
        counts = [np.bincount(side, minlength=cells)[:cells] for side in sides]
        # The side takes the place of the sign, which no success has.
        marked = self.bits << np.uint32(1)
        marked[len(sides[0]) :] |= np.uint32(1)
        return pairs(cell, marked, np.stack(counts), of)
