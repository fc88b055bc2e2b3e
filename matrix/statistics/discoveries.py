"""Which of many tests say more than chance would among so many. Pure numpy."""

from __future__ import annotations

import numpy as np

from matrix.statistics.arrays import Flags, Floats

# Of what is called changed, at most this share is chance, in the mean over many lists.
FALSE_DISCOVERIES = 0.05


def changed(p: Floats, rate: float = FALSE_DISCOVERIES) -> Flags:
    """Say which p are discoveries at a false discovery rate, by Benjamini and Hochberg.

    Of the shape of ``p``; NaN is no test, and does not count among them.
    """
    # NaN is above everything that it is compared with.
    return np.asarray(p <= largest(p, rate))


def largest(p: Floats, rate: float = FALSE_DISCOVERIES) -> float:
    """Return the largest p of a discovery, -1 if there is none."""
    flat = p.ravel()
    # What is above the rate is none, and need not be sorted.
    ordered, tests = np.sort(flat[flat <= rate]), int(np.count_nonzero(~np.isnan(flat)))
    limits = rate * np.arange(1, len(ordered) + 1) / max(tests, 1)
    below = np.flatnonzero(ordered <= limits)
    return float(ordered[below[-1]]) if below.size else -1.0
