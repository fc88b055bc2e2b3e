"""How links stand at the end of a window: numbers of their tests, and marks of conditions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from matrix.answers.conditions.reading import state_moment
from matrix.query.filters import Filter, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells import standing
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.standing import (
    FASTER,
    SILENT,
    SLOWER,
    UNKNOWN,
    Standings,
    UsualRates,
    UsualTests,
)
from matrix.statistics.compare.day_scatter import day_scatter
from matrix.statistics.compare.together import DayScatter, day_shifts
from matrix.statistics.compare.two_samples import KnownScatter
from matrix.statistics.samples.newest import NewestTests
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.run import Run
from matrix.store import conditions, data_version, runs
from matrix.store.cache import STANDINGS
from matrix.store.conditions import MARKS, LinkMarks
from matrix.store.data_version import DataVersion
from sonar.notation.windows import Window

# What a confirmed mark makes of the level of a link; what fails has none.
LEVEL_OF_MARK = np.array([UNKNOWN, FASTER, SLOWER, SILENT, UNKNOWN], dtype=np.uint8)
# Of more links than these (those of 500 endpoints), no more are read at a time, and no more days.
LINKS = 1 << 18
FEW_DAYS = timedelta(days=4)


def reach(window: Window) -> Window:
    """Return the window of all results that an answer with standings depends on."""
    return Window(standing.usual_window(window).start, window.end)


class ResultsOfLinks(NamedTuple):
    """Of which results: those of a size class that pass the filters on profiles, by place."""

    size: str
    filters: tuple[Filter, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, size: str, filters: Iterable[Filter], links: LinkIndex) -> ResultsOfLinks:
        """Leave out the filters on links: what is made of all of them serves every choice."""
        return cls(size, tuple(on_profiles(filters)), tuple(place.id for place in links.places))

    def runs(self, window: Window, **extras: bool) -> tuple[Run, ...]:
        return runs.read(self.size, window, self.filters, **extras)

    def usual(self, days: Window, version: str, numbering: Numbering) -> UsualRates:
        """Return what is usual after these days; kept as long as their version holds."""
        rates: UsualRates = STANDINGS.get(
            ("usual", self, days, version),
            lambda: UsualRates.of_all(self._usual_tests(days, numbering)),
        )
        return rates

    def newest(self, days: Window, rest: Window, version: str, numbering: Numbering) -> NewestTests:
        """Return the newest tests; those of whole days are kept as long as their version holds."""
        before: NewestTests = STANDINGS.get(
            ("recent", self, days, version), lambda: self._newest(days, numbering)
        )
        return NewestTests.of(reversed(self.with_offsets(rest)), numbering, before)

    @data_version.snapshot()
    def _usual_tests(self, days: Window, numbering: Numbering) -> list[UsualTests]:
        """Reduce the links of some sources after the others, which takes so much less memory."""
        parts = numbering.parts(LINKS)
        if len(parts) == 1:
            return [UsualTests.of(self.runs(days, links=False), numbering)]
        return [UsualTests.of([*self._own(part, days)], part) for part in parts]

    def _own(self, part: Numbering, days: Window) -> Iterator[Run]:
        """Copy what is of some sources, so that the rest can be let go after a few days of it."""
        for piece in pieces(days, FEW_DAYS):
            for run in map(part.own, self.runs(piece, links=False, once=True)):
                yield replace(run, keys=run.keys.copy())

    @data_version.snapshot()
    def _newest(self, days: Window, numbering: Numbering) -> NewestTests:
        if numbering.size <= LINKS:
            return NewestTests.of(reversed(self.with_offsets(days)), numbering)
        return NewestTests.of(self._backwards(days), numbering)

    def _backwards(self, days: Window) -> Iterator[Run]:
        """Read a few days before the others, the newest run first."""
        for piece in reversed(pieces(days, FEW_DAYS)):
            yield from reversed(self.with_offsets(piece, once=True))

    def with_offsets(self, window: Window, *, once: bool = False) -> tuple[Run, ...]:
        return self.runs(window, links=False, offsets=True, once=once)

    def scatter(self, days: Window, version: str, numbering: Numbering) -> KnownScatter:
        """Return how far tests scatter from day to day; kept as long as their version holds."""
        scatter: KnownScatter = STANDINGS.get(
            ("scatter", self, days, version),
            lambda: day_scatter(self.runs(days, links=False), numbering),
        )
        return scatter

    def day_shifts(
        self, days: Window, version: str, numbering: Numbering, choices: Flags, of: str
    ) -> DayScatter:
        """Return how far some choices of links scatter together; kept as long as that holds."""
        chosen = hashlib.sha256(np.packbits(choices).tobytes()).digest()
        shifts: DayScatter = STANDINGS.get(
            ("day shifts", self, days, version, chosen, choices.shape, of),
            lambda: day_shifts(self.runs(days), numbering, choices, of),
        )
        return shifts


def pieces(window: Window, length: timedelta) -> list[Window]:
    """Cut a window into pieces of this length; the last may be shorter."""
    count = -((window.start - window.end) // length)
    starts = [window.start + number * length for number in range(count)]
    return [Window(start, min(start + length, window.end)) for start in starts]


def scatter(query: MatrixQuery, now: datetime, links: LinkIndex) -> KnownScatter | None:
    """Return how far the tests of each link scatter in the weeks before a window: one statement.

    None where not only time is compared: the two sides of a test of streams, say, may meet the
    same days.
    """
    if query.compare is None or not query.compare.is_of_time:
        return None
    days = standing.usual_window(query.window_at(now))
    (version,) = data_version.read_results(query.size, [days])
    results = ResultsOfLinks.of(query.size, query.filters, links)
    return results.scatter(days, version, links.numbering)


def day_to_day(
    size: str,
    filters: Iterable[Filter],
    windows: Sequence[Window],
    links: LinkIndex,
    choices: Flags,
    *,
    of: str,
) -> list[DayScatter]:
    """Return of each window how far some choices of links scatter together in the weeks before it.

    ``choices`` have shape (choices, places, places). One statement, if there are windows.
    """
    days = [standing.usual_window(window) for window in windows]
    versions = data_version.read_results(size, days) if days else []
    results = ResultsOfLinks.of(size, filters, links)
    return [
        results.day_shifts(of_window, version, links.numbering, choices, of)
        for of_window, version in zip(days, versions, strict=True)
    ]


def read_marks(
    sizes: Sequence[str], window: Window, now: datetime, links: LinkIndex
) -> dict[str, LinkMarks]:
    """Return by size class what conditions say of links at the end of a window; one statement."""
    return conditions.marks_by_class(sizes, state_moment(window, now), links)


def read(
    size: str,
    filters: Iterable[Filter],
    window: Window,
    now: datetime,
    links: LinkIndex,
    *,
    version: DataVersion | None = None,
    marks: LinkMarks | None = None,
) -> Standings:
    """Return how all links of a size class stand at the end of a window.

    Numbers are of the tests that pass the filters, judgements of conditions, whatever the filters.
    ``version`` is that of the results in reach(), where the caller has it: what is kept for it
    takes no SQL. One statement says else whether it holds. What is usual, and the newest tests up
    to the last midnight, are made once a day, unless late results come. ``marks`` are those of
    read_marks(), which takes a statement of its own.
    """
    of_links = ResultsOfLinks.of(size, filters, links)
    usual_days = standing.usual_window(window)
    recent_days, rest = standing.recent_windows(window, now)
    days = usual_days, recent_days, rest
    results = version.results if version else ()
    parts = () if results else tuple(data_version.read_results(size, days))
    numbering = links.numbering

    def numbers() -> Standings:
        of_usual, of_recent, _ = parts or data_version.read_results(size, days)
        newest = of_links.newest(recent_days, rest, of_recent, numbering)
        usual = of_links.usual(usual_days, of_usual, numbering)
        return Standings.of(newest, usual.median, numbering, usual.precision)

    key = ("standings", of_links, usual_days, rest, results or parts)
    standings: Standings = STANDINGS.get(key, numbers)
    marks = marks or read_marks([size], window, now, links)[size]
    return marked(standings, marks, is_filtered=bool(of_links.filters))


def marked(standings: Standings, marks: LinkMarks, *, is_filtered: bool = False) -> Standings:
    """Return standings with what conditions say of links.

    What was usual before a condition is of all tests that count: it is left out where those of
    ``standings`` are filtered.
    """
    changed = {
        name: getattr(standings, name).copy()
        for name in ("level", "usual", "low", "high", "failing", "since", "unconfirmed")
    } | {"condition": standings.condition.copy(), "streak": np.zeros_like(standings.streak)}
    flat = {name: values.ravel() for name, values in changed.items()}  # views of the same numbers
    has_baseline = ~np.isnan(marks.baseline) & (not is_filtered)
    link, baseline = marks.link[has_baseline], marks.baseline[has_baseline]
    for name in ("low", "high"):
        flat[name][link] *= (flat["usual"][link] / baseline).astype(np.float32)
    flat["usual"][link] = baseline
    is_member = marks.mark > 0
    link, mark, sure = marks.link[is_member], marks.mark[is_member], marks.is_confirmed[is_member]
    level = np.where(sure, LEVEL_OF_MARK[mark], UNKNOWN)
    failing = sure & (mark == MARKS.index("failing"))
    flat["level"][link] = level
    flat["failing"][link] = failing
    flat["streak"][link] = standings.streak.ravel()[link] * failing
    has_since = failing | (level != UNKNOWN)
    flat["since"][link] = np.where(has_since, marks.since[is_member] / 1000, np.nan)
    flat["unconfirmed"][link] = np.where(sure, 0, mark)
    flat["condition"][link] = marks.condition[is_member]
    return replace(standings, **changed)
