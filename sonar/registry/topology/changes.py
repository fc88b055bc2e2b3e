"""What applying a topology would do, as values: for terminals, pages and the database alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sonar.models import Alias, Endpoint, Site
from sonar.models.topology import SourcedValues

BY_HAND = "hand"


@dataclass(frozen=True)
class Kept:
    """A value that stays: people, or another source (``owner``), have set it."""

    name: str
    field: str
    here: Any
    there: Any
    owner: str


@dataclass
class Change:
    """A row to add or to change: ``values`` by field as they become, ``before`` as they were.

    ``returns`` says that an endpoint is in use again, as it was until the source switched it off.
    """

    row: Site | Endpoint
    is_new: bool
    returns: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MeshCost:
    """What a mesh gains if new endpoints are taken into use; its tests and bytes a day."""

    mesh: str
    links: int
    tests_a_day: float
    bytes_a_day: float


@dataclass
class Changes:
    """Everything that there is to say of a topology, compared with the registry of now.

    ``waiting`` are endpoints that are registered but not in use until somebody wants them to be,
    ``gone`` those that the source said once and does not say any more. ``dropped_aliases`` are
    names that the source has given to something that is not registered.
    """

    source: str
    sites: list[Change] = field(default_factory=list)
    endpoints: list[Change] = field(default_factory=list)
    aliases: list[Alias] = field(default_factory=list)
    dropped_aliases: list[Alias] = field(default_factory=list)
    said: list[SourcedValues] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    waiting: list[Endpoint] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unknown_sites: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    costs: list[MeshCost] = field(default_factory=list)
    # Whether what waits is taken into use, and what is gone retired.
    joins: bool = False
    retires: bool = False

    def __bool__(self) -> bool:
        return bool(self.sites or self.endpoints or self.aliases or self.dropped_aliases)

    @property
    def idle(self) -> list[str]:
        """Return the endpoints that would be registered, and not in use until somebody joins."""
        new = [row for row in self.endpoints if row.is_new and row.values.get("retired")]
        return [row.name for row in (*(change.row for change in new), *self.waiting)]

    @property
    def moved(self) -> list[Change]:
        """Those whose base URL becomes another one, which is where tests write."""
        changes = self.endpoints
        return [row for row in changes if not row.is_new and "base_url" in row.values]
