"""How much trouble links are in: what puts first the links to look at first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrix.answers.link_columns import ClassColumns
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells.standing import FASTER, SLOWER
from matrix.statistics.cells.states import (
    DOWN,
    FAILED,
    FAILING,
    MEASURED,
    NOT_APPLICABLE,
    STALE,
    UNTESTED,
    fail_partly,
)

# The least trouble first: states as pages name them, and how a measured link is beside that.
DEGREES = (
    *("nothing", "untested", "down", "usual", "stale"),
    *("faster", "partly", "slower", "failed", "failing"),
)
OF_STATES = {
    NOT_APPLICABLE: "nothing",
    UNTESTED: "untested",
    DOWN: "down",
    MEASURED: "usual",
    STALE: "stale",
    FAILED: "failed",
    FAILING: "failing",
}


def trouble_of(
    columns: ClassColumns, slower: Flags | None = None, faster: Flags | None = None
) -> Floats:
    """Return the place of each link in DEGREES, with a fraction for how bad it is among its like.

    Of failing links the first to fail is the worst, of slower ones the slowest, of those that fail
    partly the one with most failures, of faster ones the one that changed most. ``slower`` and
    ``faster`` are those of a comparison; without one they are compared with usual.
    """
    if slower is None or faster is None:
        slower, faster = columns.level == SLOWER, columns.level == FASTER
    ratio = columns.compared.get("compared_ratio", columns.ratio)
    measured = columns.state == MEASURED
    tests = np.maximum(columns.ok + columns.failed, 1)
    badness = {
        "faster": (measured & faster, ratio),
        "partly": (
            measured & fail_partly(columns.ok, columns.failed, False),
            columns.failed / tests,
        ),
        "slower": (measured & slower, -ratio),
        "failing": (columns.state == FAILING, -columns.since),
    }
    of_states = [DEGREES.index(OF_STATES[state]) for state in sorted(OF_STATES)]
    degrees = np.array(of_states, dtype=np.float64)[columns.state]
    for name, (links, values) in badness.items():
        degrees[links] = DEGREES.index(name) + shares(values[links])
    return degrees


def shares(values: Floats) -> Floats:
    """Return the ranks of values as shares below 1; where there is none, it is 0."""
    ranks: NDArray[np.int64] = np.unique(values, return_inverse=True)[1] + 1
    return np.asarray(np.where(np.isnan(values), 0, ranks / (len(values) + 1)))
