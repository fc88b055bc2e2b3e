"""What an incident is of, and which subject has another one in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sonar.models import Incident

Scope = Incident.Scope
# A link with a size class: ids of source, destination and class.
Whose = tuple[int, int, int]
SIZE = {scope: place for place, scope in enumerate(Scope.values)}


class Subject(NamedTuple):
    """A link, an endpoint at one end or at both, a site or the grid; ids, None where there is none.

    Fields as in the model.
    """

    scope: str
    source_id: int | None = None
    destination_id: int | None = None
    site_id: int | None = None

    @classmethod
    def of(cls, incident: Incident) -> Subject:
        return cls(incident.scope, incident.source_id, incident.destination_id, incident.site_id)

    @property
    def size(self) -> int:
        return SIZE[self.scope]

    def covers(self, other: Subject, site_of: Mapping[int, int]) -> bool:
        """Say whether the other subject is a part of this one; ``site_of`` is by endpoint."""
        if self.scope == Scope.GRID:
            return other.scope != Scope.GRID
        if self.size <= other.size:
            return False
        ends = {end for end in (other.source_id, other.destination_id) if end}
        if self.scope == Scope.SITE:
            return self.site_id in {site_of.get(end) for end in ends}
        if self.scope == Scope.ENDPOINT:
            return self.source_id in ends
        if other.scope != Scope.LINK:
            return False
        return self.source_id == other.source_id or self.destination_id == other.destination_id


def sites_of(incident: Incident) -> frozenset[int]:
    """Return the ids of the sites that an incident is of; none for the whole grid."""
    if incident.site_id is not None:
        return frozenset({incident.site_id})
    return frozenset(end.site_id for end in (incident.source, incident.destination) if end)
