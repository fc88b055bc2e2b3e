"""What an evaluation of the newest tests found, as it is handed to the door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sonar.alerting.subjects import Subject
from sonar.models import Incident

# How bad a condition is, by its name.
RANK = {condition: place for place, condition in enumerate(Incident.Condition.values)}
# A link with a size class: ids of source, destination and class.
Whose = tuple[int, int, int]
WHOSE = ("source_id", "destination_id", "size_class_id")


def columns_of(whose: Whose) -> dict[str, int]:
    return dict(zip(WHOSE, whose, strict=True))


@dataclass(frozen=True)
class FoundLink:
    """A link of a cause, since when it is not as expected, and rates (bytes/s) of a slow one."""

    whose: Whose
    condition: str
    since: datetime
    expected: float | None = None
    rate: float | None = None


@dataclass(frozen=True)
class FoundCause:
    """A cause, with the links that it explains; fields as in the model of incidents."""

    subject: Subject
    condition: str
    began_at: datetime
    links: int
    of_links: int
    sizes: tuple[str, ...]
    factor: float | None = None
    low: float | None = None
    high: float | None = None
    members: Sequence[FoundLink] = ()

    @property
    def figures(self) -> dict[str, object]:
        names = ("condition", "links", "of_links", "factor", "low", "high")
        return {name: getattr(self, name) for name in names} | {"sizes": list(self.sizes)}


@dataclass(frozen=True)
class Evaluation:
    """What one evaluation says: the causes found, and how open incidents stand.

    ``standing`` has by the id of an open incident what is left of it; one that is not there is
    well again. ``site_of`` has the site of each endpoint.
    """

    at: datetime
    causes: Sequence[FoundCause]
    standing: Mapping[int, FoundCause] = field(default_factory=dict)
    site_of: Mapping[int, int] = field(default_factory=dict)
