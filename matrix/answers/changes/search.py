"""Looking back over the results of a size class, if any are new: changes of level and outages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matrix.answers.changes import of_endpoints, of_links, outages
from matrix.answers.changes.explained import unexplained
from matrix.answers.changes.of_endpoints import SearchedResults
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.estimates.moderation import discoveries
from matrix.statistics.samples.run import Run
from matrix.store import data_version, registry, runs
from sonar.models import ChangeSearch, SizeClass
from sonar.notation.windows import Window, format_time
from sonar.results import changes
from sonar.results.changes import FoundChange
from sonar.results.outages import FoundOutage
from sonar.results.searches import Search, Stored
from sonar.results.segments import unix_ms

# Raised with anything that would find other changes in the same results.
METHOD = 3
# So far a search looks back; what lies in the first of these days stands as it was found before, as
# little is left of the level before it.
DAYS = timedelta(days=90)
SETTLED = timedelta(days=30)
DAY = timedelta(days=1)
# Smaller ones are real, maybe, but nothing that anybody would look into.
SMALLEST = math.log(1.1)


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
    """Return from when on what was found before is replaced: all of it by another method.

    After a long rest, what was not searched yet is, too.
    """
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
    links, end = links_in(window_runs, index.numbering.ids), unix_ms(window.end)
    results = SearchedResults(window_runs, links, index.numbering, end)
    every, sequences = changes_in(results)
    return Occurrences(every, outages.find(window_runs, links, end), sequences)


def changes_in(results: SearchedResults) -> tuple[list[FoundChange], int]:
    """Return the changes of level, and in how many sequences they were looked for."""
    single = of_links.find(results.runs, results.links, results.end)
    large = [change for change in single.changes if is_large(change)]
    common = of_endpoints.find(results)
    # What befell a link by itself says nothing of its ends, and would show in those that have few.
    if own := unexplained(large, common.changes):
        common = of_endpoints.find(results.without([change.link for change in own]))
    of_many = [change for change in common.changes if is_large(change)]
    sequences = common.searched + single.searched
    return sure_of([*of_many, *unexplained(large, of_many)], sequences), sequences


def links_in(results: Sequence[Run], ids: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the links that have results, of endpoints that are registered."""
    links = np.unique(np.concatenate([np.empty(0, np.uint32), *(run.links for run in results)]))
    return links[np.isin(links >> 16, ids) & np.isin(links & 0xFFFF, ids)]


def is_large(change: FoundChange) -> bool:
    return abs(math.log(change.factor)) >= SMALLEST


def sure_of(every: list[FoundChange], sequences: int) -> list[FoundChange]:
    """Mark those that are beyond chance among all sequences: of them, one in twenty may be none."""
    # Those without a change have a chance that is too large to matter.
    chances = np.ones(max(sequences, len(every)))
    chances[: len(every)] = [change.chance for change in every]
    sure = discoveries(chances).tolist()
    return [replace(change, sure=sure[place]) for place, change in enumerate(every)]
