"""Which service is asked to move the file of a test: that of its mesh."""

from sonar.models import Mesh, Probe
from sonar.movers.catalogue import MoverDescription


def naming(mover: str) -> list[Mesh]:
    """Return the meshes that name the services of a mover, one for each; one SQL query."""
    rows = Mesh.objects.filter(mover=mover).exclude(service="").order_by("-enabled", "name")
    meshes = {
        (mesh.service, mesh.service_credential_id): mesh
        for mesh in reversed(rows.select_related("service_credential"))
    }
    return list(reversed(meshes.values()))


def of_probe(probe: Probe) -> Mesh | None:
    """Return the mesh whose service a test asks; None if it asks none, or there is none.

    A test that was ordered outside every mesh asks the service of those in use.
    """
    if not probe.mover_description.asks_service:
        return None
    mesh = probe.mesh
    if mesh is not None and mesh.service:
        return mesh
    return _only(probe.mover)


def no_service(mover: MoverDescription) -> str:
    """Say why a test with this mover cannot be ordered outside every mesh; empty if it can."""
    if not mover.asks_service or _only(mover.name):
        return ""
    if not _in_use(mover.name):
        why = "but no service is set for any enabled mesh"
        return f"The transfer tool {mover.name} needs a service, {why}."
    why = "but different services are set for the enabled meshes"
    return f"The transfer tool {mover.name} needs a single service, {why}."


def _only(mover: str) -> Mesh | None:
    meshes = _in_use(mover)
    return meshes[0] if len(meshes) == 1 else None


def _in_use(mover: str) -> list[Mesh]:
    return [mesh for mesh in naming(mover) if mesh.enabled]
