"""When links failed, and when most links of an endpoint did at once. Pure numpy.

A link is out while at least as many of its tests failed one after the other as make it failing
(standing.py): from the first of them until the next success. Of a success and a failure that
started in the same millisecond, only the success counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import ArrayFields, Flags, Integers, Stretches, each
from matrix.statistics.levels.before_since import LogRates
from matrix.statistics.samples.newest import NEWEST
from matrix.statistics.samples.run import FAILED_BIT, NEVER, SPAN, Run, samples_of

# An endpoint is out with at least so many of its links, and at least half of them.
FEWEST_LINKS = 3
# So many links are looked through in one go, by one thread.
AT_ONCE = 2000
_LINK = np.uint64(32)


@dataclass(frozen=True)
class LinkTests:
    """All tests of some links, in the order of link and time; ``links`` as keys have them.

    ``link`` is the place of each test's link, ``started`` is in Unix ms, ``rates`` in bytes/s, -1
    for a failure.
    """

    links: NDArray[np.uint32]
    link: Integers
    started: Integers
    rates: NDArray[np.float32]

    @classmethod
    def of(cls, runs: Sequence[Run], links: NDArray[np.uint32]) -> Self:
        """Take tests out of runs with offsets, but failures that started with a success."""
        tests = cls(links, *samples_of(runs, links))
        failed = np.flatnonzero(tests.failed)
        ok, keys = tests.keys[~tests.failed], tests.keys[failed]
        beside = ok.searchsorted(keys) < ok.searchsorted(keys, side="right")
        if not beside.any():
            return tests
        counts = np.delete(np.arange(len(tests.link)), failed[beside])
        return cls(links, tests.link[counts], tests.started[counts], tests.rates[counts])

    @cached_property
    def keys(self) -> Integers:
        return self.link * SPAN + self.started

    @property
    def failed(self) -> Flags:
        return np.asarray(self.rates < 0)

    def log_rates(self) -> LogRates:
        """Return the rates of its successes."""
        ok = ~self.failed
        return LogRates.of(self.link[ok], self.started[ok], self.rates[ok])

    def places(self, link: Integers, moments: Integers) -> Integers:
        """Return the place of the first test of each link that started at a moment or later."""
        return np.asarray(self.keys.searchsorted(link * SPAN + moments))


class OutageRow(NamedTuple):
    """An outage of a link, given by its place, or of an endpoint, given by its id.

    ``last_ok`` (0 for none), ``began``, ``newest`` (of the failed tests) and ``ended`` (NEVER for
    one that lasts) are in Unix ms; ``tests`` failed, of so many links at once.
    """

    owner: int
    last_ok: int
    began: int
    newest: int
    ended: int
    tests: int
    links: int = 1


@dataclass(frozen=True)
class LinkOutages(ArrayFields):
    """Outages of links, of one after another: arrays of one length, of what rows have."""

    owner: Integers
    last_ok: Integers
    began: Integers
    newest: Integers
    ended: Integers
    tests: Integers

    def rows(self) -> Iterator[OutageRow]:
        columns = (values.tolist() for values in vars(self).values())
        return (OutageRow(*values) for values in zip(*columns, strict=True))


def out_of(runs: Sequence[Run], links: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return those of some links that had an outage, in runs with offsets; ascending."""
    failed = [run.keys[np.flatnonzero(run.keys & FAILED_BIT)] >> _LINK for run in runs]
    every = np.concatenate([np.empty(0, np.uint64), *failed]).astype(np.uint32)
    link, count = np.unique(every, return_counts=True)
    often = link[(count >= NEWEST) & np.isin(link, links)]

    def with_outage(chunk: NDArray[np.uint32]) -> NDArray[np.uint32]:
        return chunk[np.unique(of_links(LinkTests.of(runs, chunk)).owner)]

    chunks = [often[first : first + AT_ONCE] for first in range(0, len(often), AT_ONCE)]
    return np.concatenate([often[:0], *each(with_outage, chunks)])


def of_links(tests: LinkTests) -> LinkOutages:
    """Find each row of at least KEPT failures of a link without a success between."""
    link, started, failed = tests.link, tests.started, tests.failed
    if not link.size:
        return LinkOutages(*np.empty((6, 0), np.int64))
    turns = (np.diff(link) != 0) | (np.diff(failed) != 0)
    first = np.flatnonzero(np.concatenate([[True], turns]))
    count = np.diff(first, append=len(link))
    is_outage = failed[first] & (count >= NEWEST)
    first, count = first[is_outage], count[is_outage]
    before, behind = first - 1, first + count
    # Beside the first and the last test of all there is none of the same link.
    owners = np.concatenate([link, [-1]])
    moments = np.concatenate([started, [0]])
    owner = link[first]
    return LinkOutages(
        owner=owner,
        last_ok=np.where(owners[before] == owner, moments[before], 0),
        began=started[first],
        newest=started[behind - 1],
        ended=np.where(owners[behind] == owner, moments[behind], NEVER),
        tests=count,
    )


class EndOutage(NamedTuple):
    """An outage of an endpoint: places of the links that failed, and when their tests did."""

    row: OutageRow
    links: Integers
    failures: Integers


class OutStretch(NamedTuple):
    """When enough links of an endpoint were out, until when, and when its outage before ended."""

    full: int
    ended: int
    before: int


def of_ends(
    of_links: LinkOutages, tests: LinkTests, ends: Integers, tested: Integers
) -> Iterator[EndOutage]:
    """Find when at least half of the links of an endpoint, and FEWEST_LINKS, were out at once.

    ``ends`` has for each link of the tests the endpoint at one end, and ``tested`` by the id of an
    endpoint how many links with results it has there.
    """
    end = ends[of_links.owner]
    for endpoint in np.unique(end).tolist():
        own = of_links.taken(end == endpoint)
        need = max(FEWEST_LINKS, -(-int(tested[endpoint]) // 2))
        if len(np.unique(own.owner)) >= need:
            for bounds, most in _stretches(own, need):
                yield _described(endpoint, own, tests, bounds, most)


def _stretches(own: LinkOutages, need: int) -> Iterator[tuple[OutStretch, int]]:
    """Sweep over begins and ends for when so many links were out, with the most at once."""
    times = np.unique(np.concatenate([own.began, own.ended[own.ended < NEVER]]))
    begun = np.sort(own.began).searchsorted(times, side="right")
    out = begun - np.sort(own.ended).searchsorted(times, side="right")
    turns = np.flatnonzero(np.diff(out >= need, prepend=False, append=False))
    times = np.append(times, NEVER)
    before = 0
    for first, past in turns.reshape(-1, 2).tolist():
        yield OutStretch(int(times[first]), int(times[past]), before), int(out[first:past].max())
        before = int(times[past])


def _described(
    endpoint: int, own: LinkOutages, tests: LinkTests, bounds: OutStretch, most: int
) -> EndOutage:
    """Say of an outage when it began, what was before it, and which tests failed in it.

    It began with the first of its links that failed after the last success of any of them: a link
    that had been dead for weeks does not date it.
    """
    at_once = own.taken((own.began <= bounds.full) & (bounds.full < own.ended))
    last_ok = max(int(at_once.last_ok.max()), bounds.before)
    began = int(at_once.began[at_once.began > last_ok].min())
    during = own.taken((own.began < bounds.ended) & (began < own.ended))
    first = tests.places(during.owner, np.maximum(during.began, began))
    past = tests.places(during.owner, np.minimum(during.ended, bounds.ended))
    failures = np.sort(tests.started[Stretches(first, past - first).places()])
    newest, count = int(failures[-1]), len(failures)
    row = OutageRow(endpoint, last_ok, began, newest, bounds.ended, count, most)
    return EndOutage(row, np.unique(during.owner), failures)
