"""What a test costs beside its bytes, from tests of several sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonar.units import MB

# The medians of fewer tests of a size say little.
FEWEST = 5
# And so do times of two sizes that are nearly the same.
LEAST_RATIO = 1.01


@dataclass(frozen=True)
class Overhead:
    """Seconds that pass whatever the size, MB/s of the bytes alone, and MB of the smallest."""

    seconds: float
    bandwidth: float
    smallest: float

    @property
    def share(self) -> float:
        """Return the share of the time of the smallest file that is no transfer of bytes."""
        return self.seconds / (self.seconds + self.smallest / self.bandwidth)


def overhead_of(
    classes: Sequence[tuple[NDArray[np.int64], NDArray[np.float32]]],
) -> Overhead | None:
    """Draw a line through the median times of the smallest and the largest size.

    ``classes`` are the bytes and rates (bytes/s) of successful tests. None for fewer than two
    sizes with FEWEST tests each, and where the line says nothing: if larger files take no longer,
    or small ones are not slowed by anything.
    """
    medians = sorted(
        (float(np.median(sizes)) / MB, float(np.median(sizes / rates)))
        for sizes, rates in classes
        if len(rates) >= FEWEST
    )
    if len(medians) < 2 or medians[0][0] == medians[-1][0]:
        return None
    (smallest, quick), (largest, slow) = medians[0], medians[-1]
    if slow < LEAST_RATIO * quick:
        return None
    bandwidth = (largest - smallest) / (slow - quick)
    seconds = quick - smallest / bandwidth
    return Overhead(seconds, bandwidth, smallest) if seconds > 0 else None
