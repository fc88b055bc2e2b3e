"""How each link does against what is expected of it, by its newest tests. Pure numpy.

Whoever calls people must be sure, and must not call twice: a link is slow below one bound and well
again only above another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import ArrayFields, Flags, Floats, Integers
from matrix.statistics.cells.expected import LinkRules
from matrix.statistics.cells.standing import Rates, UsualRates, middle
from matrix.statistics.samples.newest import NEWEST, NewestTests
from matrix.statistics.samples.pooling import Numbering


@dataclass(frozen=True)
class LinkTimes:
    """When links are tested, in Unix s; arrays of shape (places, places) or one that fits it.

    ``now`` is the moment of the evaluation, ``free_since`` since when nothing that is known has
    kept Sonar from testing a link; ``every`` is the interval in seconds at which it is tested,
    infinity for never. ``testable`` are links that no downtime or pause keeps from tests.
    """

    now: float
    free_since: Floats
    every: Floats
    testable: Flags


@dataclass(frozen=True)
class LinkStates(ArrayFields):
    """By link, shape (places, places).

    ``expected`` and ``rate`` (the median of the newest three successes) are in bytes/s, NaN where
    they are unknown; ``change`` is the natural log of rate / expected with its standard ``error``,
    of ``dof`` degrees of freedom; NaN where a floor is expected. ``slow``, ``failing`` and
    ``silent`` are what a rule says of the newest tests; ``promised`` marks links that are slow
    against a floor, ``unsettled`` those that a rule does not call well again. ``judged`` are
    links that are tested and can be judged.
    ``streak`` counts failed tests in a row, ``doubt`` is the natural log of how often by chance as
    many fail. ``since`` is when the first of the tests that make it slow, failing or silent
    started, ``last_ok`` when its newest success did (Unix ms, 0 for none). ``rounds`` is how many
    intervals of its tests ago the first of them was; 0 where it is tested by nothing.
    """

    expected: Rates
    rate: Rates
    change: Rates
    error: Rates
    dof: Rates
    slow: Flags
    failing: Flags
    silent: Flags
    promised: Flags
    unsettled: Flags
    judged: Flags
    streak: NDArray[np.int32]
    doubt: Rates
    since: Integers
    last_ok: Integers
    rounds: Rates

    @property
    def bad(self) -> Flags:
        return np.asarray(self.slow | self.failing | self.silent)

    @classmethod
    def of(
        cls,
        newest: NewestTests,
        usual: UsualRates,
        rules: LinkRules,
        times: LinkTimes,
        numbering: Numbering,
    ) -> Self:
        """Judge each link."""
        testable = times.testable
        started, rates = (numbering.square(each) for each in (newest.started, newest.rates))
        streak = numbering.square(newest.streak)
        failed_since = numbering.square(newest.since)
        floor = rules.each("floor")
        has_floor = floor > 0  # and is not NaN
        expected = np.where(has_floor, floor, usual.median)
        failing = streak >= rules.each("failures")
        last = np.maximum(started[0], np.where(streak > 0, failed_since, 0)) / 1000
        age = times.now - np.maximum(last, times.free_since)
        silent = (age > rules.each("silent_after") * times.every) & (last > 0) & ~failing
        is_current = testable & ~failing & ~silent
        low, newest_low = below(rates, expected * rules.each("below"), rules)
        calm, _ = below(rates, expected * rules.each("above"), rules)
        slow = low & is_current
        has_rate = (started[NEWEST - 1] > 0) & is_current
        rate = np.where(has_rate, middle(*rates), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):  # of rates of 0
            change = np.where(has_rate & ~has_floor, np.log(rate / usual.median), np.nan)
        first_low = np.take_along_axis(started, newest_low[None], axis=0)[0]
        since = np.where(slow, first_low, np.where(failing, failed_since, started[0]))
        return cls(
            expected=expected.astype(np.float32),
            rate=rate.astype(np.float32),
            change=np.where(np.isfinite(change), change, np.nan).astype(np.float32),
            error=usual.precision.error.astype(np.float32, copy=False),
            dof=usual.precision.dof.astype(np.float32, copy=False),
            slow=slow,
            failing=failing & testable,
            silent=silent & testable,
            promised=slow & has_floor,
            unsettled=(calm & is_current) | ((streak > 0) & testable) | (silent & testable),
            judged=testable & ((last > 0) | failing),
            streak=streak,
            doubt=np.asarray(streak * np.log(usual.failing), dtype=np.float32),
            since=since,
            last_ok=started[0],
            rounds=((times.now - since / 1000) / times.every).astype(np.float32),
        )

    def masked(self, kept: Flags) -> Self:
        """Return them with nothing wrong, and nothing judged, of other links than those kept."""
        names = ("slow", "failing", "silent", "promised", "unsettled", "judged")
        flags = {name: getattr(self, name) & kept for name in names}
        return replace(self, change=np.where(kept, self.change, np.nan), **flags)


def below(rates: Rates, bound: Floats, rules: LinkRules) -> tuple[Flags, Integers]:
    """Say which links have as many successes below a bound as their rule says.

    ``rates`` have the newest success first, shape (NEWEST, ...), 0 for none, which is below
    nothing. Return with it the place of the oldest one that is below, 0 for none.
    """
    of, bound = rules.each("of"), bound.astype(np.float32)
    count, oldest = np.zeros((2, *bound.shape), dtype=np.uint8)
    for place in range(NEWEST):
        is_low = (rates[place] > 0) & (rates[place] < bound) & (place < of)
        count += is_low
        np.putmask(oldest, is_low, place)
    return count >= rules.each("bad"), oldest.astype(np.int64)
