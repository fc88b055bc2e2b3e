"""Judging the links of criteria sets hour by hour: who passed, when, and who lost it since."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from hashlib import sha256

import numpy as np
from django.conf import settings
from django.db import transaction
from numpy.typing import NDArray

from matrix.answers.commissioning import standing
from matrix.answers.commissioning.standing import Downs, Members, criteria_of, ends_of
from matrix.statistics.arrays import each
from matrix.statistics.levels.criteria import (
    AT_ONCE,
    HOUR_MS,
    MICROSECONDS,
    HourSums,
    JudgedHours,
    LinkCriteria,
    Passage,
)
from matrix.statistics.samples.run import Run
from matrix.store import commissioning as store
from matrix.store import runs
from matrix.store.read_plan import moment
from sonar.models import CriteriaSet
from sonar.notation.windows import Window, parse_time, unix_ms
from sonar.results import commissioning
from sonar.results.commissioning import FoundPass, Search, Stored

# So far back a set that is new or was changed is judged, and late results move records.
DAYS = timedelta(days=90)
HOUR = timedelta(hours=1)
# Raised with anything that would judge the same results otherwise.
METHOD = 2


@dataclass(frozen=True)
class SetOutcome:
    """What judging a set did; None where nothing was new."""

    name: str
    stored: Stored | None = None


def search_all(now: datetime) -> list[SetOutcome]:
    """Judge the links of every set for which there is something new."""
    rows = CriteriaSet.objects.select_related("size_class")
    return [search(row, now) for row in rows]


@transaction.atomic
def search(row: CriteriaSet, now: datetime) -> SetOutcome:
    """Judge the links of a set up to the last full hour, and store what is found.

    Nothing is done where no hour is over since the last search and no result or downtime in the
    days before is new, late or changed.
    """
    commissioning.lock(row)
    last, members = commissioning.last_search(row), Members.of(row)
    window = window_at(now)
    days = store.versions(row.size_class.name, window)
    terms = (METHOD, criteria_of(row), row.size_class_id, members)
    basis = sha256(repr(terms).encode()).hexdigest()
    # Records after this moment are found again. The first one needs a whole period before it.
    renews = window.start + (row.period_hours - 1) * HOUR
    if last and last.basis == basis:
        changed = [parse_time(day) for day, each in days.items() if last.days.get(day) != each]
        renews = max(renews, min([last.end, *changed]))
    if last and renews >= window.end:
        commissioning.note(last, now)
        return SetOutcome(row.name)
    done = Search(row, renews, window.end, days, basis)
    passages, judged = judge(row, members, window, renews) if renews < window.end else ([], set())
    stored = commissioning.store(done, passages, judged, now)
    commissioning.keep_counts(row, standing.read(row).counts)
    return SetOutcome(row.name, stored)


def window_at(now: datetime) -> Window:
    """Return whole days before today, as far as results are kept, and the full hours of today."""
    end = now.replace(minute=0, second=0, microsecond=0)
    midnight = datetime.combine(end, time(), now.tzinfo)
    kept = timedelta(days=max(1, settings.SONAR_KEEP_DAYS - 1))
    return Window(midnight - min(DAYS, kept), end)


def judge(
    row: CriteriaSet, members: Members, window: Window, renews: datetime
) -> tuple[list[FoundPass], set[tuple[int, int]]]:
    """Return the times for which links passed, behind a moment, and which links were judged."""
    # What counts of the last two periods was measured over one more.
    start = max(window.start, renews - 3 * row.period_hours * HOUR)
    read = Window(start, window.end)
    results = runs.read(row.size_class.name, read, (), offsets=True, sizes=True)
    records = list(commissioning.standing(row, renews).values_list(*LINK, "passed_at"))
    recorded = np.array([source << 16 | other for source, other, _ in records], dtype=np.uint32)
    # Those that have a result or a record, ascending.
    links = np.unique(np.concatenate([recorded, *(run.links for run in results)]))
    links = members.links(links)
    has_passed = {source << 16 | other for source, other, passed in records if passed <= renews}
    judge_of_links = _Judge(
        results, read, renews, criteria_of(row), has_passed, Downs.read(read, members)
    )
    at_once = max(1, AT_ONCE // judge_of_links.hours)
    chunks = [links[first : first + at_once] for first in range(0, len(links), at_once)]
    passages = [passage for part in each(judge_of_links.passages, chunks) for passage in part]
    return passages, {ends_of(link) for link in links.tolist()}


LINK = ("source_id", "destination_id")


@dataclass(frozen=True)
class _Judge:
    """What one thread needs to judge some links."""

    results: Sequence[Run]
    window: Window
    renews: datetime
    criteria: LinkCriteria
    has_passed: set[int]
    downs: Downs

    @property
    def hours(self) -> int:
        return (self.window.end - self.window.start) // HOUR

    def passages(self, links: NDArray[np.uint32]) -> list[FoundPass]:
        start = unix_ms(self.window.start)
        measured = HourSums.of(self.results, links, start, self.hours)
        judgement = JudgedHours.of(measured, self.downs.of_links(links), self.criteria)
        has_passed = np.isin(links, np.array([*self.has_passed], dtype=np.uint32))
        # The hour that ends at the moment is the last one before what is found anew.
        first = (self.renews - self.window.start) // HOUR
        return list(self._described(links, judgement, judgement.passages(has_passed, first)))

    def _described(
        self, links: NDArray[np.uint32], judgement: JudgedHours, passages: Iterator[Passage]
    ) -> Iterator[FoundPass]:
        for link, passed, lost in passages:
            ends = ends_of(int(links[link]))
            lost_at = None if lost is None else self._end_of(lost)
            if passed is None:
                yield FoundPass(ends, None, lost_at)
                continue
            tests, ok, volume, micros = (
                int(values[link, passed]) for values in judgement.window.arrays().values()
            )
            yield FoundPass(
                ends, self._end_of(passed), lost_at, tests, ok, volume, micros / MICROSECONDS
            )

    def _end_of(self, hour: int) -> datetime:
        return moment(unix_ms(self.window.start) + (hour + 1) * HOUR_MS)
