"""The endpoints that a mesh tests now: all, those that it names, or those that fit its filter.

Of these its mover moves the files of some (sonar.scheduler.sync leaves out the others).
"""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import QuerySet

from sonar.models import Endpoint, Mesh
from sonar.models.member_filters import ENDS
from sonar.notation.addresses import scheme_of
from sonar.notation.endpoint_attributes import ENDPOINT_ATTRIBUTES, texts_of
from sonar.notation.endpoint_filters import EndpointFilter, fits

COLUMNS = {path for attribute in ENDPOINT_ATTRIBUTES for path in attribute.columns}
# The ids of the endpoints that fit, by mesh and end, for each end that has a filter.
ByFilter = Mapping[tuple[int, str], Set[int]]


@dataclass(frozen=True)
class EndpointInUse:
    """An endpoint in use; ``texts`` are its values by attribute, as filters have."""

    id: int
    scheme: str
    texts: Mapping[str, tuple[str, ...]]
    enabled: bool = True


InUse = TypeVar("InUse", bound=EndpointInUse)


def read_endpoints(rows: QuerySet[Endpoint] | None = None) -> list[EndpointInUse]:
    """Read those in use, or these rows. One SQL query."""
    read = Endpoint.objects.in_use() if rows is None else rows
    return [
        EndpointInUse(
            row["id"],
            scheme_of(row["base_url"]),
            {
                attribute.name: texts_of(attribute.value([row[path] for path in attribute.columns]))
                for attribute in ENDPOINT_ATTRIBUTES
            },
            row["enabled"],
        )
        for row in read.order_by("id").values("id", "base_url", "enabled", *COLUMNS)
    ]


def fitting(chosen: EndpointFilter, endpoints: Iterable[InUse]) -> list[InUse]:
    return [end for end in endpoints if fits(chosen, end.texts.__getitem__)]


def by_filter(meshes: Collection[Mesh]) -> ByFilter:
    """Find what fits the filters of these meshes. One SQL query, none if no mesh has any."""
    filters = {
        (mesh.id, end): chosen for mesh in meshes for end in ENDS if (chosen := mesh.filter_of(end))
    }
    endpoints = read_endpoints() if filters else []
    return {
        place: {end.id for end in fitting(chosen, endpoints)} for place, chosen in filters.items()
    }


def at_end(mesh: Mesh, end: str, endpoints: Collection[EndpointInUse]) -> list[EndpointInUse]:
    """Return those of the endpoints in use that a mesh means by its `sources`, say.

    No SQL query if the endpoints that it names are read already.
    """
    if chosen := mesh.filter_of(end):
        return fitting(chosen, endpoints)
    named = {endpoint.pk for endpoint in getattr(mesh, end).all()}
    return [each for each in endpoints if each.id in named] if named else [*endpoints]
