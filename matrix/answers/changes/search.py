"""Looking back over the results of a size class, if any are new: changes of level and outages."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from itertools import combinations
from typing import NamedTuple

import numpy as np

from matrix.answers.changes import level_shifts, outages
from matrix.answers.changes.level_shifts import SearchedResults
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.estimates.moderation import discoveries
from matrix.statistics.levels.change_points import NORMAL
from matrix.store import data_version, registry, runs
from sonar.models import ChangeSearch, SizeClass
from sonar.notation.windows import Window, format_time, unix_ms
from sonar.results import changes
from sonar.results.changes import FoundChange, FoundOutage, Search, Stored

# Raised with anything that would find other changes in the same results.
METHOD = 3
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


class Occurrences(NamedTuple):
    """What was found in a window, and in how many sequences changes were looked for."""

    changes: list[FoundChange]
    outages: list[FoundOutage]
    sequences: int


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
    there = find(size_class.name, window)
    renews = renewed_from(window, last)
    done = Search(size_class.id, window.start, renews, window.end, there.sequences, days, METHOD)
    stored = changes.store(done, there.changes, there.outages, now)
    return Outcome(size_class.name, there.sequences, *stored)


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


def find(size: str, window: Window) -> Occurrences:
    """Return the changes and the outages in a window.

    What is common to the links of an endpoint is one change of the endpoint.
    """
    index = LinkIndex(registry.read_places(registry.read_versions()))
    window_runs = runs.read(size, window, (), offsets=True)
    tested = np.unique(
        np.concatenate([np.empty(0, np.uint32), *(run.links for run in window_runs)])
    )
    ids, end = index.numbering.ids, unix_ms(window.end)
    # Those of endpoints that are registered.
    links = tested[np.isin(tested >> 16, ids) & np.isin(tested & 0xFFFF, ids)]
    results = SearchedResults(window_runs, links, index.numbering, end)
    every, sequences = changes_in(results)
    return Occurrences(every, outages.find(window_runs, links, end), sequences)


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
    of_source: dict[int | None, list[FoundChange]] = defaultdict(list)
    of_destination: dict[int | None, list[FoundChange]] = defaultdict(list)
    of_grid: list[FoundChange] = []
    for change in common:
        if change.kind == "source":
            of_source[change.source_id].append(change)
        elif change.kind == "destination":
            of_destination[change.destination_id].append(change)
        else:
            of_grid.append(change)
    return [
        change
        for change in links
        if not is_explained(
            change,
            [*of_source[change.source_id], *of_destination[change.destination_id], *of_grid],
        )
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
