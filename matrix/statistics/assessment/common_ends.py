"""Which endpoints, sites or grid the links with a flag have in common. Pure numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from matrix.statistics.arrays import Flags, Integers
from matrix.statistics.assessment.grid_links import (
    DESTINATION,
    ENDPOINT,
    GRID,
    SITE,
    SOURCE,
    GridLinks,
    Subject,
)

# An end is the cause where this part of its links has the flag, of so many at least. So many errors
# that name it, in either direction, stand for as many links.
SHARED, FEWEST_LINKS, FEWEST_VOTES = 0.6, 3, 2
# The whole grid is where this part of all links has the flag, wherever one looks; one has to look
# at some of them.
MOST_OF_GRID, FEWEST_SITES, FEWEST_LOOKED_AT = 1 / 3, 4, 12


def common_ends(
    links: GridLinks,
    flagged: Flags,
    looked_at: Flags,
    votes: dict[str, Integers] | None = None,
    named_before: Iterable[Subject] = (),
    *,
    repeated: Flags | None = None,
) -> Iterator[Subject]:
    """Yield what flagged links have in common, of those that were looked at.

    ``votes`` count by endpoint, as a source and as a destination, the errors that name it. Of an
    endpoint that is ``named_before`` in one direction, few flags show that the other is concerned:
    with an error that names it there, or ``repeated`` ones of all its links, without any error.
    """
    ends = len(links.site)
    votes = votes or {SOURCE: np.zeros(ends, np.int64), DESTINATION: np.zeros(ends, np.int64)}
    flagged = flagged & looked_at
    most_votes = max(int(each.max(initial=0)) for each in votes.values())
    if 2 * most_votes < flagged.sum() and is_of_grid(links, flagged, looked_at):
        yield Subject(GRID)
        return
    named = {SOURCE: set[int](), DESTINATION: set[int]()}
    left, rest = flagged.copy(), looked_at.copy()
    while (best := worst_end(links, left, rest, votes)) is not None:
        kind, end = best
        named[kind].add(end)
        own = links.group(kind) == end
        left &= ~own
        rest &= ~own
    for kind, other in ((SOURCE, DESTINATION), (DESTINATION, SOURCE)):
        one_way = named[other] | {
            getattr(subject, other) for subject in named_before if subject.scope == other
        }
        for end in one_way - named[kind]:
            own = links.group(kind) == end
            count, of = int((own & flagged).sum()), int((own & looked_at).sum())
            is_repeated = repeated is not None and repeated[own].all()
            enough = votes[kind][end] or is_repeated or count >= FEWEST_LINKS
            if count and count >= SHARED * of and enough:
                named[kind].add(end)
                named[other].add(end)
    yield from subjects_of(links, named)


def worst_end(
    links: GridLinks, flagged: Flags, looked_at: Flags, votes: dict[str, Integers]
) -> tuple[str, int] | None:
    """Return the end with most flagged links, of those of which most links are flagged."""
    best: tuple[float, str, int] | None = None
    ends = len(links.site)
    is_blamed = votes[SOURCE] + votes[DESTINATION] >= FEWEST_VOTES
    for kind in (SOURCE, DESTINATION):
        place = links.group(kind)
        count = np.bincount(place[flagged], minlength=ends)
        of = np.bincount(place[looked_at], minlength=ends)
        enough = (count >= FEWEST_LINKS) | (is_blamed & (votes[kind] > 0) & (count > 0))
        # Of two with as many links, errors tell which.
        score = np.where(
            enough & (count >= SHARED * of), count + np.minimum(votes[kind], 9) / 10, 0.0
        )
        end = int(score.argmax())
        if score[end] > 0 and (best is None or score[end] > best[0]):
            best = float(score[end]), kind, end
    return best and best[1:]


def subjects_of(links: GridLinks, named: dict[str, set[int]]) -> Iterator[Subject]:
    """Yield sites whose endpoints are all named, endpoints named in both directions, and others."""
    either = named[SOURCE] | named[DESTINATION]
    used = np.zeros(len(links.site), dtype=bool)
    used[links.ends] = True
    for site in sorted({int(links.site[end]) for end in either}):
        own = set(np.flatnonzero((links.site == site) & used).tolist())
        if len(own) > 1 and own <= either:
            yield Subject(SITE, site=site)
            either -= own
    for end in sorted(either):
        if end in named[SOURCE] and end in named[DESTINATION]:
            yield Subject(ENDPOINT, end, end)
        elif end in named[SOURCE]:
            yield Subject(SOURCE, source=end)
        else:
            yield Subject(DESTINATION, destination=end)


def is_of_grid(links: GridLinks, flagged: Flags, looked_at: Flags) -> bool:
    """Say whether most of the grid is flagged, wherever one looks.

    That is of the links without the worst site, and at the middle one of all sources and of all
    destinations: a few bad endpoints are no bad grid.
    """
    sites = len(np.unique(links.site))
    if sites < FEWEST_SITES or looked_at.sum() < min(FEWEST_LOOKED_AT, len(links) / 2):
        return False
    if flagged.sum() < max(MOST_OF_GRID * looked_at.sum(), FEWEST_LINKS):
        return False
    at_source, at_destination = links.site[links.source], links.site[links.destination]
    count = np.bincount(at_source[flagged], minlength=links.site.max() + 1)
    count += np.bincount(at_destination[flagged], minlength=links.site.max() + 1)
    worst = int(count.argmax())
    others = looked_at & (at_source != worst) & (at_destination != worst)
    for place in (links.source, links.destination):
        of = np.bincount(place[others], minlength=len(links.site))
        share = np.bincount(place[others & flagged], minlength=len(links.site))[of > 0] / of[of > 0]
        if not share.size or np.median(share) < MOST_OF_GRID:
            return False
    return True
