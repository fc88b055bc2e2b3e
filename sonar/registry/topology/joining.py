"""What meshes that name no endpoints gain by those that come into use: links, tests and bytes."""

from __future__ import annotations

from functools import reduce

from sonar.models import Endpoint, Mesh
from sonar.notation.addresses import scheme_of
from sonar.notation.endpoint_attributes import ENDPOINT_ATTRIBUTES, texts_of
from sonar.registry import mesh_size
from sonar.registry.mesh_members import EndpointInUse, read_endpoints
from sonar.registry.mesh_size import MeshSize
from sonar.registry.topology.changes import Change, Changes, MeshCost


def costs(changes: Changes) -> list[MeshCost]:
    """Return what each enabled mesh would gain by endpoints that are new or wait.

    Four SQL queries, none where there are no such endpoints.
    """
    coming = _coming(changes)
    if not coming:
        return []
    names = {endpoint.id for endpoint in coming}
    before = [endpoint for endpoint in read_endpoints() if endpoint.id not in names]
    meshes = Mesh.objects.filter(enabled=True).prefetch_related(*mesh_size.READ_FIRST)
    gains = (
        _gain(mesh, mesh_size.size_of(mesh, before), mesh_size.size_of(mesh, [*before, *coming]))
        for mesh in meshes
    )
    return [gain for gain in gains if gain.links and gain.tests_a_day]


def _coming(changes: Changes) -> list[EndpointInUse]:
    """Return those that would come into use; new ones have ids below 0 here."""
    rows = [
        change.row
        for change in changes.endpoints
        if isinstance(change.row, Endpoint) and _comes(change)
    ]
    coming = {row.pk for row in rows}
    rows += [row for row in changes.waiting if row.pk not in coming]
    return [_as_in_use(row, row.pk or -number) for number, row in enumerate(rows, start=1)]


def _comes(change: Change) -> bool:
    """Say whether meshes gain this endpoint; one that returns was counted before."""
    return change.is_new or (change.values.get("retired") is False and not change.returns)


def _as_in_use(row: Endpoint, number: int) -> EndpointInUse:
    texts = {
        attribute.name: texts_of(attribute.value([_at(row, path) for path in attribute.columns]))
        for attribute in ENDPOINT_ATTRIBUTES
    }
    return EndpointInUse(number, scheme_of(row.base_url), texts)


def _at(row: Endpoint, path: str) -> object:
    return reduce(getattr, path.split("__"), row)


def _gain(mesh: Mesh, before: MeshSize, after: MeshSize) -> MeshCost:
    return MeshCost(
        mesh.name,
        after.links - before.links,
        after.asked_per_day - before.asked_per_day,
        after.asked_bytes_per_day - before.asked_bytes_per_day,
    )
