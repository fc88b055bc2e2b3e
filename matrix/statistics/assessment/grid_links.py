"""GridLinks, subjects and tests, as the judge takes them. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers, Stretches, places_in

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
# Tests are looked up by their links where there are so many, and one link in so many is looked for.
MANY_TESTS, FEW_LINKS = 20_000, 20
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
class GridLinks:
    """``source`` and ``destination`` of each link are places of endpoints; ``site`` has the number
    of the site of each endpoint."""

    source: Integers
    destination: Integers
    site: Integers

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def ends(self) -> Integers:
        """The endpoints that have links."""
        return np.asarray(np.union1d(self.source, self.destination))

    @cached_property
    def by_end(self) -> dict[str, ByGroup]:
        ends = len(self.site)
        return {kind: ByGroup.of(self.group(kind), ends) for kind in (SOURCE, DESTINATION)}

    @cached_property
    def by_subject(self) -> dict[Subject, Integers]:
        """The links of the subjects that were looked up."""
        return {}

    def places(self, subject: Subject) -> Integers:
        """Return the links of a subject, in order."""
        if subject not in self.by_subject:
            self.by_subject[subject] = self.looked_up(subject)
        return self.by_subject[subject]

    def looked_up(self, subject: Subject) -> Integers:
        if subject.scope == GRID:
            return np.arange(len(self))
        if subject.scope == SITE:
            sources = destinations = np.flatnonzero(self.site == subject.site).tolist()
        else:
            sources, destinations = (
                [] if end is None else [end] for end in (subject.source, subject.destination)
            )
        at_source = self.by_end[SOURCE].of_groups(sources)
        if subject.scope == LINK:
            return np.asarray(at_source[self.destination[at_source] == subject.destination])
        at_destination = self.by_end[DESTINATION].of_groups(destinations)
        return np.asarray(np.union1d(at_source, at_destination))

    def of(self, subject: Subject) -> Flags:
        """Say which links a subject has."""
        flags = np.zeros(len(self), dtype=bool)
        flags[self.places(subject)] = True
        return flags

    def covered(self, subject: Subject, link: Integers) -> Flags:
        """Say which of these links a subject has."""
        if len(link) >= len(self):
            return self.of(subject)[link]
        return np.asarray(places_in(self.places(subject), link) >= 0)

    def group(self, kind: str) -> Integers:
        """Return what each link counts for: itself, its source or its destination."""
        if kind == LINK:
            return np.arange(len(self))
        return self.source if kind == SOURCE else self.destination


@dataclass(frozen=True)
class ByGroup:
    """Places of things by the group that each is of: ``order`` is by group, and ``stretches`` has
    where each group is there."""

    order: Integers
    stretches: Stretches

    @classmethod
    def of(cls, group: Integers, groups: int) -> Self:
        counts = np.bincount(group, minlength=groups)
        order = np.argsort(group, kind="stable")
        return cls(order, Stretches(np.cumsum(counts) - counts, counts))

    def of_groups(self, chosen: Sequence[int] | Integers) -> Integers:
        """Return the places of these groups in order."""
        groups = np.asarray(chosen, dtype=np.int64)
        return np.sort(self.order[self.stretches.taken(groups).places()])


@dataclass(frozen=True)
class JudgedTests:
    """Tests of one size class in the order in which they started (Unix ms).

    ``link`` is a place among GridLinks, ``log_rate`` the natural log of bytes/s, NaN of a failed
    test; ``blamed`` says which end the error of a failed test names.
    """

    link: Integers
    started: Integers
    log_rate: Floats
    blamed: Integers

    def __len__(self) -> int:
        return len(self.link)

    @property
    def columns(self) -> tuple[Any, Any, Any, Any]:
        return self.link, self.started, self.log_rate, self.blamed

    @cached_property
    def by_link(self) -> ByGroup:
        return ByGroup.of(self.link, 0)

    @property
    def ok(self) -> Flags:
        return np.isfinite(self.log_rate)

    def taken(self, choice: slice | Integers | Flags) -> JudgedTests:
        return JudgedTests(*(each[choice] for each in self.columns))

    def within(self, start: int, end: int) -> JudgedTests:
        """Return those that started from one moment (Unix ms) until another."""
        return self.taken(slice(*self.started.searchsorted([start, end]).tolist()))

    def of_links(self, chosen: Flags) -> JudgedTests:
        if len(self) < MANY_TESTS or np.count_nonzero(chosen) * FEW_LINKS > len(chosen):
            return self.taken(chosen[self.link])
        # Of few links among many tests, by an index that is made with the first of them.
        links = np.flatnonzero(chosen)
        most = len(self.by_link.stretches.counts)
        return self.taken(self.by_link.of_groups(links[links < most]))

    def followed_by(self, later: JudgedTests) -> JudgedTests:
        pairs = zip(self.columns, later.columns, strict=True)
        return JudgedTests(*(np.concatenate(pair) for pair in pairs))
