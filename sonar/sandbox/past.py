"""Weeks of made-up results before the first start of a sandbox, drawn from a seed.

A sandbox that was started just now has no usual rates, no events and nothing to be compared with.
So its links get a past at the rates that its nodes have, and stories: what happened on its grid,
each with an end. Nodes are as they are, today; a story says how its links were before, or for a
while. One that "goes on" is told by the other end: until then, links were better than they are
now. The results say of themselves that they are made up: see sonar.results.store.
"""

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sonar.sandbox.flow import Draws, closed_early
from sonar.sandbox.stories import PAST_HOURS, STORIES, Story
from sonar.sandbox.topology import LARGE_MB, MB, MEDIUM_MB, SCALE, SMALL_MB, Link, load_links

Floats = NDArray[np.float64]


def of_link(link: Link) -> list[Story]:
    return [story for story in STORIES if story.is_of(link.source, link.destination)]


def course(link: Link, hours_ago: Floats) -> tuple[Floats, Floats]:
    """Return how many times as fast as today a link was then, and which share of tests failed."""
    factors = np.ones(len(hours_ago))
    failing = np.full(len(hours_ago), link.failure_rate)
    for story in of_link(link):
        then = (story.ended <= hours_ago) & (hours_ago < story.began)
        factors[then] *= story.factor
        if story.failure_rate is not None:
            failing[then] = story.failure_rate
    return factors, failing


SEED = 2011
NO_OVERHEADS: Mapping[str, float] = {}
# The last hour has only what is measured.
LAST_HOURS = 1
OVERHEAD_SECONDS = 0.005
"""Minimum time of a test in addition to that of its link, where others run."""

SPREAD = 0.3
"""More than the links have: what else a machine does shows in the rates of its nodes, and what is
usual must not be so narrow that a busy quarter of an hour is an event of each link."""


@dataclass(frozen=True)
class PastTests:
    """A size class: MB at the scale of the grid, and hours from a test to the next."""

    size_class: str
    size_mb: float
    every_hours: float

    @property
    def bytes(self) -> int:
        return round(self.size_mb * MB / SCALE)

    def seconds_of(self, link: Link) -> float:
        """Return how many seconds a file takes on a link, at the scale of the grid."""
        return self.size_mb / SCALE / link.rate_mb_s(self.size_mb)


CLASSES = (
    PastTests("small", SMALL_MB, 8),
    PastTests("medium", MEDIUM_MB, 8),
    PastTests("large", LARGE_MB, 4),
)


@dataclass(frozen=True)
class LinkPast:
    """The results of one link and size class, oldest first; arrays of one length.

    ``errors`` are why and where those failed that ``failed``, in their order.
    """

    link: Link
    tests: PastTests
    ids: NDArray[np.uint64]
    """Both halves of a UUID, in two columns."""
    hours_ago: Floats
    seconds: Floats
    failed: NDArray[np.bool_]
    errors: list[tuple[str, str]]

    def __len__(self) -> int:
        return len(self.hours_ago)


def results(seed: int = SEED, overheads: Mapping[str, float] = NO_OVERHEADS) -> Iterator[LinkPast]:
    """Draw the results of all links and size classes, each link the same for a seed.

    ``overheads`` say by size class how many seconds a test takes on this machine beside those of
    its link; OVERHEAD_SECONDS where they say nothing.
    """
    for link, tests in product(load_links(), CLASSES):
        name = f"{link.source} {link.destination} {tests.size_class}"
        draws = np.random.default_rng([seed, zlib.crc32(name.encode())])
        yield drawn(draws, link, tests, overheads.get(tests.size_class, OVERHEAD_SECONDS))


def drawn(draws: Generator, link: Link, tests: PastTests, overhead: float) -> LinkPast:
    """Draw the results of a link as its nodes draw them, and as its stories say."""
    # When tests began, in hours before the end; the last of them was a while ago.
    every = tests.every_hours
    first = PAST_HOURS - draws.random() * every
    steps = draws.uniform(0.9, 1.1, math.ceil(PAST_HOURS / every / 0.9)) * every
    hours_ago = first - np.concatenate([[0], np.cumsum(steps)])
    hours_ago = hours_ago[hours_ago > LAST_HOURS]
    factors, failing = course(link, hours_ago)
    sigma = math.sqrt(math.log1p(SPREAD**2))
    rates = factors * draws.lognormal(0, sigma, len(hours_ago))
    seconds = tests.seconds_of(link) / rates
    failed = draws.random(len(hours_ago)) < failing
    shares, errors = draws.uniform(0.1, 0.9, len(hours_ago)), list[tuple[str, str]]()
    for share in shares[failed]:
        errors.append(error(draws, int(share * tests.bytes)))
    seconds[failed] *= shares[failed]
    seconds += overhead
    high, low = draws.integers(1 << 64, size=(len(hours_ago), 2), dtype=np.uint64).T
    # UUIDs of version 4.
    high = high & ~np.uint64(0xF << 12) | np.uint64(4 << 12)
    low = low & ~np.uint64(0b11 << 62) | np.uint64(0b10 << 62)
    ids = np.stack((high, low), axis=1)
    return LinkPast(link, tests, ids, hours_ago, seconds.round(4), failed, errors)


def error(draws: Generator, left_bytes: int) -> tuple[str, str]:
    """Draw why and where a test failed, as the nodes say it."""
    if draws.random() < 0.5:
        return closed_early(left_bytes), "transfer"
    return Draws.REFUSALS[draws.integers(len(Draws.REFUSALS))], "source"
