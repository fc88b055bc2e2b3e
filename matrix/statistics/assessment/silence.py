"""Which links are tested no more, and what they have in common. Pure numpy.

A link is silent when its newest test is longer ago than some intervals of its schedule, and nothing
that is known has kept Sonar from testing it. When no link at all is tested, that is Sonar itself:
then no single link is silent until it had the same time again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.assessment.common_ends import common_ends
from matrix.statistics.assessment.conditions import SILENT, Condition
from matrix.statistics.assessment.results import GRID, LINK, NEVER, Links, Results, Subject

# How long a link went without a test: ``since`` the one before, ``seen`` when it was too long,
# ``until`` the next one, in Unix ms.
GAP = np.dtype([("link", "<i8"), ("since", "<i8"), ("seen", "<i8"), ("until", "<i8")])
# Longer than any interval of tests, in ms.
ENDLESS = 1 << 57


@dataclass(frozen=True)
class Promise:
    """By link: after how long without a test it is silent (ms, infinity for never), and since when
    nothing known has kept Sonar from testing it (Unix ms)."""

    limit: Floats
    free_since: Floats


def silent_conditions(
    links: Links,
    tests: Results,
    promise: Promise,
    period: tuple[int, int],
    before: Sequence[Condition],
) -> list[Condition]:
    """Return what is or was silent in a period (Unix ms).

    ``before`` are the silent conditions that were open as it began.
    """
    begin, end = period
    found = [ended(links, tests, each) for each in before]
    gaps = gaps_of(tests, promise, end)
    known = np.isfinite(promise.limit) & (np.bincount(tests.link, minlength=len(links)) > 0)
    moments = np.unique(gaps["seen"])
    for moment in moments[(moments >= begin) & (moments <= end)].tolist():
        open_ = gaps[(gaps["seen"] <= moment) & (moment < gaps["until"])]
        silent = np.zeros(len(links), dtype=bool)
        silent[open_["link"]] = True
        lasting = [each for each in found if each.until > moment]
        for subject in silent_subjects(links, silent, known):
            own = links.of(subject)
            if any(not (own & ~links.of(each.subject)).any() for each in lasting):
                continue
            of = open_[own[open_["link"]]]
            since, until = int(of["since"].max()), int(of["until"].min())
            condition = Condition(*subject, SILENT, moment, since, since, since, moment)
            condition.ended_at = until if until <= end else None
            condition.links = tuple(of["link"].tolist())
            inside = [each for each in lasting if not (links.of(each.subject) & ~own).any()]
            found = [each for each in found if not any(each is one for one in inside)]
            found.append(condition)
    return found


def ended(links: Links, tests: Results, condition: Condition) -> Condition:
    """Return a condition, with its end if one of its links was tested again."""
    own = links.of(condition.subject)[tests.link] & (tests.started >= condition.seen_at)
    if condition.ended_at is not None or not own.any():
        return replace(condition)
    return replace(condition, ended_at=int(tests.started[own.argmax()]))


def silent_subjects(links: Links, silent: Flags, known: Flags) -> Iterator[Subject]:
    """Yield the grid, or the ends and sites that silent links have in common, and other links."""
    if known.any() and silent[known].all():
        yield Subject(GRID)
        return
    subjects = [*common_ends(links, silent, known)]
    yield from subjects
    for link in np.flatnonzero(silent).tolist():
        if not any(links.of(each)[link] for each in subjects):
            yield Subject(LINK, int(links.source[link]), int(links.destination[link]))


def gaps_of(tests: Results, promise: Promise, end: int) -> NDArray[np.void]:
    """Return when links went without a test for longer than they may (GAP)."""
    order = np.argsort(tests.link, kind="stable")
    link, started = tests.link[order], tests.started[order]
    is_last = np.diff(link, append=-1) != 0
    until = np.where(is_last, NEVER, np.append(started[1:], NEVER))
    allowed = np.minimum(promise.limit, ENDLESS)[link].astype(np.int64)
    begun = np.maximum(started, promise.free_since[link].astype(np.int64))
    seen = begun + allowed
    # Where no link was tested at all meanwhile, it begins again with the first that is.
    resumed = resumptions(tests.started, float(promise.limit.min(initial=np.inf)))
    if len(resumed):
        again = resumed[np.maximum(resumed.searchsorted(seen, side="right") - 1, 0)]
        seen = np.where((again > begun) & (again <= seen), again + allowed, seen)
    silent = np.flatnonzero((seen < until) & (seen <= end))
    gaps = np.empty(len(silent), GAP)
    for name, values in (("link", link), ("since", started), ("seen", seen), ("until", until)):
        gaps[name] = values[silent]
    return gaps


def resumptions(started: Integers, limit: float) -> Integers:
    """Return when tests came again after none of any link for so long (ms)."""
    return np.asarray(started[1:][np.diff(started) > limit])
