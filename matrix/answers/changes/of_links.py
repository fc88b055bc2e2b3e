"""Changes of level of single links, from all their results in a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Integers, each
from matrix.statistics.levels.before_since import Factors, LogRates, around
from matrix.statistics.levels.change_points import SHORTEST_LEVEL, ChangePoints, change_points
from matrix.statistics.samples.newest import LinkSamples
from matrix.statistics.samples.run import Run
from matrix.store.read_plan import moment
from sonar.models import Change
from sonar.results.changes import FoundChange

# So many links are looked at in one go, by one thread: what is made of them takes some 50 MB.
AT_ONCE = 2000
# A link with fewer results has no two levels.
FEWEST = 2 * SHORTEST_LEVEL


@dataclass(frozen=True)
class LinkChanges:
    """The changes of some links, and how many of them have results enough for one."""

    changes: list[FoundChange]
    searched: int


def find(runs: Sequence[Run], links: NDArray[np.uint32], end: int) -> LinkChanges:
    """Find the changes of links, given as keys have them, in runs with offsets.

    ``end`` is that of the window, in Unix ms.
    """
    parts = each(
        lambda chunk: _find(runs, chunk, end),
        [links[first : first + AT_ONCE] for first in range(0, len(links), AT_ONCE)],
    )
    return LinkChanges(
        [change for part in parts for change in part.changes], sum(part.searched for part in parts)
    )


def _find(runs: Sequence[Run], links: NDArray[np.uint32], end: int) -> LinkChanges:
    samples = LinkSamples.of_links(runs, links)
    counts = np.bincount(samples.link, minlength=len(links))
    logs = np.log(samples.rates.astype(np.float64))
    changes = change_points(logs, np.cumsum(counts) - counts, counts)
    courses = _courses(changes, samples, end)
    described = list(_described(changes, courses, links, samples))
    return LinkChanges(described, int((counts >= FEWEST).sum()))


def _courses(changes: ChangePoints, samples: LinkSamples, end: int) -> list[Factors]:
    """Return what each link did before and since each of its changes."""
    rates = LogRates.of(samples.link, samples.started, samples.rates)
    at = samples.started[changes.at]
    return rates.courses(
        changes.sequence,
        changes.level,
        around(at, samples.started[changes.first], _until(changes, samples, end)),
    )


def _until(changes: ChangePoints, samples: LinkSamples, end: int) -> Integers:
    """Return when the new levels ended: with the next change, or not yet."""
    link = np.append(samples.link, -1)[changes.past]
    next_level = np.append(samples.started, end)[changes.past]
    return np.where(link == changes.sequence, next_level, end)


def _described(
    changes: ChangePoints,
    courses: Sequence[Factors],
    links: NDArray[np.uint32],
    samples: LinkSamples,
) -> Iterator[FoundChange]:
    """Say of each change when it was and what it was."""
    for number, link in enumerate(links[changes.sequence].tolist()):
        at, first, past = (
            int(places[number]) for places in (changes.at, changes.first, changes.past)
        )
        yield FoundChange(
            kind=Change.Kind.LINK.value,
            source_id=link >> 16,
            destination_id=link & 0xFFFF,
            at=moment(int(samples.started[at])),
            earliest=moment(int(samples.started[changes.earliest[number] - 1])),
            latest=moment(int(samples.started[changes.latest[number]])),
            factor=float(np.exp(changes.shift[number])),
            low=float(np.exp(changes.low[number])),
            high=float(np.exp(changes.high[number])),
            before=float(np.exp(changes.level[number])),
            after=float(np.exp(changes.level[number] + changes.shift[number])),
            ok_before=at - first,
            ok_after=past - at,
            links=1,
            chance=float(changes.chance[number]),
            sure=False,
            course=courses[number],
        )
