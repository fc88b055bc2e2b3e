"""What rates did before and since something, in a few bins of time: small pictures. Pure numpy."""

from dataclasses import dataclass
from math import isnan
from typing import Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Floats, Integers, significant
from matrix.statistics.samples.reduce import mean_log
from matrix.statistics.samples.run import SPAN

# On each side of what happened.
BINS = 12
HOUR, DAY = 3_600_000, 86_400_000
# So long each side is at least, and at most.
SHORTEST_CHANGE, SHORTEST_OUTAGE, LONGEST = HOUR, 6 * HOUR, 14 * DAY

# Factors of the level before, None where there is no rate; shape (2 * BINS,).
Factors = list[float | None]


@dataclass(frozen=True)
class BeforeSince:
    """What pictures show: ``length`` ms before some moments, and as long since others (Unix ms).

    NEVER for a moment since that has not come.
    """

    before: Integers
    since: Integers
    length: Integers

    def edges(self) -> tuple[Integers, Integers]:
        """Return where bins begin and end on both sides, each of shape (moments, BINS + 1)."""
        steps = self.length[:, None] * np.arange(BINS + 1) // BINS
        return (self.before - self.length)[:, None] + steps, self.since[:, None] + steps


def around(at: Integers, begins: Integers, ends: Integers) -> BeforeSince:
    """Return both sides of changes of levels that began and ended there: as long as both last."""
    length = np.clip(np.minimum(at - begins, ends - at), SHORTEST_CHANGE, LONGEST)
    return BeforeSince(at, at, length)


def without(began: Integers, ended: Integers, end: int) -> BeforeSince:
    """Return both sides of outages, for as long as each lasted, or lasts until ``end``."""
    length = np.clip(np.minimum(ended, end) - began, SHORTEST_OUTAGE, LONGEST)
    return BeforeSince(began, ended, length)


@dataclass(frozen=True)
class LogRates:
    """The natural logs of rates by link, and in the order of time for each.

    ``keys`` are link * SPAN + start (Unix ms), and ``sums`` those of all logs before each place.
    """

    keys: Integers
    sums: Floats

    @classmethod
    def of(cls, link: Integers, started: Integers, rates: NDArray[np.float32]) -> Self:
        """Take successes in the order of link and time; links are numbered from 0."""
        logs = np.log(rates.astype(np.float64))
        return cls(link * SPAN + started, np.concatenate([[0.0], np.cumsum(logs)]))

    def binned(self, link: Integers, edges: Integers) -> tuple[Integers, Floats]:
        """Return how many logs each link has between its neighbouring edges, and their sum.

        ``edges`` have the shape (links, edges), both answers (links, edges - 1).
        """
        places = self.keys.searchsorted(link[:, None] * SPAN + edges)
        return np.diff(places), np.diff(self.sums[places])

    def levels(self, link: Integers, start: Integers, end: Integers) -> Floats:
        """Return the mean of the logs of each link from a moment until another, NaN for none."""
        count, total = self.binned(link, np.stack([start, end], axis=1))
        return mean_log((total[:, 0], count[:, 0]))

    def courses(self, link: Integers, levels: Floats, sides: BeforeSince) -> list[Factors]:
        """Return a course for each link, against its level before."""
        counts, excess = self._bins(link, levels, sides)
        return as_factors(mean_log((excess, counts)))

    def course(self, link: Integers, levels: Floats, sides: BeforeSince) -> Factors:
        """Return the course that links with a level have together, each against its own."""
        counts, excess = self._bins(link, levels, sides)
        has_level = ~np.isnan(levels)
        counts, excess = counts[has_level].sum(axis=0), excess[has_level].sum(axis=0)
        return as_factors(mean_log((excess, counts))[None])[0]

    def _bins(self, link: Integers, levels: Floats, sides: BeforeSince) -> tuple[Integers, Floats]:
        counts, sums = (
            np.hstack(both)
            for both in zip(*(self.binned(link, edges) for edges in sides.edges()), strict=True)
        )
        return counts, sums - counts * levels[:, None]


def as_factors(logs: Floats) -> list[Factors]:
    """Turn logs into factors of three digits, as they are kept; None for NaN."""
    factors = significant(np.exp(logs), 3)
    return [[None if isnan(factor) else factor for factor in row] for row in factors.tolist()]
