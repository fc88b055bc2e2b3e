"""Meshes as operators look at them: what each tests now, in words and numbers."""

from __future__ import annotations

from dataclasses import dataclass

from sonar.models import Mesh
from sonar.registry import mesh_size
from sonar.registry.mesh_members import read_endpoints
from sonar.registry.mesh_size import MeshSize


@dataclass(frozen=True)
class MeshNow:
    """A mesh, between what it tests (``ends``), and ``remarks`` on what it does not test.

    ``sizes`` are the size classes that it tests, smallest first.
    """

    mesh: Mesh
    ends: str
    size: MeshSize
    remarks: list[str]

    @property
    def sizes(self) -> list[str]:
        return [interval.size_class.name for interval in self.mesh.intervals.all()]


def build(most: int) -> tuple[list[MeshNow], int]:
    """Return the meshes by name, so many at most, and how many there are. At most 6 SQL queries."""
    meshes = list(Mesh.objects.prefetch_related(*mesh_size.READ_FIRST).order_by("name")[:most])
    endpoints = read_endpoints() if meshes else []
    sizes = [(mesh, mesh_size.size_of(mesh, endpoints)) for mesh in meshes]
    lines = [
        MeshNow(mesh, mesh_size.ends_words(mesh), size, mesh_size.remarks(mesh, size))
        for mesh, size in sizes
    ]
    return lines, len(lines) if len(lines) < most else Mesh.objects.count()
