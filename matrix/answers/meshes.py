"""Meshes as people look at them: what each tests now, in words and numbers, and when next."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Min, prefetch_related_objects

from sonar.models import Mesh, Schedule
from sonar.models.member_filters import ENDS
from sonar.registry import mesh_members, mesh_size
from sonar.registry.cost.figures import Cost
from sonar.registry.mesh_members import EndpointInUse, read_endpoints
from sonar.registry.mesh_size import MeshNow, MeshSize


@dataclass(frozen=True)
class MeshLine:
    """A mesh, between what it tests (``ends``), and ``remarks`` on what it does not test.

    ``sizes`` are the size classes that it tests, smallest first.
    """

    mesh: Mesh
    ends: str
    size: MeshSize
    cost: Cost
    remarks: list[str]

    @property
    def sizes(self) -> list[str]:
        return [interval.size_class.name for interval in self.mesh.intervals.all()]


@dataclass(frozen=True)
class MeshMember:
    """An endpoint that a mesh means, at which of its ends, and why it is not tested, if it is not.

    The remark is empty if it is.
    """

    name: str
    site: str
    ends: tuple[str, ...]
    remark: str


def build(most: int, start: int = 0) -> tuple[list[MeshLine], int]:
    """Return meshes by name, from one on, and how many there are. At most 7 SQL queries.

    More after a change of the registry.
    """
    rows = Mesh.objects.prefetch_related(*mesh_size.READ_FIRST).order_by("name")
    lines = [_line(each) for each in mesh_size.read(rows[start : start + most])]
    are_all = not start and len(lines) < most
    return lines, len(lines) if are_all else Mesh.objects.count()


def of(mesh: Mesh) -> tuple[MeshLine, list[MeshMember]]:
    """Return the line of one mesh, and its endpoints by name. Six SQL queries."""
    prefetch_related_objects([mesh], *mesh_size.READ_FIRST)
    (now,) = mesh_size.read([mesh])
    return _line(now), members(mesh, read_endpoints())


def _line(now: MeshNow) -> MeshLine:
    mesh, size = now.mesh, now.size
    return MeshLine(mesh, mesh_size.ends_words(mesh), size, now.cost, mesh_size.remarks(mesh, size))


def members(mesh: Mesh, endpoints: Collection[EndpointInUse]) -> list[MeshMember]:
    schemes = mesh.mover_description.schemes_in(mesh.mode)
    meant: dict[int, tuple[EndpointInUse, list[str]]] = {}
    for end in ENDS:
        for each in mesh_members.at_end(mesh, end, endpoints):
            meant.setdefault(each.id, (each, []))[1].append(end.removesuffix("s"))
    lines = []
    for each, ends in meant.values():
        remark = "" if each.enabled else "not enabled"
        if each.scheme not in schemes:
            remark = f"not supported by {mesh.mover}"
        (name,), (site,) = each.texts["endpoint"], each.texts["site"]
        lines.append(MeshMember(name, site, tuple(ends), remark))
    return sorted(lines, key=lambda line: line.name)


def next_due(meshes: Collection[Mesh]) -> dict[int, datetime]:
    """Return when the next test of each of these meshes is due, by its id. One SQL query."""
    rows = Schedule.objects.filter(mesh__in=meshes).order_by()
    return dict(rows.values_list("mesh").annotate(Min("next_due")))
