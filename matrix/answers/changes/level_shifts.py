"""Changes of level of endpoints, as a source or as a destination, and of the whole grid.

They show in the effects by day (statistics.levels.daily_effects). Their moment is then found in the
single results of all their links around that day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Floats, Integers, each
from matrix.statistics.levels.before_since import Factors, LogRates, around
from matrix.statistics.levels.change_points import (
    SHORTEST_LEVEL,
    ChangePoints,
    change_points,
    dated,
)
from matrix.statistics.levels.daily_effects import DailyEffects
from matrix.statistics.samples.newest import LinkSamples
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.run import DAY_MS, Run
from matrix.store.read_plan import moment
from sonar.models import Change
from sonar.results.changes import FoundChange

# So many links are looked at in one go, by one thread: what is made of them takes some 50 MB.
AT_ONCE = 2000
# A link with fewer results has no two levels.
FEWEST_RESULTS = 2 * SHORTEST_LEVEL
# The moment is looked for among the results of so many days before and behind the day of a change.
DAYS_AROUND = 3
# The middle link must have moved by at least this part of a change: else it is that of a few.
SHARED = 0.5


@dataclass(frozen=True)
class LevelShifts:
    """Changes of level, and how many sequences with results enough for one were searched."""

    changes: list[FoundChange]
    searched: int


def link_changes(runs: Sequence[Run], links: NDArray[np.uint32], end: int) -> LevelShifts:
    """Find the changes of links, given as keys have them, in runs with offsets.

    ``end`` is that of the window, in Unix ms.
    """
    parts = each(
        lambda chunk: _of_links(runs, chunk, end),
        [links[first : first + AT_ONCE] for first in range(0, len(links), AT_ONCE)],
    )
    return LevelShifts(
        [change for part in parts for change in part.changes], sum(part.searched for part in parts)
    )


def _of_links(runs: Sequence[Run], links: NDArray[np.uint32], end: int) -> LevelShifts:
    samples = LinkSamples.of_links(runs, links)
    started = samples.started
    counts = np.bincount(samples.link, minlength=len(links))
    logs = np.log(samples.rates.astype(np.float64))
    changes = change_points(logs, np.cumsum(counts) - counts, counts)
    # New levels end with the next change, or not yet.
    is_followed = np.append(samples.link, -1)[changes.past] == changes.sequence
    until = np.where(is_followed, np.append(started, end)[changes.past], end)
    # What each link did before and since each of its changes.
    courses = LogRates.of(samples.link, started, samples.rates).courses(
        changes.sequence, changes.level, around(started[changes.at], started[changes.first], until)
    )
    described = []
    for number, link in enumerate(links[changes.sequence].tolist()):
        at, first, past = _places(changes, number)
        described.append(
            FoundChange(
                kind=Change.Kind.LINK.value,
                source_id=link >> 16,
                destination_id=link & 0xFFFF,
                at=moment(int(started[at])),
                earliest=moment(int(started[changes.earliest[number] - 1])),
                latest=moment(int(started[changes.latest[number]])),
                **_factors(changes, number),
                before=float(np.exp(changes.level[number])),
                after=float(np.exp(changes.level[number] + changes.shift[number])),
                ok_before=at - first,
                ok_after=past - at,
                links=1,
                sure=False,
                course=courses[number],
            )
        )
    return LevelShifts(described, int((counts >= FEWEST_RESULTS).sum()))


def _places(changes: ChangePoints, number: int) -> tuple[int, int, int]:
    """Return where a change is, where the level before it begins, and where that since it ends."""
    return int(changes.at[number]), int(changes.first[number]), int(changes.past[number])


def _factors(changes: ChangePoints, number: int) -> dict[str, float]:
    """Return the factor of a change, its interval, and the chance of it."""
    shift, low, high = changes.shift[number], changes.low[number], changes.high[number]
    factor, low, high = np.exp([shift, low, high]).tolist()
    return {"factor": factor, "low": low, "high": high, "chance": float(changes.chance[number])}


@dataclass(frozen=True)
class EffectSeries:
    """The effects of an endpoint (by its place) or of the grid, on the days when it has any."""

    kind: str
    place: int
    days: Integers
    effects: Floats
    tests: Integers


@dataclass(frozen=True)
class LevelDays:
    """The days of the levels around a change: from ``first`` on, from ``at`` on, until ``past``."""

    first: int
    at: int
    past: int


@dataclass(frozen=True)
class SearchedResults:
    """Runs with offsets, in the order of time, and the links in them that tell of changes.

    ``end`` is that of the window, in Unix ms.
    """

    runs: Sequence[Run]
    links: NDArray[np.uint32]
    numbering: Numbering
    end: int
    left_out: tuple[int, ...] = ()

    def without(self, links: Iterable[int]) -> SearchedResults:
        """Return the same without some links."""
        left_out = tuple(links)
        others = self.links[~np.isin(self.links, left_out)]
        return replace(self, links=others, left_out=left_out)

    def links_of(self, series: EffectSeries) -> NDArray[np.uint32]:
        """Return the links that tell of a series."""
        identity = int(self.numbering.ids[series.place])
        ends = {"source": self.links >> 16, "destination": self.links & 0xFFFF}
        if series.kind not in ends:
            return self.links
        return np.asarray(self.links[ends[series.kind] == identity])

    def samples(self, links: NDArray[np.uint32], days: tuple[int, int]) -> LinkSamples | None:
        """Return the successes of links from one day until another."""
        runs = [run for run in self.runs if days[0] <= run.start // DAY_MS < days[1]]
        return LinkSamples.of_links(runs, links) if runs else None


def endpoint_changes(results: SearchedResults) -> LevelShifts:
    """Find the changes that the links of an endpoint, or all of them, have in common."""
    effects = DailyEffects.of(results.runs, results.numbering, results.left_out)
    sources, destinations = effects.tests
    tests_at = {"source": sources, "destination": destinations}
    every = [
        EffectSeries(
            *(kind, place, effects.days[there], values),
            (tests_at[kind][place] if kind in tests_at else sources.sum(axis=0))[there],
        )
        for kind, place, there, values in effects.sequences()
        if effects.days[there].size
    ]
    counts = np.array([series.days.size for series in every], dtype=np.int64)
    values = np.concatenate([np.empty(0), *(series.effects for series in every)])
    starts = np.cumsum(counts) - counts
    changes = change_points(values, starts, counts).since(starts)
    described = (
        _described(changes, number, every[sequence], results, effects)
        for number, sequence in enumerate(changes.sequence.tolist())
    )
    return LevelShifts([change for change in described if change], len(every))


def _described(
    changes: ChangePoints,
    number: int,
    series: EffectSeries,
    results: SearchedResults,
    effects: DailyEffects,
) -> FoundChange | None:
    """Say of a change when it was and what it was; None if single results do not bear it out."""
    at, first, past = _places(changes, number)
    is_last = past == len(series.days)
    end = int(series.days[-1]) + 1 if is_last else int(series.days[past])
    levels = LevelDays(int(series.days[first]), int(series.days[at]), end)
    shift = float(changes.shift[number])
    links = results.links_of(series)
    samples = results.samples(links, (levels.first, levels.past))
    grid = effects.grid_of(series.kind)
    if samples is None or not is_shared(shift, samples, levels, results, grid):
        return None
    near = max(levels.first, levels.at - DAYS_AROUND), min(levels.past, levels.at + DAYS_AROUND)
    when = ChangeMoment.of(results.samples(links, near), len(links))
    if when is None:
        return None
    identity = int(results.numbering.ids[series.place])
    return FoundChange(
        kind=series.kind,
        source_id=identity if series.kind == "source" else None,
        destination_id=identity if series.kind == "destination" else None,
        at=moment(when.at),
        earliest=moment(when.earliest),
        latest=moment(when.latest),
        **_factors(changes, number),
        before=None,
        after=None,
        ok_before=int(series.tests[first:at].sum()),
        ok_after=int(series.tests[at:past].sum()),
        links=when.links,
        sure=False,
        course=course_of(samples, levels, when.at, results.end if is_last else None),
    )


def is_shared(
    shift: float,
    samples: LinkSamples,
    levels: LevelDays,
    results: SearchedResults,
    grid: Floats,
) -> bool:
    """Say whether the middle one of the links moved as all of them are said to have.

    ``grid`` is the level of the whole grid on each day from the first of the results: what all
    links had in common is taken off.
    """
    day = samples.started // DAY_MS
    logs = np.log(samples.rates.astype(np.float64)) - grid[day - results.runs[0].start // DAY_MS]
    is_after = day >= levels.at
    before, after = (
        mean_by(samples.link[part], logs[part], samples.links) for part in (~is_after, is_after)
    )
    shifts = (after - before)[~np.isnan(after - before)]
    return bool(shifts.size) and float(np.median(shifts)) / shift >= SHARED


def course_of(samples: LinkSamples, levels: LevelDays, at: int, end: int | None) -> Factors:
    """Return what links did before and since a change, each against its own level before.

    The last level of all lasts until ``end`` (Unix ms).
    """
    first, past = levels.first * DAY_MS, levels.past * DAY_MS if end is None else end
    rates = LogRates.of(samples.link, samples.started, samples.rates)
    link = np.arange(samples.links)
    before = rates.levels(link, np.full_like(link, first), np.full_like(link, at))
    return rates.course(link, before, around(np.array([at]), np.array([first]), np.array([past])))


@dataclass(frozen=True)
class ChangeMoment:
    """When a change of several links was, in Unix ms, and how many tell of before and after."""

    at: int
    earliest: int
    latest: int
    links: int

    @classmethod
    def of(cls, samples: LinkSamples | None, links: int) -> ChangeMoment | None:
        """Find it in the results around it, each link against its own mean of them."""
        if samples is None:
            return None
        order = np.argsort(samples.started, kind="stable")
        started, link = samples.started[order], samples.link[order]
        logs = np.log(samples.rates[order].astype(np.float64))
        split = dated(logs - mean_by(link, logs, links)[link])
        if split is None:
            return None
        at, earliest, latest = split
        both = np.intersect1d(link[:at], link[at:])
        return cls(int(started[at]), int(started[earliest - 1]), int(started[latest]), len(both))


def mean_by(link: Integers, values: Floats, links: int) -> Floats:
    """Return the mean of the values of each link, NaN for none."""
    count = np.bincount(link, minlength=links)
    total = np.bincount(link, values, minlength=links)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
