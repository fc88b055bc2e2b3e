"""Whether a mesh can be deleted, and what goes with it: results are chosen by its name."""

from sonar.models import Mesh, NetworkResult, Probe, Profile, Target


def hindrance(mesh: Mesh) -> str:
    """Say in a sentence why a mesh cannot be deleted; empty if it can. Three SQL queries."""
    kinds = (Profile, NetworkResult)
    if any(kind._default_manager.filter(mesh=mesh).exists() for kind in kinds):
        results = f"The mesh {mesh.name} has results, which are chosen by its name"
        return f"{results}: it can be disabled, and not deleted."
    if mesh.enabled:
        return f"The mesh {mesh.name} is enabled: disable it before it is deleted."
    if Probe.objects.filter(mesh=mesh).exists():
        return f"A test of the mesh {mesh.name} has not ended: wait for its result."
    return ""


def count_targets(mesh: Mesh) -> int:
    """Count the targets for this mesh, which are deleted with it. One SQL query."""
    return Target.objects.filter(mesh=mesh).count()
