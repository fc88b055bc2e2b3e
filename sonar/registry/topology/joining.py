"""What meshes of every endpoint gain by endpoints that come into use: links, tests and bytes."""

from __future__ import annotations

from collections.abc import Iterable

from sonar.models import Endpoint, Mesh
from sonar.notation.addresses import scheme_of
from sonar.registry.topology.changes import Changes, MeshCost

DAY_SECONDS = 86_400


def costs(changes: Changes) -> list[MeshCost]:
    """Return what each mesh of all endpoints would gain by those that are new or wait.

    Four SQL queries, none where there are none.
    """
    coming = {
        change.row.name: change.row.base_url
        for change in changes.endpoints
        if isinstance(change.row, Endpoint) and _comes(change.is_new, change.values)
    }
    in_use = Endpoint.objects.filter(retired_at=None).values_list("name", "base_url")
    waiting = Endpoint.objects.filter(name__in=changes.waiting).values_list("name", "base_url")
    coming |= dict(waiting) if changes.waiting else {}
    if not coming:
        return []
    before = {name: url for name, url in in_use if name not in coming}
    meshes = Mesh.objects.filter(enabled=True).prefetch_related(
        "sources", "destinations", "intervals__size_class"
    )
    gains = (_cost(mesh, before, coming) for mesh in meshes)
    return [cost for cost in gains if cost.links and cost.tests_a_day]


def _comes(is_new: bool, values: dict[str, object]) -> bool:
    return is_new or values.get("retired") is False


def _cost(mesh: Mesh, before: dict[str, str], coming: dict[str, str]) -> MeshCost:
    schemes = mesh.mover_description.schemes_in(mesh.mode)

    def links(endpoints: dict[str, str]) -> int:
        fitting = {name for name, url in endpoints.items() if scheme_of(url) in schemes}
        sources, destinations = (
            _members(getattr(mesh, end).all(), fitting) for end in ("sources", "destinations")
        )
        return len(sources) * len(destinations) - len(sources & destinations)

    gained = links(before | coming) - links(before)
    often = [(DAY_SECONDS / row.every_seconds, row.size_class) for row in mesh.intervals.all()]
    return MeshCost(
        mesh.name,
        gained,
        gained * sum(times for times, _ in often),
        gained * sum(times * size.test_bytes for times, size in often),
    )


def _members(named: Iterable[Endpoint], fitting: set[str]) -> set[str]:
    """Return those of one end of a mesh: the named ones, or every endpoint where none is."""
    names = {endpoint.name for endpoint in named}
    return names & fitting if names else fitting
