"""Which endpoints or sites links with a flag have in common. Pure numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Flags, Integers

# An end is the cause where so many of its links have the flag, and this part of them.
FEWEST_LINKS = 3
SHARED = 0.6
# And goes on being so down to this part.
STILL_SHARED = 1 / 3
# The whole grid is where this part of all links has the flag.
MOST_OF_GRID = 1 / 3
STILL_MOST = 1 / 6


@dataclass(frozen=True)
class Place:
    """What of a grid: a link by both places, an endpoint by one of them or by both, a site.

    ``level`` is named as incidents name it; places are None where it has none.
    """

    level: str
    source: int | None = None
    destination: int | None = None
    site: str | None = None

    def links(self, shape: tuple[int, int], sites: Sequence[str]) -> Flags:
        """Return its links, shape (places, places)."""
        flags = np.zeros(shape, dtype=bool)
        if self.level == "grid":
            flags[:] = True
        elif self.level == "site":
            own = np.array([site == self.site for site in sites])
            flags[own], flags[:, own] = True, True
        elif self.level == "link":
            flags[self.source, self.destination] = True
        else:
            if self.source is not None:
                flags[self.source] = True
            if self.destination is not None:
                flags[:, self.destination] = True
        return flags


GRID = Place("grid")


def is_of_grid(flags: Flags, judged: Flags, sites: Sequence[str], part: float) -> bool:
    """Say whether this part of all links is flagged, wherever one looks.

    That is of those without the worst site, and at the middle one of all sources and of all
    destinations: a few bad endpoints are no bad grid.
    """
    flagged = flags & judged
    if flagged.sum() < max(part * judged.sum(), FEWEST_LINKS):
        return False
    number = np.unique(np.array(sites, dtype=str), return_inverse=True)[1]
    others = number != int(np.argmax(by_site(flagged, number)))
    judged = judged & others[:, None] & others
    for axis in (0, 1):
        of = judged.sum(axis=axis)
        shares = (flagged & judged).sum(axis=axis)[of > 0] / of[of > 0]
        if not shares.size or np.median(shares) < part:
            return False
    return True


def by_site(flags: Flags, number: Integers) -> Integers:
    """Count the flagged links from and to each site; ``number`` is that of the site of a place."""
    ends = flags.sum(axis=0) + flags.sum(axis=1)
    return np.asarray(np.bincount(number, ends), dtype=np.int64)


def shared_ends(flags: Flags, judged: Flags, sites: Sequence[str]) -> Iterator[Place]:
    """Yield what flagged links have in common, each explaining most of what is left.

    An endpoint that is named at both ends is one; so are all judged endpoints of a site.
    """
    ends = {"source": set[int](), "destination": set[int]()}
    left, rest = (flags & judged).copy(), judged.copy()
    while (best := worst_end(left, rest)) is not None:
        end, place = best
        ends[end].add(place)
        for array in (left, rest):
            array[place if end == "source" else (slice(None), place)] = False
    yield from places_of(ends["source"], ends["destination"], judged, sites)


def worst_end(flags: Flags, judged: Flags) -> tuple[str, int] | None:
    """Return the end with most flagged links, of those whose links are flagged for the most part.

    None if no end has enough of them, as where there are no places at all.
    """
    if not flags.size:
        return None
    best: tuple[int, str, int] | None = None
    for end, axis in (("source", 1), ("destination", 0)):
        count, of = flags.sum(axis=axis), judged.sum(axis=axis)
        counts = np.where((count >= FEWEST_LINKS) & (count >= SHARED * of), count, 0)
        place = int(counts.argmax())
        if counts[place] and (best is None or counts[place] > best[0]):
            best = int(counts[place]), end, place
    return best and best[1:]


def places_of(
    sources: set[int], destinations: set[int], judged: Flags, sites: Sequence[str]
) -> Iterator[Place]:
    """Yield sites, endpoints at both ends, and those at one, of the places named at each end."""
    for site in sorted({sites[place] for place in sources | destinations}):
        own = [place for place, name in enumerate(sites) if name == site]
        tested = [at for at in own if judged[at].any() or judged[:, at].any()]
        if len(tested) > 1 and all(at in sources | destinations for at in tested):
            yield Place("site", site=site)
            sources, destinations = sources - set(own), destinations - set(own)
    for place in sorted(sources & destinations):
        yield Place("endpoint", place, place)
    for place in sorted(sources - destinations):
        yield Place("source", source=place)
    for place in sorted(destinations - sources):
        yield Place("destination", destination=place)
