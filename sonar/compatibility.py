"""Movers and endpoints that fit each other: a mover moves files between base URLs of its schemes.

A mesh that names its endpoints is kept only if it fits them all, and a base URL only if it fits
the meshes that name its endpoint. A mesh of every endpoint means those that it fits; the planner
leaves out the others (scheduler.following).
"""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

from sonar import movers
from sonar.models import Endpoint, Mesh
from sonar.models.mesh import fitting

ENDS = ("sources", "destinations")
# Of many meshes that a base URL does not fit, as many are named.
MOST_NAMED = 5


def scheme_of(base_url: str) -> str:
    return base_url.partition("://")[0]


def mesh_problem(name: str, mover: str, ends: Collection[Collection[Endpoint]]) -> str:
    """Say why a mesh with this mover cannot test these sources and destinations; empty if it can.

    ``ends`` has the endpoints that it names, none where it means every endpoint. Retired ones are
    not tested, and so not judged. Raises ValueError for a mover that there is not.
    """
    named = {one.name: one.base_url for end in ends for one in end if one.retired_at is None}
    if sentence := fitting(mover, named):
        return f"The mesh {name} cannot be kept so. {sentence}"
    if not all(ends):
        return _nothing_fits(name, mover)
    return ""


def _nothing_fits(name: str, mover: str) -> str:
    schemes = movers.get(mover).schemes
    in_use = Endpoint.objects.filter(retired_at=None).values_list("base_url", flat=True)
    there_are = {scheme_of(base_url) for base_url in in_use}
    if not there_are or there_are & schemes:
        return ""
    moved, others = ", ".join(sorted(schemes)), ", ".join(sorted(there_are))
    return (
        f"The mesh {name} would test nothing: the mover {mover} moves files by {moved}, and the "
        f"endpoints in use have {others}."
    )


def kept_mesh_problem(mesh: Mesh) -> str:
    """Say the same of a mesh whose endpoints are written already. Two SQL queries."""
    return mesh_problem(mesh.name, mesh.mover, [list(getattr(mesh, end).all()) for end in ENDS])


def is_moved(endpoint: Endpoint) -> bool:
    """Say whether keeping this endpoint as it is now would change what fits it. One SQL query."""
    before = Endpoint.objects.filter(pk=endpoint.pk).first()
    if before is None or endpoint.retired_at is not None:
        return False
    same = scheme_of(before.base_url) == scheme_of(endpoint.base_url)
    return before.retired_at is not None or not same


def endpoint_problem(endpoint: Endpoint) -> str:
    """Say which meshes name this endpoint and do not fit it; empty if none. One SQL query."""
    naming = Mesh.objects.filter(Q(sources=endpoint) | Q(destinations=endpoint)).distinct()
    misfits = [
        f"{mesh.name} ({mesh.mover})"
        for mesh in naming
        if fitting(mesh.mover, {endpoint.name: endpoint.base_url})
    ]
    if not misfits:
        return ""
    named, more = ", ".join(misfits[:MOST_NAMED]), len(misfits) - MOST_NAMED
    others = f" and {more} more" if more > 0 else ""
    return (
        f"{endpoint.name} cannot have a base URL of {scheme_of(endpoint.base_url)}: it is named by "
        f"meshes whose mover does not move such files, {named}{others}. Take it out of them first."
    )
