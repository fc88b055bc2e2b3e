"""Outages of links and of endpoints, from all their results in a window."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Integers
from matrix.statistics.levels import outages
from matrix.statistics.levels.before_since import LONGEST, Factors, LogRates, without
from matrix.statistics.levels.outages import EndOutage, LinkOutages, LinkTests, OutageRow
from matrix.statistics.samples.run import NEVER, Run
from matrix.store.read_plan import moment
from sonar.models import Outage
from sonar.results.changes import FoundOutage

# Of the source and, 16 bits lower, of the destination of a link as keys have it.
ENDS = 0xFFFF


def find(runs: Sequence[Run], links: NDArray[np.uint32], end: int) -> list[FoundOutage]:
    """Find the outages of links, given as keys have them, and those of their ends.

    Runs have offsets; ``end`` is that of the window, in Unix ms.
    """
    tests = LinkTests.of(runs, outages.out_of(runs, links))
    rates = tests.log_rates()
    single = outages.of_links(tests)
    every = list(_of_links(single, tests, rates, end))
    for kind, shift in ((Outage.Kind.SOURCE, 16), (Outage.Kind.DESTINATION, 0)):
        ends = (tests.links >> shift & ENDS).astype(np.int64)
        tested = np.bincount(links >> shift & ENDS)
        of_ends = outages.of_ends(single, tests, ends, tested)
        every += [_of_end(kind, outage, rates, end) for outage in of_ends]
    return every


def _of_links(
    single: LinkOutages, tests: LinkTests, rates: LogRates, end: int
) -> Iterator[FoundOutage]:
    before = rates.levels(single.owner, single.began - LONGEST, single.began)
    sides = without(single.began, single.ended, end)
    courses = rates.courses(single.owner, before, sides)
    first = tests.places(single.owner, single.began)
    failures = np.split(tests.started, np.stack([first, first + single.tests], axis=1).ravel())
    for row, course, failed in zip(single.rows(), courses, failures[1::2], strict=True):
        link = int(tests.links[row.owner])
        yield _as_found(Outage.Kind.LINK, (link >> 16, link & ENDS), row, course, failed)


def _of_end(kind: Outage.Kind, outage: EndOutage, rates: LogRates, end: int) -> FoundOutage:
    """Describe an outage of an endpoint, with the course of the links that failed in it."""
    row, links = outage.row, outage.links
    began = np.full_like(links, row.began)
    sides = without(np.array([row.began]), np.array([row.ended]), end)
    course = rates.course(links, rates.levels(links, began - LONGEST, began), sides)
    ends = (row.owner, None) if kind == Outage.Kind.SOURCE else (None, row.owner)
    return _as_found(kind, ends, row, course, outage.failures)


def _as_found(
    kind: Outage.Kind,
    ends: tuple[int | None, int | None],
    row: OutageRow,
    course: Factors,
    failures: Integers,
) -> FoundOutage:
    return FoundOutage(
        kind=kind.value,
        source_id=ends[0],
        destination_id=ends[1],
        last_ok=moment(row.last_ok) if row.last_ok else None,
        began=moment(row.began),
        newest=moment(row.newest),
        ended=moment(row.ended) if row.ended < NEVER else None,
        tests=row.tests,
        links=row.links,
        course=course,
        failures=failures.data,
    )
