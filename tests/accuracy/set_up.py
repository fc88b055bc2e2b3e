"""Ten seconds more before each transfer of an endpoint: is it named, and as overhead?"""

import numpy as np

from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.causes.causes import name_causes
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import ClassTimes, Lines
from tests.accuracy.faults import Fault, name_of
from tests.accuracy.grids import TRANSFERS, Grid

SIZES = (20.0, 200.0, 2000.0)
# Links have so many seconds of overhead and MB/s of bandwidth in the middle; they scatter by these
# factors.
OVERHEAD, BANDWIDTH = (1.5, 1.5), (20.0, 2.0)
SECONDS = 10.0
# It is told right if the overhead grew by its half to its double, and the bandwidth stayed.
STAYED = 1.5


def told_from_bandwidth(grid: Grid, fault: Fault, noise: float, rng: np.random.Generator) -> bool:
    """Name the endpoint by its small files, and fit the lines of its links before and after."""
    shape = (grid.size, grid.size)
    start, pace = (
        middle * np.exp(np.log(factor) * rng.normal(size=shape))
        for middle, factor in (OVERHEAD, BANDWIDTH)
    )
    tested = np.where(grid.tested(rng), 0.0, np.nan)
    names, shift = fault.into(tested, grid, rng)
    later = np.where(shift < 0, SECONDS, 0.0)
    before, after = [], []
    for size in SIZES:
        errors = grid.windows(rng, noise, 2).errors
        before.append((start + size / pace) * np.exp(errors[0]) + tested)
        after.append((start + later + size / pace) * np.exp(errors[1]) + tested)
    causes = name_causes(np.log(before[0] / after[0]), sites=grid.sites())
    if [name_of(cause) for cause in causes] != names:
        return False
    slowed = (shift < 0) & np.isfinite(tested)
    return _is_overhead(*(_lines(times, slowed, noise) for times in (before, after)))


def _lines(times: list[Floats], links: Flags, noise: float) -> Lines:
    number = int(links.sum())
    error = np.full(number, np.log(noise) / np.sqrt(2))
    ok = np.full(number, TRANSFERS)
    return overhead.fit(
        [
            ClassTimes(np.full(number, size), seconds[links], error, ok)
            for size, seconds in zip(SIZES, times, strict=True)
        ]
    )


def _is_overhead(before: Lines, after: Lines) -> bool:
    grown = float(np.nanmedian(after.overhead - before.overhead))
    faster = float(np.nanmedian(after.bandwidth / before.bandwidth))
    return SECONDS / 2 <= grown <= SECONDS * 2 and 1 / STAYED <= faster <= STAYED
