"""The results of a piece of a window, in the order of link and rate."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Stretches

DAY_MS = 86_400_000
# The sign of a rate, set for a failed sample, as a key has it; above it stands the link.
FAILED_BIT = np.uint64(1 << 31)
# What is left of a key without its rate: the link, and whether the sample failed.
OUTCOME = np.uint64(31)
# Above the rate of any sample, as a key has it.
ANY_RATE = np.uint64(2**32 - 1)
# A link with a failed result in a run: its place among the links of the run, and when its newest
# ok result (0 for none) and its newest failed one started, in Unix ms.
FAILURE = np.dtype([("at", "<u4"), ("ok", "<i8"), ("failed", "<i8")])


# Returns what a function makes of each link of a run, unless it is kept by its name.
OfLinks = Callable[[NDArray[np.uint32]], NDArray[Any]]
Keep = Callable[[str, OfLinks], NDArray[Any]]


class Newest(NamedTuple):
    """Distinct links, ascending, and when some result of each started, in Unix ms."""

    links: NDArray[np.uint32]
    lasts: NDArray[np.int64]


NO_LINKS = Newest(np.empty(0, np.uint32), np.empty(0, np.int64))


@dataclass(frozen=True)
class Run:
    """A piece of a window, its results in the order of their keys. Arrays are read-only.

    ``keys`` are link << 32 | bits of the rate as float32 in bytes per second, with a link of
    source id << 16 | destination id; a failed result has the rate -1 and so comes last in
    its link. ``links`` are the distinct links of the keys, ascending, and ``lasts`` when the
    newest result of each started, in Unix ms. If they were asked for, ``sizes`` has the bytes
    of each key's result, ``profiles`` the id of its profile, ``distinct_profiles`` those
    that occur, ascending, ``failures`` the links with a failed result (FAILURE), and ``offsets``
    when the result of each key started, in ms from ``start`` (Unix ms). ``keep`` is there where
    what is made of each of its links serves other questions, too.
    """

    keys: NDArray[np.uint64]
    links: NDArray[np.uint32]
    lasts: NDArray[np.int64]
    sizes: NDArray[np.int64] | None = None
    profiles: NDArray[np.uint16] | None = None
    distinct_profiles: NDArray[np.uint16] | None = None
    failures: NDArray[np.void] | None = None
    offsets: NDArray[np.uint32] | None = None
    start: int = 0
    keep: Keep | None = None

    def started(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return when the results of these keys started, in Unix ms."""
        if self.offsets is None:
            raise ValueError(
                "results that were read without offsets do not show when tests started"
            )
        return self.offsets.take(rows) + np.int64(self.start)

    def newest_ok(self) -> Newest:
        """Return when the newest ok result of each link started that has one."""
        failures = self._failures()
        if not failures.size:
            return Newest(self.links, self.lasts)
        lasts = self.lasts.copy()
        lasts[failures["at"]] = failures["ok"]
        ever = lasts > 0
        return Newest(self.links[ever], lasts[ever])

    def newest_failed(self) -> Newest:
        """Return when the newest failed result of each link started that has one."""
        failures = self._failures()
        return Newest(self.links[failures["at"]], failures["failed"])

    def _failures(self) -> NDArray[np.void]:
        if self.failures is None:
            raise ValueError(
                "results that were read without failures do not show when tests succeeded"
            )
        return self.failures


def failures_of(
    keys: NDArray[np.uint64], offsets: NDArray[np.uint32], links: NDArray[np.uint32], start: int
) -> NDArray[np.void]:
    """Return the links with a failed result (FAILURE), of keys in their order.

    The ok results of a link stand before its failed ones, so that these are neighbours.
    ``links`` are those of the keys; ``offsets`` are in ms from ``start`` (Unix ms).
    """
    if not keys.size:
        return np.empty(0, FAILURE)
    outcomes = keys >> OUTCOME
    first = np.flatnonzero(np.concatenate([[True], outcomes[1:] != outcomes[:-1]]))
    lasts = np.maximum.reduceat(offsets, first).astype(np.int64) + start
    outcomes = outcomes[first]
    failed = np.flatnonzero(outcomes & np.uint64(1))
    # Of the first of all it is the last of all, which is of no smaller link.
    mixed = outcomes[failed - 1] == outcomes[failed] - np.uint64(1)
    failures = np.empty(len(failed), FAILURE)
    failures["at"] = links.searchsorted((outcomes[failed] >> np.uint64(1)).astype(np.uint32))
    failures["ok"] = np.where(mixed, lasts[failed - 1], 0)
    failures["failed"] = lasts[failed]
    return failures


def rows_of(run: Run, links: NDArray[np.uint32]) -> Stretches:
    """Return where the results of links stand among the keys."""
    low = links.astype(np.uint64) << np.uint64(32)
    first = run.keys.searchsorted(low)
    return Stretches(first, run.keys.searchsorted(low | ANY_RATE) - first)


def of_links(run: Run, links: NDArray[np.uint32]) -> Run:
    """Return a run with the results of these links alone, and only its keys."""
    if len(links) > len(run.links) // 2:
        return run
    keys = run.keys[rows_of(run, np.sort(links)).places()]
    return Run(keys, *NO_LINKS, start=run.start)


def reversed_run(run: Run) -> Run:
    """Return a run as if each transfer had gone the opposite way; it has nothing but its keys."""
    # The source is in the highest 16 bits, the destination in the next.
    ends = run.keys.view("<u2").reshape(-1, 4)
    keys = run.keys.copy()
    keys.view("<u2").reshape(-1, 4)[:, 2:] = ends[:, :1:-1]
    keys.sort()
    return Run(keys, *NO_LINKS)


def by_day(runs: Iterable[Run]) -> list[tuple[int, list[Run]]]:
    """Return by UTC day (since 1970) runs that are in the order of time, each within a day."""
    return [(day, list(of_day)) for day, of_day in groupby(runs, lambda run: run.start // DAY_MS)]
