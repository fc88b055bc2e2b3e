"""The endpoints of a matrix, the links between them, and the rows and columns they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrix.filters import LINK_FILTERS, Filter, alternatives
from matrix.statistics import Flags, Integers

ATTRIBUTES = ("site", "cloud", "tier", "country", "label")


@dataclass(frozen=True)
class Place:
    """An endpoint as the matrix sees it."""

    id: int
    name: str
    site: str
    cloud: str
    tier: int
    country: str
    label: str
    simulated: bool
    retired: bool

    def has(self, attribute: str, value: str) -> bool:
        return str(self.name if attribute == "endpoint" else getattr(self, attribute)) == value

    def group_name(self, grouping: str) -> str:
        """Return the name of the row or column that it belongs to."""
        if grouping == "endpoint":
            return self.name
        if grouping == "tier":
            return f"Tier {self.tier}"
        return getattr(self, grouping) or f"no {grouping}"


@dataclass(frozen=True)
class Group:
    """A row or column: one endpoint, or those of a site, cloud, tier or country.

    An attribute that its endpoints do not share is None.
    """

    name: str
    site: str | None
    cloud: str | None
    tier: int | None
    country: str | None
    label: str | None
    simulated: bool

    @classmethod
    def of(cls, name: str, members: Sequence[Place]) -> Group:
        shared = {
            attribute: next(iter(values)) if len(values) == 1 else None
            for attribute in ATTRIBUTES
            for values in [{getattr(place, attribute) for place in members}]
        }
        return cls(name, simulated=any(place.simulated for place in members), **shared)


@dataclass(frozen=True)
class Axis:
    """The rows or the columns. ``of`` gives the group of each place, 0 for those not shown."""

    groups: tuple[Group, ...]
    of: Integers

    @classmethod
    def along(cls, places: Sequence[Place], shown: Flags, grouping: str) -> Axis:
        """Group the shown places, in the order of the groups' names."""
        members: dict[str, list[Place]] = {}
        for place in np.array(places, dtype=object)[shown]:
            members.setdefault(place.group_name(grouping), []).append(place)
        names = sorted(members, key=str.casefold)
        index = {name: number for number, name in enumerate(names)}
        of = [index.get(place.group_name(grouping), 0) for place in places]
        groups = tuple(Group.of(name, members[name]) for name in names)
        return cls(groups, np.array(of, dtype=np.int64))


@dataclass(frozen=True)
class Links:
    """All ordered pairs of places, numbered ``source * len(places) + destination``.

    Places are in the order of their ids.
    """

    places: tuple[Place, ...]

    def numbers(self, rows: NDArray[np.void]) -> Integers:
        """Return the links of records that carry source_id and destination_id."""
        ids = np.array([place.id for place in self.places], dtype=np.int64)
        source = np.searchsorted(ids, rows["source_id"])
        return source * len(ids) + np.searchsorted(ids, rows["destination_id"])

    def touching(self, links: Flags) -> Flags:
        """Return the places that are an end of at least one of these links."""
        return self.sources(links) | self.destinations(links)

    def sources(self, links: Flags) -> Flags:
        """Return the places that at least one of these links starts from."""
        size = len(self.places)
        return np.bincount(np.flatnonzero(links) // max(size, 1), minlength=size) > 0

    def destinations(self, links: Flags) -> Flags:
        """Return the places that at least one of these links goes to."""
        size = len(self.places)
        return np.bincount(np.flatnonzero(links) % max(size, 1), minlength=size) > 0

    def ends(self, flags: Iterable[bool], end: str = "") -> Flags:
        """Return the links whose source, destination, or (for no end) one of both is flagged."""
        size = len(self.places)
        flagged = np.fromiter(flags, dtype=bool, count=size)
        sources: Flags = np.repeat(flagged, size)
        destinations: Flags = np.tile(flagged, size)
        if end == "source":
            return sources
        return destinations if end == "destination" else sources | destinations

    def matching(self, filters: Iterable[Filter]) -> Flags:
        """Return the links that pass the filters on their ends; none is from a place to itself."""
        matching = ~np.eye(len(self.places), dtype=bool).ravel()
        for some in alternatives(one for one in filters if one.parameter in LINK_FILTERS):
            hits = (
                any(place.has(one.attribute, one.value) for one in some) for place in self.places
            )
            flags = self.ends(hits, some[0].end)
            matching &= ~flags if some[0].exclude else flags
        return matching
