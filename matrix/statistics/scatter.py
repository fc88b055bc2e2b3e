"""How much the rates of tests scatter that were made alike. Pure numpy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Floats
from sonar.notation.units import MB

# By fewer tests beyond the first of each group, scatter and chance cannot be told apart.
FEWEST_FREE = 4
# The standard deviation of a normal distribution in mean distances from its middle.
NORMAL = 1.2533
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
    distances = np.concatenate([distances_of(group.rates) for group in several])
    by_loss = np.repeat([least_by_loss(group.bytes, stream_rate) for group in several], counts)
    counted = np.argsort(distances, kind="stable")[:-1]
    return RateScatter(
        NORMAL * float(distances[counted].mean()),
        float(by_loss[counted].mean()),
        sum(group.rates.size for group in several),
    )


def distances_of(rates: Floats) -> Floats:
    """Return how far all but the middle one of some rates are from it, as logarithms."""
    logs = np.log(rates)
    return np.sort(np.abs(logs - np.median(logs)))[1:]


def least_by_loss(file_bytes: float, stream_rate: float) -> float:
    """Return how much files scatter at least if lost packets hold their connections to a rate.

    The fewer packets are lost, the more: as many as may be are those of the shortest round trip
    by Mathis, rate = segment / round trip * sqrt(1.5 / loss), in MB/s.
    """
    in_flight = stream_rate * MB * NEAREST_SECONDS / SEGMENT_BYTES
    lost = min(1.5 / in_flight**2, MOST_LOST) * file_bytes / SEGMENT_BYTES
    return max(LEAST_OF_ROOT / math.sqrt(lost), ANYWAY)
