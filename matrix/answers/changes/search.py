"""Looking back over the results of a size class, if any are new: changes of level and outages."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from matrix.answers.changes import level_shifts
from matrix.answers.changes.level_shifts import SearchedResults
from matrix.statistics.arrays import Integers
from matrix.statistics.estimates.moderation import discoveries
from matrix.statistics.levels import outages
from matrix.statistics.levels.before_since import LONGEST, Factors, LogRates, without
from matrix.statistics.levels.change_points import NORMAL
from matrix.statistics.levels.outages import EndOutage, LinkOutages, LinkTests, OutageRow
from matrix.statistics.samples.run import NEVER, Run
from matrix.store import data_version, registry, runs
from matrix.store.read_plan import moment
from sonar.models import ChangeSearch, Outage, SizeClass
from sonar.notation.windows import Window, format_time, unix_ms
from sonar.results import changes
from sonar.results.changes import FoundChange, FoundOutage, Search, Stored

# Raised with anything that would find other changes in the same results.
METHOD = 4
# So far a search looks back; what lies in the first of these days stands as it was found before, as
# little is left of the level before it.
DAYS = timedelta(days=90)
SETTLED = timedelta(days=30)
DAY = timedelta(days=1)
# Smaller ones are real, maybe, but nothing that anybody would look into.
SMALLEST = math.log(1.1)
# A link that is tested now and then shows what befell its endpoint at its own next test.
APART = timedelta(days=1)
# What is left of a change of a link without that of its endpoints is no change of its own, if it
# is within this factor or within so many standard errors.
ALIKE = math.log(1.5)
ERRORS = 2.0
# Of the source and, 16 bits lower, of the destination of a link as keys have it.
ENDS = 0xFFFF
# From both ends of an interval of 95 % to a standard error.
INTERVAL = 2 * NORMAL


@dataclass(frozen=True)
class Outcome:
    """What a search of a size class did: what became of changes, and of outages.

    Both are None where no result was new.
    """

    size: str
    sequences: int = 0
    stored: Stored | None = None
    outages: Stored | None = None


def search_all(now: datetime, *, again: bool = False) -> list[Outcome]:
    """Search every size class that has new results; all of them ``again`` if that is wanted."""
    return [search(size_class, now, again=again) for size_class in SizeClass.objects.all()]


def search(size_class: SizeClass, now: datetime, *, again: bool = False) -> Outcome:
    """Search one size class and store what is found; nothing is done without new results.

    Late and changed results are new ones, too, if they started in the days of the search.
    """
    last = changes.last_search(size_class.id)
    window = window_at(now)
    days = versions(size_class.name, window)
    if last and last.method == METHOD and last.days == days and not again:
        changes.note(last, now)
        return Outcome(size_class.name, last.sequences)
    shifts, failures, sequences = find(size_class.name, window)
    renews = renewed_from(window, last)
    done = Search(size_class.id, window.start, renews, window.end, sequences, days, METHOD)
    return Outcome(size_class.name, sequences, *changes.store(done, shifts, failures, now))


def window_at(now: datetime) -> Window:
    """Return the whole days before today, and today up to the next minute."""
    end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return Window(datetime.combine(now, time(), now.tzinfo) - DAYS, end)


def renewed_from(window: Window, last: ChangeSearch | None) -> datetime:
    """Return from when on what was found before is replaced: all of it by another method."""
    if last is None or last.method != METHOD:
        return window.start
    return max(window.start, min(window.start + SETTLED, last.end - SETTLED))


def versions(size: str, window: Window) -> dict[str, str]:
    """Return by day what changes with its results. One SQL statement."""
    days = []
    start = window.start
    while start < window.end:
        days.append(Window(start, min(start + DAY, window.end)))
        start += DAY
    results = data_version.read_results(size, days)
    return {format_time(day.start): version for day, version in zip(days, results, strict=True)}


def find(size: str, window: Window) -> tuple[list[FoundChange], list[FoundOutage], int]:
    """Return the changes and the outages in a window, and how many sequences were searched.

    What is common to the links of an endpoint is one change of the endpoint.
    """
    index = registry.read_links(registry.read_versions())
    window_runs = runs.read(size, window, (), offsets=True)
    tested = np.unique(
        np.concatenate([np.empty(0, np.uint32), *(run.links for run in window_runs)])
    )
    ids, end = index.numbering.ids, unix_ms(window.end)
    # Those of endpoints that are registered.
    links = tested[np.isin(tested >> 16, ids) & np.isin(tested & 0xFFFF, ids)]
    results = SearchedResults(window_runs, links, index.numbering, end)
    every, sequences = changes_in(results)
    return every, outages_in(window_runs, links, end), sequences


def changes_in(results: SearchedResults) -> tuple[list[FoundChange], int]:
    """Return the changes of level, and in how many sequences they were looked for."""
    single = level_shifts.link_changes(results.runs, results.links, results.end)
    large = [change for change in single.changes if is_large(change)]
    common = level_shifts.endpoint_changes(results)
    # What befell a link by itself says nothing of its ends, and would show in those that have few.
    if own := unexplained(large, common.changes):
        common = level_shifts.endpoint_changes(results.without([change.link for change in own]))
    of_many = [change for change in common.changes if is_large(change)]
    sequences = common.searched + single.searched
    every = [*of_many, *unexplained(large, of_many)]
    # Those beyond chance among all sequences are sure: one in twenty of them may be none. Sequences
    # without a change have a chance that is too large to matter.
    chances = np.ones(max(sequences, len(every)))
    chances[: len(every)] = [change.chance for change in every]
    sure = discoveries(chances).tolist()
    return [replace(change, sure=sure[place]) for place, change in enumerate(every)], sequences


def is_large(change: FoundChange) -> bool:
    return abs(math.log(change.factor)) >= SMALLEST


def unexplained(links: Iterable[FoundChange], common: Iterable[FoundChange]) -> list[FoundChange]:
    """Return the changes of links that those of endpoints and grid do not explain."""
    # Of a source, of a destination, and of the grid: what a change is of no single one is None.
    by_ends: dict[tuple[int | None, int | None], list[FoundChange]] = defaultdict(list)
    for change in common:
        by_ends[change.source_id, change.destination_id].append(change)
    return [
        change
        for change in links
        for ends in [((change.source_id, None), (None, change.destination_id), (None, None))]
        if not is_explained(change, [other for each in ends for other in by_ends[each]])
    ]


def is_explained(change: FoundChange, common: Sequence[FoundChange]) -> bool:
    """Say whether one or several of these changes, all at about its time, are as large as it."""
    near = [
        other
        for other in common
        if other.earliest - APART <= change.latest and change.earliest <= other.latest + APART
    ]
    shift = math.log(change.factor)
    error = (math.log(change.high) - math.log(change.low)) / INTERVAL
    most = max(ALIKE, ERRORS * error)
    for count in range(1, min(len(near), 3) + 1):
        for together in combinations(near, count):
            total = sum(math.log(other.factor) for other in together)
            if total * shift > 0 and abs(shift - total) <= most:
                return True
    return False


def outages_in(runs: Sequence[Run], links: NDArray[np.uint32], end: int) -> list[FoundOutage]:
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
