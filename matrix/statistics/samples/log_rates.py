"""The natural logs of the rates of each link, added up. Pure numpy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.reduce import LEAST_RATE
from matrix.statistics.samples.run import FAILED_BIT, Run

# A sum of logs and how many there are, by the number of a link.
Sums = tuple[Floats, Integers]


def sums_of(runs: Sequence[Run], numbering: Numbering) -> Sums:
    """Add up the logs of the rates of successes, by link."""
    total = np.zeros(numbering.stride**2)
    count = np.zeros(numbering.stride**2, dtype=np.int64)
    for run in runs:
        keys = run.keys[run.keys & FAILED_BIT == 0]
        number = numbering.numbers(keys)
        logs = logs_of(keys)
        total += np.bincount(number, logs, minlength=len(total))
        count += np.bincount(number, minlength=len(total))
    return total, count


def logs_of(keys: NDArray[np.uint64]) -> Floats:
    """Return the natural log of the rate of each success."""
    rates = keys.astype(np.uint32).view(np.float32).astype(np.float64)
    return np.asarray(np.log(np.maximum(rates, LEAST_RATE)))


def mean_of(sums: Sums) -> Floats:
    """Return the mean of each link, NaN for none."""
    total, count = sums
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def moments_of(runs: Sequence[Run], numbering: Numbering) -> Floats:
    """Return by link the number of successes, their logs and the squares, added up."""
    moments = np.zeros((3, numbering.stride**2))
    for run in runs:
        keys = run.keys[run.keys & FAILED_BIT == 0]
        number, logs = numbering.numbers(keys), logs_of(keys)
        for power, weights in enumerate((None, logs, np.square(logs))):
            moments[power] += np.bincount(number, weights, minlength=moments.shape[1])
    return moments


def beside_mean(moments: Floats) -> Floats:
    """Return the squares beside the mean, added up."""
    count, total, squares = moments
    return np.asarray(np.maximum(squares - np.square(total) / np.maximum(count, 1), 0))
