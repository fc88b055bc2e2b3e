"""What of the registry fits each other: movers and endpoints, credentials and their endpoints.

A mover moves files between base URLs of its schemes. A mesh that names its endpoints is kept only
if it fits them all, and a base URL only if it fits the meshes that name its endpoint. A mesh of
every endpoint means those that it fits; the planner leaves out the others (scheduler.sync).
"""

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Protocol

from django.db.models import Q

from sonar.credentials import rules
from sonar.credentials.rules import names
from sonar.models import Credential, Endpoint, Mesh
from sonar.models.member_filters import ENDS
from sonar.movers.catalogue import MoverDescription, describe
from sonar.notation.addresses import scheme_of


class SizeRange(Protocol):
    name: str
    from_bytes: int
    test_bytes: int


def size_class_problems(classes: Iterable[SizeRange]) -> list[str]:
    """Say in sentences what keeps these ranges from tiling [0, infinity) with their tests."""
    ordered = sorted(classes, key=lambda size_class: size_class.from_bytes)
    if not ordered:
        return ["there must be at least one size class"]
    sentences = []
    if ordered[0].from_bytes != 0:
        sentences.append(f"the first size class, {ordered[0].name}, must start at 0 bytes")
    for lower, upper in zip(ordered, [*ordered[1:], None], strict=True):
        end = upper.from_bytes if upper else None
        if end == lower.from_bytes and upper:
            sentences.append(f"{lower.name} and {upper.name} start at the same size, {end} bytes")
        elif lower.test_bytes < lower.from_bytes or (end is not None and lower.test_bytes >= end):
            sentences.append(
                f"the test size of {lower.name}, {lower.test_bytes} bytes, must be in its "
                f"range [{lower.from_bytes}, {'infinity' if end is None else end})"
            )
    return sentences


# Of many meshes or endpoints that something does not fit, as many are named.
MOST_NAMED = 5


def mesh_problem(name: str, mover: str, mode: str, ends: Collection[Collection[Endpoint]]) -> str:
    """Say why a mesh cannot test these sources and destinations; empty if it can.

    ``ends`` has the endpoints that it names, none where it means every endpoint. Retired ones are
    not tested, and so not judged. Raises ValueError for a mover that there is not.
    """
    named = {
        endpoint.name: endpoint.base_url
        for end in ends
        for endpoint in end
        if endpoint.retired_at is None
    }
    description = describe(mover)
    if sentence := description.scheme_mismatch(mode, named):
        return f"The mesh {name} cannot be saved. {sentence}"
    if not all(ends):
        return _nothing_fits(name, description, mode)
    return ""


def _nothing_fits(name: str, mover: MoverDescription, mode: str) -> str:
    in_use = Endpoint.objects.in_use()
    fits = (Q(base_url__startswith=f"{scheme}://") for scheme in mover.schemes_in(mode))
    if not in_use.exists() or in_use.filter(reduce(or_, fits)).exists():
        return ""
    urls = in_use.values_list("base_url", flat=True)
    others = ", ".join(sorted({scheme_of(base_url) for base_url in urls}))
    return (
        f"The mesh {name} would test nothing. The transfer tool {mover.name} "
        f"{mover.what_it_moves(mode)}, but the endpoints in use have {others}."
    )


def kept_mesh_problem(mesh: Mesh) -> str:
    """Say the same of a mesh whose endpoints are written already. Two SQL queries.

    One by filter means those that it fits, like one of every endpoint.
    """
    ends = [list(getattr(mesh, end).all()) for end in ENDS]
    return mesh_problem(mesh.name, mesh.mover, mesh.mode, ends)


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
        if mesh.mover_description.scheme_mismatch(mesh.mode, {endpoint.name: endpoint.base_url})
    ]
    if not misfits:
        return ""
    named, more = ", ".join(misfits[:MOST_NAMED]), len(misfits) - MOST_NAMED
    others = f" and {more} more" if more > 0 else ""
    return (
        f"{endpoint.name} cannot have a base URL with {scheme_of(endpoint.base_url)}. The transfer "
        f"tools of these meshes do not support it: {named}{others}. First remove the endpoint "
        "from these meshes."
    )


def hosts_problem(credential: Credential) -> str:
    """Say what in use these hosts leave out; empty if nothing. Three SQL queries."""
    if credential._state.adding:
        return ""
    ends = (credential.endpoints, credential.lending_endpoints)
    used = {
        name: url
        for end in ends
        for name, url in end.filter(retired_at=None).values_list("name", "base_url")
    }
    meshes = credential.meshes.exclude(service="").values_list("name", "service")
    return _left_out(credential, "endpoints", used) or _left_out(credential, "meshes", dict(meshes))


def credential_problems(credential: Credential) -> dict[str, str]:
    """Say by field what in use a credential as it is now would not do for; nothing if for all."""
    if sentence := hosts_problem(credential):
        return {"hosts": sentence}
    if credential._state.adding:
        return {}
    for mesh in credential.meshes.exclude(service=""):
        wrong = rules.service_problems(mesh.mover_description, mesh.service, credential)
        if sentence := wrong.get("service_credential", ""):
            return {
                "kind": f"The mesh {mesh.name} uses this credential for its service. {sentence}"
            }
    return {}


def _left_out(credential: Credential, users: str, urls: Mapping[str, str]) -> str:
    left = sorted(name for name, url in urls.items() if not names(credential.hosts, url))
    if not left:
        return ""
    more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    return (
        f"The credential {credential.name} would not be valid for the hosts of these {users}, "
        f"which use it: {', '.join(left[:MOST_NAMED])}{more}. Add the hosts, or first assign "
        f"another credential to the {users}."
    )
