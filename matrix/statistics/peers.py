"""An end of a link beside its peers, as its other links show it. Pure numpy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrix.statistics import student
from matrix.statistics.arrays import Floats

# The scatter of fewer partners says nothing about the error of their mean.
FEWEST_PARTNERS = 3


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


def beside(rates: Floats, row: int, column: int | None) -> PeerRates:
    """Judge a row of rates by what the other rows have; its link in ``column`` counts nowhere.

    NaN stands for no rate; None for a link that is not in the matrix.
    """
    own = rates[row].copy()
    if column is not None:
        own[column] = np.nan
    partners = np.flatnonzero(own > 0)
    others = np.delete(rates, row, axis=0)[:, partners]
    of_partners = [values[values > 0] for values in others.T]
    logs = np.array(
        [
            math.log(rate / float(np.median(peers)))
            for rate, peers in zip(own[partners].tolist(), of_partners, strict=True)
            if peers.size
        ]
    )
    median = float(np.median(own[partners])) if partners.size else math.nan
    mean = float(logs.mean()) if logs.size else math.nan
    reach = math.nan
    if logs.size >= FEWEST_PARTNERS:
        error = float(logs.std(ddof=1)) / math.sqrt(logs.size)
        reach = float(student.quantile(0.975, logs.size - 1)) * error
    factor, low, high = np.exp([mean, mean - reach, mean + reach]).tolist()
    return PeerRates(median, len(partners), factor, low, high, logs.size)
