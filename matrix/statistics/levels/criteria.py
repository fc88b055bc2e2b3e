"""What links reached hour by hour, and when they passed a set of criteria or lost it.

All arrays of hours have the shape (links, hours). A moment is the end of an hour: what is measured
then is of the hours of one period up to it. Pure numpy; sums are of whole numbers, so exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import ArrayFields, Flags, Integers
from matrix.statistics.samples.run import FAILED_BIT, Run, rows_of

HOUR_MS = 3_600_000
MICROSECONDS = 1e6
# So many hours of links are looked at in one go by one thread: what is made of them takes 120 MB.
AT_ONCE = 1_000_000


@dataclass(frozen=True)
class LinkCriteria:
    """What is asked for over ``period`` hours: least tests, bytes/s, percent, and bytes.

    Of rate, success and volume 0 asks for nothing.
    """

    period: int
    tests: int
    rate: float
    success: float
    volume: int


@dataclass(frozen=True)
class HourSums(ArrayFields):
    """How many tests, how many of them succeeded, their bytes, and their time in microseconds."""

    tests: Integers
    ok: Integers
    volume: Integers
    micros: Integers

    @classmethod
    def of(cls, runs: Sequence[Run], links: NDArray[np.uint32], start: int, hours: int) -> Self:
        """Add up results by hour, of links as keys have them; ``start`` is in Unix ms.

        Runs have offsets and sizes. What is outside of the hours is left out.
        """
        sums = [np.zeros(len(links) * hours, dtype=np.int64) for _ in range(4)]
        for run in runs:
            where = rows_of(run, links)
            rows = where.places()
            hour = (run.started(rows) - start) // HOUR_MS
            inside = (hour >= 0) & (hour < hours)
            rows, cell = rows[inside], (where.numbers() * hours + hour)[inside]
            if run.sizes is None:
                raise ValueError(
                    "the volume can be computed only from results that include file sizes"
                )
            keys = run.keys[rows]
            ok = keys & FAILED_BIT == 0
            sizes = np.where(ok, run.sizes[rows], 0)
            rates = keys.astype(np.uint32).view(np.float32).astype(np.float64)
            seconds = sizes / np.where(rates > 0, rates, np.inf)
            micros = np.rint(seconds * MICROSECONDS).astype(np.int64)
            for total, values in zip(sums, (1, ok.astype(np.int64), sizes, micros), strict=True):
                np.add.at(total, cell, values)
        return cls(*(total.reshape(len(links), hours) for total in sums))

    def without(self, hours: Flags) -> Self:
        """Leave out what was measured in some hours, of shape (links, hours)."""
        return type(self)(*(np.where(hours, 0, values) for values in self.arrays().values()))

    def over(self, period: int) -> Self:
        """Add up the hours of one period up to each moment; too few where there are no more."""
        sums = [np.cumsum(values, axis=1) for values in self.arrays().values()]
        for each in sums:
            each[:, period:] -= each[:, :-period].copy()
        return type(self)(*sums)


class Passage(NamedTuple):
    """A time for which a link, by its place, passed: between moments, by their hours.

    ``passed`` is None for one that had passed before, ``lost`` for one that lasts.
    """

    link: int
    passed: int | None
    lost: int | None


@dataclass(frozen=True)
class JudgedHours:
    """Where links pass, and where one that has passed loses it; shape (links, hours)."""

    window: HourSums
    passes: Flags
    loses: Flags

    @classmethod
    def of(cls, measured: HourSums, down: Flags, criteria: LinkCriteria) -> Self:
        """Judge each moment.

        A link passes where there are tests and bytes enough, and rate and success are reached.
        It loses that where rate or success were too low for as many hours as the period has: of
        the last two periods, and since the last hour at which both were reached. Hours with too
        few tests are neither, and tests in hours ``down`` do not count, nor do these hours.
        """
        period = criteria.period
        window = measured.without(down).over(period)
        enough = window.tests >= criteria.tests
        # There is no whole period before.
        enough[:, : period - 1] = False
        # Rate and success, both compared without a division.
        success = window.ok * 100.0 >= criteria.success * window.tests
        fast = window.volume * MICROSECONDS >= criteria.rate * window.micros
        reached = success & (fast & (window.micros > 0) | (criteria.rate == 0))
        good, low = enough & reached, enough & ~reached & ~down
        counted = np.cumsum(low, axis=1)
        before = np.pad(counted, ((0, 0), (2 * period, 0)))[:, : counted.shape[1]]
        since = np.maximum.accumulate(np.where(good, counted, 0), axis=1)
        loses = low & (counted - np.maximum(before, since) >= period)
        return cls(window, good & (window.volume >= criteria.volume), loses)

    def passages(self, has_passed: Flags, first: int) -> Iterator[Passage]:
        """Yield the times for which links passed, from the hour ``first`` on, in no order.

        ``has_passed`` says of which links it lasts then.
        """
        hours = self.passes.shape[1]
        next_pass, next_loss = (_next_true(flags) for flags in (self.passes, self.loses))
        links = np.arange(len(has_passed))
        begun = np.where(has_passed, -1, next_pass[:, first])
        links, begun = links[begun < hours], begun[begun < hours]
        while links.size:
            ended = next_loss[links, np.where(begun < 0, first, begun)]
            for link, passed, lost in zip(
                *(a.tolist() for a in (links, begun, ended)), strict=True
            ):
                yield Passage(link, None if passed < 0 else passed, lost if lost < hours else None)
            lasting = ended == hours
            links, ended = links[~lasting], ended[~lasting]
            begun = next_pass[links, ended]
            links, begun = links[begun < hours], begun[begun < hours]


def _next_true(flags: Flags) -> Integers:
    """Return for each place the first true one at or behind it in its row, or past the end."""
    hours = flags.shape[1]
    places = np.where(flags, np.arange(hours), hours)
    return np.asarray(np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1])
