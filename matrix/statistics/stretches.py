"""Sequences of different lengths, one behind another in one array. Pure numpy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers


class Stretches(NamedTuple):
    """Parts of one array: where each starts in it, and how many values it has."""

    starts: Integers
    counts: Integers

    def places(self) -> Integers:
        """Return the places of all of them, one stretch behind another."""
        ends = np.cumsum(self.counts)
        total = int(ends[-1]) if ends.size else 0
        places: Integers = np.arange(total) + np.repeat(
            self.starts - ends + self.counts, self.counts
        )
        return places

    def numbers(self) -> Integers:
        """Return for each of the places which stretch it is of."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def taken(self, choice: Flags | Integers) -> Stretches:
        return Stretches(self.starts[choice], self.counts[choice])


def steps(values: Floats, stretches: Stretches) -> Floats:
    """Return what each value is more than the one before it; 0 for the first of a stretch."""
    differences = np.diff(values, prepend=0.0)
    differences[stretches.starts[stretches.counts > 0]] = 0.0
    return differences


def sums_of(values: Floats, stretches: Stretches) -> Floats:
    sums = np.bincount(stretches.numbers(), values, minlength=len(stretches.counts))
    return np.asarray(sums, dtype=np.float64)
