"""Links of meshes whose ends have two X.509 proxies, though their mover shows one to both.

Such tests are not started (`CredentialGivenAway`); here is which, for whoever has to change that.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from django.db.models import prefetch_related_objects

from sonar.credentials.rules import proxy_of, two_proxies
from sonar.models import Endpoint, Mesh
from sonar.notation.base_urls import scheme_of
from sonar.obstacles.run_conditions import RunConditions
from sonar.registry.compatibility import ENDS


def conflicts(conditions: RunConditions) -> dict[int, str]:
    """Say of each mesh in use, by id, how many such links it has, and of the first what to do.

    No SQL query while no mesh has such a mover, else three.
    """
    in_use = (mesh for mesh in conditions.meshes if mesh.enabled)
    meshes = [mesh for mesh in in_use if mesh.mover_description.one_proxy]
    if not meshes:
        return {}
    prefetch_related_objects(meshes, *ENDS)
    endpoints = list(Endpoint.objects.filter(retired_at=None).select_related("credential"))
    sentences = {mesh.id: _conflict(mesh, endpoints) for mesh in meshes}
    return {mesh: sentence for mesh, sentence in sentences.items() if sentence}


def _conflict(mesh: Mesh, in_use: Collection[Endpoint]) -> str:
    schemes = mesh.mover_description.schemes_in(mesh.mode)
    moved = [end for end in in_use if scheme_of(end.base_url) in schemes]
    sources, destinations = (_chosen(mesh, ends, moved) for ends in ENDS)
    of_destinations = Counter(map(proxy_of, destinations))
    others = {end: len(destinations) - of_destinations[proxy_of(end)] for end in sources}
    links = sum(others.values())
    if not links:
        return ""
    first = next(end for end, differing in others.items() if differing)
    other = next(end for end in destinations if proxy_of(end) != proxy_of(first))
    count = "1 link is" if links == 1 else f"{links} links are"
    return f"{count} not tested. {two_proxies(first, other, mesh.mover_description)}"


def _chosen(mesh: Mesh, ends: str, moved: Sequence[Endpoint]) -> Sequence[Endpoint]:
    named = {end.pk for end in getattr(mesh, ends).all()}
    return [end for end in moved if end.pk in named] if named else moved
