"""What an incident is of, and which subject has another one in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sonar.models import Incident

Level = Incident.Level
# A link with a size class: ids of source, destination and class.
Whose = tuple[int, int, int]
SIZE = {level: place for place, level in enumerate(Level.values)}


class Subject(NamedTuple):
    """A link, an endpoint at one end or at both, a site or the grid; ids, None where there is none.

    Fields as in the model.
    """

    level: str
    source_id: int | None = None
    destination_id: int | None = None
    site_id: int | None = None

    @classmethod
    def of(cls, incident: Incident) -> Subject:
        return cls(incident.level, incident.source_id, incident.destination_id, incident.site_id)

    @property
    def size(self) -> int:
        return SIZE[self.level]

    def covers(self, other: Subject, site_of: Mapping[int, int]) -> bool:
        """Say whether the other subject is a part of this one; ``site_of`` is by endpoint."""
        if self.level == Level.GRID:
            return other.level != Level.GRID
        if self.size <= other.size:
            return False
        ends = {end for end in (other.source_id, other.destination_id) if end}
        if self.level == Level.SITE:
            return self.site_id in {site_of.get(end) for end in ends}
        if self.level == Level.ENDPOINT:
            return self.source_id in ends
        if other.level != Level.LINK:
            return False
        return self.source_id == other.source_id or self.destination_id == other.destination_id


def sites_of(incident: Incident) -> frozenset[int]:
    """Return the ids of the sites that an incident is of; none for the whole grid."""
    if incident.site_id is not None:
        return frozenset({incident.site_id})
    return frozenset(end.site_id for end in (incident.source, incident.destination) if end)
