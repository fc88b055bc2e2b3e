"""The states of cells and links, and the one place that says what is what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Floats, Integers

# A cell has one state; Cells.state holds its index in this tuple.
STATES = ("measured", "failed", "stale", "untested", "down", "not_applicable")
STATE_WORDS = {
    "measured": "measured",
    "failed": "failed: tests ran and none succeeded",
    "stale": "stale: its last result is older than its mesh promises, or its last success older "
    "than was asked for",
    "untested": "untested: scheduled, without a result in this window",
    "down": "down: declared downtime of one end",
    "not_applicable": "not applicable: no mesh tests it and it has no results",
}

MEASURED, FAILED, STALE, UNTESTED, DOWN, NOT_APPLICABLE = range(len(STATES))

# A cell is stale when its last result is older than this many intervals of its mesh.
STALE_AFTER_INTERVALS = 2
States = NDArray[np.uint8]


@dataclass(frozen=True)
class Evidence:
    """What cells, or links, are judged by: arrays of one shape.

    ``age`` is how long ago the last result started, in seconds, NaN for none; ``promise`` the
    interval in seconds at which a mesh tests them, infinity for no mesh. Those with either are
    ``applicable``; ``up`` says that not all of their links are in a declared downtime,
    ``outdated`` that no success is as young as was asked for.
    """

    ok: Integers
    failed: Integers
    age: Floats
    promise: Floats
    applicable: Flags
    up: Flags
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
            DOWN: ~self.up,
            NOT_APPLICABLE: ~self.applicable,
        }
        states = np.full(self.age.shape, UNTESTED, dtype=np.uint8)
        for state, where in judgements.items():
            np.putmask(states, where, state)
        return states
