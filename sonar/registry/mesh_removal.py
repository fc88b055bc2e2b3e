"""Whether a mesh can be deleted, and what goes with it: results are chosen by its name."""

from sonar.models import Mesh, NetworkResult, Probe, Profile, Target


def hindrance(mesh: Mesh) -> str:
    """Say in a sentence why a mesh cannot be deleted; empty if it can. Three SQL queries."""
    kinds = (Profile, NetworkResult)
    if any(kind._default_manager.filter(mesh=mesh).exists() for kind in kinds):
        return f"Results refer to mesh {mesh.name}. It can be disabled, but not deleted."
    if mesh.enabled:
        return f"Mesh {mesh.name} is enabled. Disable it before deleting it."
    if Probe.objects.filter(mesh=mesh).exists():
        return f"A test of mesh {mesh.name} is still running or queued. Wait for its result."
    return ""


def count_targets(mesh: Mesh) -> int:
    """Count the targets for this mesh, which are deleted with it. One SQL query."""
    return Target.objects.filter(mesh=mesh).count()
