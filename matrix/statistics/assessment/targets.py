"""What people expect of links in place of what is usual. Pure numpy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers

# What is slow is at this part of its level at most, and what fails did so as often in a row, where
# nobody says otherwise.
SLOWEST_WELL, FAILURES_IN_A_ROW = 2 / 3, 3


@dataclass(frozen=True)
class Targets:
    """By link: ``below`` this part of its level it is slow (a natural log); ``floor`` is the level
    itself (natural log of bytes/s, NaN where the usual one counts); ``failures`` in a row make it
    failing; ``accepted`` is the level that somebody took for normal, as long as few tests tell it
    (natural log, NaN for none)."""

    below: Floats
    floor: Floats
    failures: Integers
    accepted: Floats

    @classmethod
    def usual(cls, links: int) -> Self:
        nothing = np.full(links, np.nan)
        below = np.full(links, math.log(SLOWEST_WELL))
        return cls(below, nothing, np.full(links, FAILURES_IN_A_ROW, dtype=np.int64), nothing)

    @cached_property
    def has_floor(self) -> Flags:
        return np.isfinite(self.floor)
