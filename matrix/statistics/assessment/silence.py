"""Which links are tested no more, and what they have in common. Pure numpy.

A link is silent when its newest test is longer ago than some intervals of its schedule, and nothing
that is known has kept Sonar from testing it. When no link at all is tested, that is Sonar itself:
then no single link is silent until it had the same time again.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.assessment.common_ends import common_ends
from matrix.statistics.assessment.conditions import SILENT, Condition
from matrix.statistics.assessment.results import GRID, LINK, NEVER, Links, Subject, Results


def silent_conditions(
    links: Links,
    tests: Results,
    limit: Floats,
    free_since: Floats,
    begin: int,
    end: int,
    before: Sequence[Condition],
) -> list[Condition]:
    """Return what is or was silent from ``begin`` until ``end`` (Unix ms).

    ``limit`` is how long after its newest test a link is silent, in ms, infinity for never;
    ``free_since`` (Unix ms) since when nothing has kept Sonar from testing it. ``before`` are the
    silent conditions that were open at ``begin``.
    """
    found = [replace(each) for each in before]
    for each in found:
        own = links.of(each.subject)[tests.link] & (tests.started > each.since)
        back = tests.started[own & (tests.started >= each.seen_at)]
        if back.size and each.ended_at is None:
            each.ended_at = int(back[0])
    gaps = gaps_of(tests, limit, free_since, end)
    for moment in np.unique(gaps["seen"][(gaps["seen"] >= begin) & (gaps["seen"] <= end)]).tolist():
        open_ = gaps[(gaps["seen"] <= moment) & (moment < gaps["until"])]
        silent = np.zeros(len(links), dtype=bool)
        silent[open_["link"]] = True
        known = np.isfinite(limit)
        known &= np.isin(np.arange(len(links)), np.unique(tests.link))
        since = int(open_["since"].max())
        if known.any() and silent[known].all():
            subjects = [Subject(GRID)]
        else:
            subjects = [*common_ends(links, silent, known)]
            for link in np.flatnonzero(silent):
                if not any(links.of(each)[link] for each in subjects):
                    subjects.append(
                        Subject(LINK, int(links.source[link]), int(links.destination[link]))
                    )
        for subject in subjects:
            own = links.of(subject)
            covered = any(
                each.until > moment for each in found if not (own & ~links.of(each.subject)).any()
            )
            if covered:
                continue
            of = open_[own[open_["link"]]]
            since = int(of["since"].max())
            found = [
                each
                for each in found
                if each.until <= moment or (links.of(each.subject) & ~own).any()
            ]
            ended = int(of["until"].min())
            found.append(
                Condition(
                    *subject, SILENT, moment, since, since, since,
                    confirmed_at=moment,
                    ended_at=ended if ended <= end else None,
                    links=tuple(of["link"].tolist()),
                )
            )  # fmt: skip
    return found


GAP = np.dtype([("link", "<i8"), ("since", "<i8"), ("seen", "<i8"), ("until", "<i8")])


def gaps_of(tests: Results, limit: Floats, free_since: Floats, end: int) -> np.ndarray:
    """Return when links went without a test for longer than they may (GAP, times in Unix ms).

    ``since`` is the test before, ``seen`` when it was too long, ``until`` the next test.
    """
    order = np.argsort(tests.link, kind="stable")
    link, started = tests.link[order], tests.started[order]
    is_last = np.diff(link, append=-1) != 0
    until = np.where(is_last, NEVER, np.append(started[1:], NEVER))
    resumed = resumptions(tests.started, float(limit.min(initial=np.inf)))
    from_ = np.maximum(
        started, np.where(np.isfinite(free_since), free_since, 0)[link].astype(np.int64)
    )
    allowed = np.where(np.isfinite(limit), limit, 1e17)[link].astype(np.int64)
    seen = from_ + allowed
    if len(resumed):
        # Where no link was tested at all meanwhile, it begins again with the first that is.
        place = resumed.searchsorted(seen, side="right") - 1
        again = resumed[np.maximum(place, 0)]
        late = (place >= 0) & (again > from_)
        seen = np.where(late, again + allowed, seen)
    silent = np.flatnonzero((seen < until) & (seen <= end))
    gaps = np.empty(len(silent), GAP)
    gaps["link"], gaps["since"], gaps["seen"], gaps["until"] = (
        each[silent] for each in (link, started, seen, until)
    )
    return gaps


def resumptions(started: Integers, limit: float) -> Integers:
    """Return when tests came again after none of any link for so long (ms)."""
    if not np.isfinite(limit):
        return np.empty(0, dtype=np.int64)
    return np.asarray(started[1:][np.diff(started) > limit])
