"""Adding up evidence test by test: CUSUM (Page 1954). Pure numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers

# Above any sum of evidence: it keeps groups apart that are gone through at once.
APART = 1e7
ROUNDING = 1e-6


class Evidence(NamedTuple):
    """That something has begun: how much there is, and since when (Unix ms) it adds up."""

    amount: Floats
    since: Integers

    @classmethod
    def none(cls, groups: int) -> Self:
        return cls(np.zeros(groups), np.zeros(groups, dtype=np.int64))


@dataclass(frozen=True)
class Groups:
    """Results in the order of time by what they count for: ``order`` is by group and then by time,
    ``first`` says which is the first of its group there."""

    group: Integers
    started: Integers
    order: Integers
    first: Flags

    @classmethod
    def of(cls, group: Integers, started: Integers) -> Self:
        order = np.argsort(group, kind="stable")
        return cls(group, started, order, np.diff(group[order], prepend=-1) != 0)

    def trace(self, gains: Floats, before: Evidence) -> Evidence:
        """Return the evidence at each test: gains are added up, and begin again below 0.

        ``before`` has what each group had already.
        """
        if not len(gains):
            return Evidence.none(0)
        ordered, group = gains[self.order], self.group[self.order]
        total = np.cumsum(ordered)
        start = np.maximum.accumulate(np.where(self.first, np.arange(len(total)), 0))
        ahead = total - ordered
        ahead = ahead - ahead[start] + before.amount[group]
        apart = np.cumsum(self.first) * APART
        lowest = (
            np.minimum.accumulate(np.where(self.first, np.minimum(ahead, 0), ahead) - apart) + apart
        )
        begins = ahead <= lowest + ROUNDING
        # Where it has not begun again today, it goes on from before.
        at = np.maximum.accumulate(np.where(begins | self.first, np.arange(len(total)), 0))
        since = np.where(begins[at], self.started[self.order][at], before.since[group])
        amount, began = np.empty(len(total)), np.empty(len(total), dtype=np.int64)
        amount[self.order], began[self.order] = ahead + ordered - lowest, since
        return Evidence(amount, began)

    def streaks(self, flags: Flags, before: Integers) -> Integers:
        """Return how many tests of its group in a row are flagged, up to each and with it."""
        ordered, place = flags[self.order], np.arange(len(flags))
        start = np.maximum.accumulate(np.where(self.first, place, 0))
        last_off = np.maximum.accumulate(np.where(~ordered, place, -1))
        is_whole = last_off < start
        run = np.where(
            is_whole, place - start + 1 + before[self.group[self.order]], place - last_off
        )
        streaks = np.empty(len(run), dtype=np.int64)
        streaks[self.order] = np.where(ordered, run, 0)
        return streaks

    def last(self, values: Evidence, before: Evidence) -> Evidence:
        """Return what each group has after its last test; that before where it has none."""
        amount, since = before.amount.copy(), before.since.copy()
        # Of several for one group, the last is kept.
        amount[self.group], since[self.group] = values
        return Evidence(amount, since)
