"""The rates of the cells of a matrix on two sides, from the runs of both. Pure numpy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matrix.statistics.arrays import Flags
from matrix.statistics.pooling import Pooling
from matrix.statistics.reduce import LOG_SQUARES, Reduced, reduce
from matrix.statistics.run import Run
from matrix.statistics.two_samples import KnownScatter, Pairs, Ratios, Rule, judged
from sonar.notation.units import MB


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
    names = {of, LOG_SQUARES} - {"mean"}
    sides = [
        reduce(side.runs, replace(pooling, shown=side.shown), tuple({*of_side, *names}))
        for side, of_side in ((own, extras), (other, ()))
    ]
    pairs = Pairs(
        np.stack([side.ok for side in sides]),
        np.stack([side.mean if of == "mean" else side.extras[of] for side in sides]),
        np.nansum([side.extras[LOG_SQUARES] for side in sides], axis=0),
    )
    ratios, used = judged(pairs, of, known_scatter=known_scatter, rule=rule, unit=MB)
    shown = {name: values for name, values in sides[0].extras.items() if name in extras}
    return Sides(replace(sides[0], extras=shown), ratios, used)
