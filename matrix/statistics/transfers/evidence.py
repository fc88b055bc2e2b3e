"""What the tests of one link say to a diagnosis. Pure numpy.

How much rates scatter that were made alike, whether concurrent tests slowed them, what one
variable does to them, and how an end does beside its peers.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from matrix.statistics.arrays import Floats
from matrix.statistics.estimates import student
from sonar.notation.units import MB

# By fewer tests beyond the first of each group, scatter and chance cannot be told apart.
FEWEST_FREE = 4
# The standard deviation of a normal distribution in mean distances from its middle.
NORMAL_DISTANCE = 1.2533
# Of an Ethernet packet of 1,500 bytes.
SEGMENT_BYTES = 1448
# Of more, TCP has fewer than four packets under way by Mathis: it learns of no loss any more
# but by waiting, and stands still.
MOST_LOST = 0.05
# Two sites are no nearer: 500 km of fibre there and back.
NEAREST_SECONDS = 0.005
# How many round trips pass between two losses is left to chance: rates scatter by 0.5 to 0.6 of
# one over the root of the losses, as a simulation has it for reno and for cubic.
LEAST_OF_ROOT = 0.5
# Storage and other traffic make so much anyway.
ANYWAY = 0.03
# Fewer on either side say nothing about their scatter.
FEWEST_A_SIDE = 3
# How often, at most, two groups that do not differ may lie as far apart as is told.
RANK_CHANCE = 0.01
Trend = Literal["flat", "proportional", "rising", "falling", "unclear"]

# Fewer tests that differ in the variable leave no scatter to judge by.
FEWEST_VARIED = 4
# Rates go with variable ** exponent: from here on they are in proportion to it ...
PROPORTIONAL = 0.75
# ... and up to here they do not depend on it, as far as anybody would care: with four times the
# streams a sixth more.
FLAT_EXPONENT = 0.11
# A value is as good as the best if its median is within a tenth of the best one's.
AS_GOOD = 0.9
# The scatter of fewer partners says nothing about the error of their mean.
FEWEST_PARTNERS = 3


@dataclass(frozen=True)
class AlikeTests:
    """The ``rates`` of tests that were made alike, of files of so many bytes."""

    rates: Floats
    bytes: float


@dataclass(frozen=True)
class RateScatter:
    """``spread`` is the standard deviation of the logarithms of rates, 0.1 for about 10 %.

    By ``n`` tests. ``by_loss`` is the least that it would be if lost packets held them back.
    """

    spread: float
    by_loss: float
    n: int

    @property
    def is_steady(self) -> bool:
        return self.spread < self.by_loss


def scatter(groups: Iterable[AlikeTests], stream_rate: float) -> RateScatter | None:
    """Pool the scatter of groups of tests, each around its own median; None for too few tests.

    By the mean distance. The test that is nearest to a median is left out: it makes the median.
    So is the furthest of all: tests of a link run one after the other, and what the machine or
    the network has to do for a moment meets one of them. ``stream_rate`` is what a connection
    carries on this link, in MB/s.
    """
    several = [group for group in groups if group.rates.size > 1]
    counts = [group.rates.size - 1 for group in several]
    if sum(counts) < FEWEST_FREE or math.isnan(stream_rate):
        return None
    logs = [np.log(group.rates) for group in several]
    # Of all but the middle one of each group.
    distances = np.concatenate([np.sort(np.abs(own - np.median(own)))[1:] for own in logs])
    by_loss = np.repeat([least_by_loss(group.bytes, stream_rate) for group in several], counts)
    counted = np.argsort(distances, kind="stable")[:-1]
    return RateScatter(
        NORMAL_DISTANCE * float(distances[counted].mean()),
        float(by_loss[counted].mean()),
        sum(group.rates.size for group in several),
    )


def least_by_loss(file_bytes: float, stream_rate: float) -> float:
    """Return how much files scatter at least if lost packets hold their connections to a rate.

    The fewer packets are lost, the more: as many as may be are those of the shortest round trip
    by Mathis, rate = segment / round trip * sqrt(1.5 / loss), in MB/s.
    """
    in_flight = stream_rate * MB * NEAREST_SECONDS / SEGMENT_BYTES
    lost = min(1.5 / in_flight**2, MOST_LOST) * file_bytes / SEGMENT_BYTES
    return max(LEAST_OF_ROOT / math.sqrt(lost), ANYWAY)


@dataclass(frozen=True)
class Slowdown:
    """Medians of tests without and with concurrent tests, in the unit of the rates, and counts."""

    without: float
    without_count: int
    concurrent: float
    concurrent_count: int


def slowdown(without: Floats, concurrent: Floats) -> Slowdown | None:
    """Return both medians if concurrent tests slowed tests beyond the scatter, else None.

    Beyond it means two things. The middle halves do not overlap: three quarters of the tests with
    concurrent tests are slower than three quarters of those without. And that is not chance:
    equally fast tests would give this in one case of a hundred at most (Mann-Whitney), or, where
    there are too few tests for that, the gap between the two groups is wider than both of them.
    """
    if min(len(without), len(concurrent)) < FEWEST_A_SIDE:
        return None
    if np.quantile(concurrent, 0.75) >= np.quantile(without, 0.25):
        return None
    gap = float(without.min() - concurrent.max())
    far_apart = gap > float(np.ptp(without) + np.ptp(concurrent))
    # How probable such low ranks of the concurrent ones are if both are equally fast: the one-sided
    # rank test of Mann and Whitney, by the normal distribution with the correction for continuity;
    # of 3 and 5 tests it gives 0.0184 where 0.0179 is exact. Equal rates share their ranks.
    ordered = np.sort(np.concatenate([without, concurrent]))
    first, last = (np.searchsorted(ordered, concurrent, side) for side in ("left", "right"))
    ranks = (first + last + 1) / 2
    count, others = len(concurrent), len(without)
    wins = float(ranks.sum()) - count * (count + 1) / 2
    deviation = math.sqrt(count * others * (count + others + 1) / 12)
    chance = 0.5 * math.erfc((count * others / 2 - wins - 0.5) / deviation / math.sqrt(2))
    if chance > RANK_CHANCE and not far_apart:
        return None
    medians = float(np.median(without)), float(np.median(concurrent))
    return Slowdown(medians[0], len(without), medians[1], len(concurrent))


@dataclass(frozen=True)
class Slope:
    """Rates go with variable ** ``exponent``, with a 95 % interval, by ``n`` tests.

    ``factor`` is what that makes of the rate from the least to the greatest value, with an
    interval of its own.
    """

    exponent: float
    low: float
    high: float
    span: float
    n: int

    @property
    def factor(self) -> float:
        return float(self.span**self.exponent)

    @property
    def interval(self) -> tuple[float, float]:
        return float(self.span**self.low), float(self.span**self.high)

    @property
    def trend(self) -> Trend:
        """Say what the rates do; the interval must bear it out."""
        if self.high < 0 and self.exponent < -FLAT_EXPONENT:
            return "falling"
        if self.low > PROPORTIONAL / 2 and self.exponent >= PROPORTIONAL:
            return "proportional"
        if self.low > 0 and self.exponent > FLAT_EXPONENT:
            return "rising"
        is_narrow = self.high - self.low < 4 * FLAT_EXPONENT
        return "flat" if abs(self.exponent) <= FLAT_EXPONENT and is_narrow else "unclear"


def fit_slope(values: Floats, rates: Floats) -> Slope | None:
    """Fit log rate to log value by least squares; both above 0, one of each for every test.

    None for fewer than FEWEST_VARIED tests, or for tests of one value alone.
    """
    x, y = np.log(values), np.log(rates)
    span = float(np.exp(np.ptp(x))) if x.size else 1.0
    if x.size < FEWEST_VARIED or span == 1:
        return None
    x = x - x.mean()
    squares = float(x @ x)
    exponent = float(x @ y) / squares
    rest = y - y.mean() - exponent * x
    dof = x.size - 2
    error = float(np.sqrt(rest @ rest / dof / squares))
    reach = student.one_quantile(0.975, dof) * error
    return Slope(exponent, exponent - reach, exponent + reach, span, x.size)


def least_as_good(values: Sequence[float], medians: Sequence[float]) -> float | None:
    """Return the least of ascending values whose median is as good as the best, if there is one."""
    rates = np.array(medians, dtype=np.float64)
    if np.isnan(rates).all():
        return None
    good = rates >= AS_GOOD * np.nanmax(rates)
    return values[int(np.argmax(good))]


@dataclass(frozen=True)
class PeerRates:
    """What an end does on its ``partners`` other links; NaN where there is nothing to tell it by.

    ``rate`` is the median of theirs in MB/s. ``factor`` compares it with its peers: the geometric
    mean, over the ``compared`` partners that others have results with, of its rate in parts
    of what the middle one of these others has. ``low`` to ``high`` is its 95 % interval.
    """

    rate: float
    partners: int
    factor: float
    low: float
    high: float
    compared: int


def medians_of(rates: Floats) -> Floats:
    """Return the median of the rates in each row, NaN for none; NaN and 0 are no rates.

    All rows at once: one by one they take numpy ten times as long.
    """
    counts, rows = np.count_nonzero(rates > 0, axis=1), np.arange(len(rates))
    ordered = np.sort(np.where(rates > 0, rates, np.inf), axis=1)
    middle = np.full(len(rates), np.nan)
    filled = counts > 0
    low, high = (ordered[rows[filled], at[filled]] for at in ((counts - 1) // 2, counts // 2))
    middle[filled] = (low + high) / 2
    return middle


def beside(rates: Floats, row: int, column: int | None) -> PeerRates:
    """Judge a row of rates by what the other rows have; its link in ``column`` counts nowhere.

    NaN stands for no rate; None for a link that is not in the matrix.
    """
    own = rates[row].copy()
    if column is not None:
        own[column] = np.nan
    partners = np.flatnonzero(own > 0)
    peers = medians_of(np.delete(rates, row, axis=0)[:, partners].T)
    logs = np.log((own[partners] / peers)[~np.isnan(peers)])
    median = float(np.median(own[partners])) if partners.size else math.nan
    mean = float(logs.mean()) if logs.size else math.nan
    reach = math.nan
    if logs.size >= FEWEST_PARTNERS:
        error = float(logs.std(ddof=1)) / math.sqrt(logs.size)
        reach = student.one_quantile(0.975, logs.size - 1) * error
    factor, low, high = np.exp([mean, mean - reach, mean + reach]).tolist()
    return PeerRates(median, len(partners), factor, low, high, logs.size)
