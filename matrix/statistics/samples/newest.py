"""The newest tests of each link. Pure numpy."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import ArrayFields, Integers, each
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.run import FAILED_BIT, Run

# So many of the newest successes of a link are kept.
NEWEST = 3
# So many links are worked on at a time: what is made of them takes little memory.
LINKS = 1 << 17


@dataclass(frozen=True)
class NewestTests(ArrayFields):
    """By the number of a link (Numbering): its newest successes, and the failures after them.

    ``started`` (Unix ms, 0 for none) and ``rates`` (bytes/s) have the newest success first, shape
    (KEPT, links); ``streak`` is how many tests failed since, and ``since`` when the first of
    those started (Unix ms, 0 for none).
    """

    started: Integers
    rates: NDArray[np.float32]
    streak: NDArray[np.int32]
    since: Integers

    @classmethod
    def of(cls, runs: Iterable[Run], numbering: Numbering, before: Self | None = None) -> Self:
        """Go through runs with offsets, the newest first, and on with what was ``before``."""
        links = numbering.size
        newest = cls(
            np.zeros((NEWEST, links), dtype=np.int64),
            np.zeros((NEWEST, links), dtype=np.float32),
            np.zeros(links, dtype=np.int32),
            np.zeros(links, dtype=np.int64),
        )
        filled = np.zeros(links, dtype=np.uint8)
        parts = numbering.parts(LINKS)

        def add(part: Numbering, run: Run) -> None:
            own = part.own(run)
            newest._add(own, numbering, filled)
            # The failures of an older run that no success has come after.
            rows = np.flatnonzero(own.keys & FAILED_BIT)
            number, started = numbering.numbers(own.keys[rows]), own.started(rows)
            later = started > newest.started[0, number]
            number, started = number[later], started[later]
            np.add.at(newest.streak, number, 1)
            order = np.argsort(started, kind="stable")[::-1]
            # Of several for one link, the last is kept: the first of them.
            newest.since[number[order]] = started[order]

        for run in runs:
            each(partial(add, run=run), parts)
        return before._with(newest, filled) if before is not None else newest

    def _add(self, run: Run, numbering: Numbering, filled: NDArray[np.uint8]) -> None:
        """Take in an older run; ``filled`` counts the successes that a link has already."""
        number = numbering.numbers(run.keys)
        rows = np.flatnonzero((run.keys & FAILED_BIT == 0) & (filled.take(number) < NEWEST))
        number, started = number[rows], run.started(rows)
        order = np.lexsort((started, number))
        number, started, rows = number[order], started[order], rows[order]
        last = np.flatnonzero(np.diff(number, append=-1))
        first = np.concatenate([[0], last[:-1] + 1])
        rates = run.keys.take(rows).astype(np.uint32).view(np.float32)
        before = filled[number[last]].astype(np.int64)
        for back in range(NEWEST):
            fits = (last - back >= first) & (before + back < NEWEST)
            at, place = last[fits] - back, before[fits] + back
            self.started[place, number[at]] = started[at]
            self.rates[place, number[at]] = rates[at]
        filled[number[last]] = np.minimum(before + (last - first + 1), NEWEST)

    def _with(self, newer: Self, filled: NDArray[np.uint8]) -> Self:
        """Return both together; only links that have something newer are gone through."""
        if not filled.any() and not newer.streak.any():
            return self
        started, rates = self.started.copy(), self.rates.copy()
        streak, since = self.streak.copy(), self.since.copy()
        links = np.flatnonzero(filled)
        count = filled[links].astype(np.int64)
        for place in reversed(range(NEWEST)):
            own = place < count
            older = np.maximum(place - count, 0)
            started[place, links] = np.where(
                own, newer.started[place, links], self.started[older, links]
            )
            rates[place, links] = np.where(own, newer.rates[place, links], self.rates[older, links])
        streak[links], since[links] = newer.streak[links], newer.since[links]
        goes_on = np.flatnonzero((filled == 0) & (newer.streak > 0))
        streak[goes_on] += newer.streak[goes_on]
        since[goes_on] = np.where(self.streak[goes_on] > 0, since[goes_on], newer.since[goes_on])
        return type(self)(started, rates, streak, since)
