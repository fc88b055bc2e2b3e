"""Runs as matrix.store.runs reads them, made of single samples."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from matrix.statistics.samples.run import Run


class Sample(NamedTuple):
    """A result of a link; a rate (bytes per second) of None is a failed one."""

    source: int
    destination: int
    rate: float | None
    size: int = 1
    start: int = 1

    @property
    def key(self) -> int:
        bits = np.float32(-1 if self.rate is None else self.rate).view(np.uint32)
        return self.source << 48 | self.destination << 32 | int(bits)


def run_of(samples: Iterable[Sample]) -> Run:
    ordered = sorted(samples, key=lambda sample: sample.key)
    newest: dict[int, int] = {}
    for sample in ordered:
        link = sample.key >> 32
        newest[link] = max(sample.start, newest.get(link, 0))
    return Run(
        keys=np.array([sample.key for sample in ordered], dtype=np.uint64),
        links=np.array(list(newest), dtype=np.uint32),
        lasts=np.array(list(newest.values()), dtype=np.int64),
        sizes=np.array([sample.size for sample in ordered], dtype=np.int64),
    )
