"""Links, subjects and tests, as the judge takes them. Pure numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers

DAY_MS = 86_400_000
# Later than any moment, in Unix ms.
NEVER = 1 << 62
LINK, SOURCE, DESTINATION, ENDPOINT, SITE, GRID = SCOPES = (
    "link",
    "source",
    "destination",
    "endpoint",
    "site",
    "grid",
)
# How much a subject of each scope takes in.
SIZES = {LINK: 0, SOURCE: 1, DESTINATION: 1, ENDPOINT: 2, SITE: 3, GRID: 4}
# Which end the error of a failed test names.
NOBODY, BLAMES_SOURCE, BLAMES_DESTINATION = range(3)


class Subject(NamedTuple):
    """What a condition is of, by places of endpoints and the number of a site.

    An endpoint in both directions has its place as source and as destination.
    """

    scope: str
    source: int | None = None
    destination: int | None = None
    site: int | None = None


@dataclass(frozen=True)
class Links:
    """``source`` and ``destination`` of each link are places of endpoints; ``site`` has the number
    of the site of each endpoint."""

    source: Integers
    destination: Integers
    site: Integers

    def __len__(self) -> int:
        return len(self.source)

    def of(self, subject: Subject) -> Flags:
        """Say which links a subject has."""
        if subject.scope == GRID:
            return np.ones(len(self), dtype=bool)
        if subject.scope == SITE:
            own = self.site == subject.site
            return np.asarray(own[self.source] | own[self.destination])
        at_source = self.source == subject.source
        at_destination = self.destination == subject.destination
        if subject.scope == LINK:
            return np.asarray(at_source & at_destination)
        return np.asarray(at_source | at_destination)

    def group(self, kind: str) -> Integers:
        """Return what each link counts for: itself, its source or its destination."""
        if kind == LINK:
            return np.arange(len(self))
        return self.source if kind == SOURCE else self.destination


@dataclass(frozen=True)
class Results:
    """Results of tests of one size class in the order in which they started (Unix ms).

    ``link`` is a place among Links, ``log_rate`` the natural log of bytes/s, NaN of a failed test;
    ``blamed`` says which end the error of a failed test names.
    """

    link: Integers
    started: Integers
    log_rate: Floats
    blamed: Integers

    def __len__(self) -> int:
        return len(self.link)

    @property
    def ok(self) -> Flags:
        return np.isfinite(self.log_rate)

    def taken(self, choice: slice | Integers | Flags) -> Results:
        return Results(*(each[choice] for each in vars(self).values()))

    def within(self, start: int, end: int) -> Results:
        """Return those that started from one moment (Unix ms) until another."""
        return self.taken(slice(*self.started.searchsorted([start, end]).tolist()))

    def of_links(self, chosen: Flags) -> Results:
        return self.taken(chosen[self.link])

    def followed_by(self, later: Results) -> Results:
        pairs = zip(vars(self).values(), vars(later).values(), strict=True)
        return Results(*(np.concatenate(pair) for pair in pairs))
