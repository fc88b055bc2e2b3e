"""Which links are tested no more, and what they have in common. Pure numpy.

A link is silent when its newest test is longer ago than some intervals of its schedule, and nothing
known has kept Sonar from testing it. This is judged for the present alone: earlier schedules,
pauses and circuit breakers are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.assessment.common_ends import FEWEST_LINKS, SHARED, common_ends
from matrix.statistics.assessment.conditions import SILENT, ClassCondition
from matrix.statistics.assessment.grid_links import GRID, LINK, GridLinks, Subject


@dataclass(frozen=True)
class Promise:
    """By link: when its newest test started (Unix ms), after how long without one it is silent (ms,
    infinity where no schedule tests it), since when nothing known has kept Sonar from testing it
    (Unix ms), and whether something does so now (``is_held``)."""

    last: Integers
    limit: Floats
    free_since: Integers
    is_held: Flags

    @property
    def is_tested(self) -> Flags:
        return np.asarray(np.isfinite(self.limit) & (self.last > 0) & ~self.is_held)

    @property
    def due(self) -> Floats:
        """Return from when on each link is silent unless it is tested before (Unix ms)."""
        return np.asarray(np.maximum(self.last, self.free_since) + self.limit)


def silent_conditions(links: GridLinks, promise: Promise, now: int) -> Iterator[ClassCondition]:
    """Yield what is silent at a moment (Unix ms), each since the newest test of its links."""
    is_tested, due = promise.is_tested, promise.due
    silent = is_tested & (due <= now)
    for subject in silent_subjects(links, silent, promise, now):
        own = links.of(subject)
        members = np.flatnonzero(own & silent)
        since = int(promise.last[members].max())
        # An end is seen with the link that makes it enough.
        of, needed = int((own & is_tested).sum()), 1
        if subject.scope != LINK:
            needed = min(max(FEWEST_LINKS, int(np.ceil(SHARED * of))), len(members))
        seen = int(np.sort(due[members])[needed - 1])
        condition = ClassCondition(*subject, SILENT, seen, since, since, since, seen)
        condition.listed_at, condition.links = seen, tuple(members.tolist())
        yield condition


def silent_subjects(
    links: GridLinks, silent: Flags, promise: Promise, now: int
) -> Iterator[Subject]:
    """Yield the grid, or the ends and sites that silent links have in common, and other links."""
    if not silent.any():
        return
    is_tested = promise.is_tested
    # Without a test for as long as the most frequent links may be, Sonar does not test at all.
    newest = int(np.maximum(promise.last, promise.free_since)[is_tested].max())
    shortest = promise.limit[is_tested].min()
    if now - newest >= shortest:
        yield Subject(GRID)
    if now - newest >= shortest / 3:
        # It may be Sonar itself: no single link is silent yet.
        return
    subjects = [*common_ends(links, silent, is_tested)]
    yield from subjects
    alone = silent.copy()
    for each in subjects:
        alone[links.places(each)] = False
    for link in np.flatnonzero(alone).tolist():
        yield Subject(LINK, int(links.source[link]), int(links.destination[link]))
