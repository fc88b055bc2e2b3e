"""How many tests of each link failed since its last success, without its rates. Pure numpy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.run import FAILED_BIT, Run

Streaks = NDArray[np.int32]


def streaks_after(runs: Sequence[Run], numbering: Numbering, before: Streaks) -> Streaks:
    """Return NewestTests.streak after runs with offsets, in any order, and what was ``before``.

    By the number of a link, as ``before`` is. The times of successes are only looked at where a
    test failed as well, which few links have in a day.
    """
    streaks = before.copy()
    has_failed = np.zeros(numbering.size, dtype=bool)
    parts = [(run, numbering.numbers(run.keys), run.keys & FAILED_BIT != 0) for run in runs]
    for _, number, failed in parts:
        streaks[number[~failed]] = 0
        has_failed[number[failed]] = True
    newest = np.zeros(numbering.size, dtype=np.int64)
    for run, number, failed in parts:
        rows = np.flatnonzero(~failed & has_failed.take(number))
        np.maximum.at(newest, number[rows], run.started(rows))
    for run, number, failed in parts:
        rows = np.flatnonzero(failed)
        later = rows[run.started(rows) > newest[number[rows]]]
        np.add.at(streaks, number[later], 1)
    return streaks
