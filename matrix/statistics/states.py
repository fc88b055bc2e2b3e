"""The states of cells and links, and the one place that says what is what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.standing import LEVELS, UNKNOWN, USUAL

# A cell has one state; Cells.state holds its index in this tuple.
STATES = ("measured", "failing", "failed", "stale", "untested", "down", "not_applicable")
STATE_WORDS = {
    "measured": "measured",
    "failing": "failing: its newest three tests all failed",
    "failed": "failed: every test in this window failed, too few to call it failing",
    "stale": "stale: no result for two intervals of its mesh (test schedule), or no success within "
    "the age chosen",
    "untested": "untested: scheduled, but without a result in this window",
    "down": "down: an endpoint is in a declared downtime",
    "not_applicable": "not applicable: source and destination are the same, or no mesh (test "
    "schedule) includes it and it has no results",
}

MEASURED, FAILING, FAILED, STALE, UNTESTED, DOWN, NOT_APPLICABLE = range(len(STATES))

# Not applicable is the background: there is nothing to look at.
STATES_TO_SEE = STATES[:-1]
# What cells and links can be chosen by: their state, and how they are beside it.
LOOKS = (*STATES_TO_SEE, *LEVELS[USUAL:], LEVELS[UNKNOWN], "partly")

# A cell is stale when its last result is older than this many intervals of its mesh.
STALE_AFTER_INTERVALS = 2
# A cell is partly failing from this share of failed tests on.
PARTLY_FROM = 0.1
PARTLY_WORDS = (
    "partly failing: at least a tenth of its tests failed, or some of its links are failing"
)
States = NDArray[np.uint8]


def fail_partly(ok: NDArray[Any] | int, failed: NDArray[Any] | int, failing: Flags | bool) -> Flags:
    """Say of cells or links, or of one, by the counts of tests, whether a part of these failed.

    What is ``failing`` now does so wholly, whatever came through before.
    """
    in_part = (ok > 0) & (failed > 0) & (failed >= PARTLY_FROM * (ok + failed))
    return np.asarray(in_part & np.logical_not(failing))


@dataclass(frozen=True)
class Evidence:
    """What cells, or links, are judged by: arrays of one shape.

    ``age`` is how long ago the last result started, in seconds, NaN for none; ``promise`` the
    interval in seconds at which a mesh tests them, infinity for no mesh. Those with either are
    ``applicable``; ``up`` says that not all of their links are in a declared downtime,
    ``failing`` that the newest tests failed, ``outdated`` that no success is as young as was
    asked for.
    """

    ok: Integers
    failed: Integers
    age: Floats
    promise: Floats
    applicable: Flags
    up: Flags
    failing: Flags
    outdated: Flags | None = None

    def states(self) -> States:
        """Return the state of each: the one place that says what is what, for pages and API."""
        stale = self.age > STALE_AFTER_INTERVALS * self.promise
        if self.outdated is not None:
            stale |= self.outdated
        judgements = {
            FAILED: self.failed > 0,
            MEASURED: self.ok > 0,
            STALE: (self.ok > 0) & stale,
            FAILING: self.failing,
            DOWN: ~self.up,
            NOT_APPLICABLE: ~self.applicable,
        }
        states = np.full(self.age.shape, UNTESTED, dtype=np.uint8)
        for state, where in judgements.items():
            np.putmask(states, where, state)
        return states
