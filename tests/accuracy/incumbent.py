"""The alarm of the grid's own dashboards on the same year: a z-score of means of four days.

Of each pair the mean of six buckets of four days, the last shorter; alarmed where z <= -2 and the
change is at most -50 %; a site is alarmed if at least five of its pairs are, whatever direction
(sand-ci/AlarmsAndAlerts, ps-throughput.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from matrix.statistics.arrays import Flags, Floats

BUCKET_DAYS, BUCKETS, LAST_DAYS = 4, 6, 1.5
Z, CHANGE, FEWEST_PAIRS = -2.0, -0.5, 5


def alarmed_sites(rates: Floats, tests_a_day: int, sites: Sequence[str]) -> set[str]:
    """Return the sites that are alarmed after these rounds of rates, shape (rounds, n, n).

    NaN for no success; the newest round is the last.
    """
    pairs = alarmed_pairs(rates, tests_a_day)
    number, names = np.unique(sites, return_inverse=True)[1], np.unique(sites)
    counts = np.bincount(number, pairs.sum(axis=0) + pairs.sum(axis=1))
    return {str(name) for name in names[counts >= FEWEST_PAIRS]}


def alarmed_pairs(rates: Floats, tests_a_day: int) -> Flags:
    last = round(LAST_DAYS * tests_a_day)
    edges = [len(rates) - last - BUCKET_DAYS * tests_a_day * back for back in range(BUCKETS)]
    bounds = [max(edge, 0) for edge in reversed(edges)] + [len(rates)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of pairs without a success
        means = np.stack([np.nanmean(rates[low:high], axis=0) for low, high in pairwise(bounds)])
        mean, deviation = np.nanmean(means, axis=0), np.nanstd(means, axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (means[-1] - mean) / deviation
        change = means[-1] / mean - 1
    return np.asarray((z <= Z) & (change <= CHANGE))
