"""The rates of the cells of a matrix on two sides, from the runs of both. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags
from matrix.statistics.joint_ranks import Pairs, pairs
from matrix.statistics.pooling import HIDDEN, Cells, Chunk, Numbering, Pooling, cut
from matrix.statistics.reduce import FAILED
from matrix.statistics.run import Run
from matrix.statistics.threads import each
from matrix.statistics.two_samples import Ratios
from sonar.units import MB


@dataclass(frozen=True)
class SideRuns:
    """The results of one side, and which links count there, shape (places, places)."""

    runs: Sequence[Run]
    shown: Flags


def cell_ratios(pooling: Pooling, own: SideRuns, other: SideRuns, of: str) -> Ratios:
    """Compare the successes of each cell on both sides; arrays of the shape of the pooling.

    ``pooling`` gives rows and columns to the links of both sides, whichever it shows itself.
    ``of`` is `median` or `mean`.
    """
    whole = Pairs.blank(*pooling.shape)
    runs = [*own.runs, *other.runs]
    if runs and whole.wins.size:
        both = replace(pooling, shown=own.shown | other.shown)
        cell_of, chunks = cut(runs, both)
        cells_of = [shown_only(cell_of, side.shown) for side in (own, other)]

        def work(chunk: Chunk) -> None:
            # As many pieces of each run, one run after the other.
            cut_at = len(chunk.keys) * len(own.runs) // len(runs)
            keys = chunk.keys[:cut_at], chunk.keys[cut_at:]
            part = of_chunk(keys, cells_of, pooling.numbering, chunk.cells, of)
            whole.table[:, chunk.rows] = part.table.reshape(len(part.table), -1, pooling.shape[1])

        each(work, chunks)
    return Ratios.of(whole, of, MB)


def shown_only(cell_of: Cells, shown: Flags) -> Cells:
    """Hide the links that are not shown, of the cells by the numbers of links."""
    return np.where(np.pad(shown, (0, 1)).ravel(), cell_of, HIDDEN)


def of_chunk(
    sides: Sequence[Sequence[NDArray[np.uint64]]],
    cells_of: Sequence[Cells],
    numbering: Numbering,
    cells: int,
    of: str,
) -> Pairs:
    """Compare the keys of both sides in some rows, of ``cells`` cells."""
    cells_by_side, bits_by_side, counts = [], [], np.zeros((2, cells), dtype=np.int64)
    for side, (pieces, cell_of) in enumerate(zip(sides, cells_of, strict=True)):
        keys = np.concatenate([np.empty(0, dtype=np.uint64), *pieces])
        bits, cell = keys.astype(np.uint32), cell_of.take(numbering.numbers(keys))
        cell[np.flatnonzero(bits >= FAILED)] = HIDDEN
        counts[side] = np.bincount(cell, minlength=cells)[:cells]
        # The side takes the place of the sign, which no success has.
        bits <<= np.uint32(1)
        bits |= np.uint32(side)
        cells_by_side.append(cell)
        bits_by_side.append(bits)
    # What is hidden comes last, behind all that the counts take up.
    order = np.concatenate(cells_by_side).argsort(kind="stable")
    return pairs(np.concatenate(bits_by_side).take(order), counts, of)
