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
    flat = p.ravel()
    tested = np.flatnonzero(~np.isnan(flat))
    ordered = np.sort(flat[tested])
    limits = rate * np.arange(1, len(tested) + 1) / max(len(tested), 1)
    below = np.flatnonzero(ordered <= limits)
    most = ordered[below[-1]] if below.size else -1.0
    # NaN is above everything that it is compared with.
    return np.asarray(p <= most)
