"""What contestants of a matrix contest answer: the same columns for every link, to compare."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Answer:
    """One row for each link with results, ordered by link (source id << 16 | destination id).

    Rates are in bytes per second, NaN where nothing arrived; ``last`` is in Unix ms.
    """

    link: NDArray[np.int64]
    count: NDArray[np.int64]
    ok: NDArray[np.int64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    median: NDArray[np.float64]
    p95: NDArray[np.float64]
    last: NDArray[np.int64]

    def samples(self) -> int:
        return int(self.count.sum())


EXACT = ("link", "count", "ok", "last")
# Moments are float64 on both sides; quantiles are of rates stored as float32.
CLOSE = {"mean": 1e-6, "std": 1e-6, "median": 1e-6, "p95": 1e-6}


class DisagreementError(AssertionError):
    """Two contestants do not answer the same: their times say nothing."""


def agree(name: str, one: Answer, other: Answer) -> None:
    """Raise DisagreementError unless another's answer is the same."""
    for column in EXACT:
        if not np.array_equal(getattr(one, column), getattr(other, column)):
            raise DisagreementError(f"{name}: {column} differs")
    scale = np.nan_to_num(one.mean, nan=1.0)
    for column, tolerance in CLOSE.items():
        ours, theirs = getattr(one, column), getattr(other, column)
        # A std near zero is compared with the rates that it comes from.
        close = np.abs(ours - theirs) <= tolerance * np.maximum(np.abs(ours), scale)
        if not np.all(close | (np.isnan(ours) & np.isnan(theirs))):
            raise DisagreementError(f"{name}: {column} differs by more than {tolerance}")
