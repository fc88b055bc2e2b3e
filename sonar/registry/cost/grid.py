"""The registry as cost sees it: who is tested with whom, how often, within which limits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sonar.models import Endpoint, Mesh, MeshInterval, SizeClass
from sonar.models.member_filters import ENDS
from sonar.notation.addresses import scheme_of
from sonar.notation.endpoint_attributes import ENDPOINT_ATTRIBUTES, texts_of
from sonar.registry.cost.rates import Quiet, quiet_of
from sonar.registry.mesh_members import EndpointInUse, fitting

NEW = 0
"""The id of an endpoint, or of a mesh, that is not kept yet."""


@dataclass(frozen=True, kw_only=True)
class Member(EndpointInUse):
    """An endpoint in use, or one that may join, with its limits; its caps are tests at once.

    ``paused`` names its site or itself if its tests are paused.
    """

    name: str
    site: str
    inbound_cap: int
    outbound_cap: int
    budget: int | None
    wan_gbit_s: float | None
    quiet: Quiet
    paused: str

    @classmethod
    def of(cls, endpoint: Endpoint, now: datetime) -> Member:
        """Return one as it is, kept or not; its site is read already."""
        site, texts = endpoint.site, {}
        for attribute in ENDPOINT_ATTRIBUTES:
            values = [_at(endpoint, path) for path in attribute.columns]
            texts[attribute.name] = texts_of(attribute.value(values))
        return cls(
            id=endpoint.pk or NEW,
            scheme=scheme_of(endpoint.base_url),
            texts=texts,
            enabled=endpoint.enabled,
            name=endpoint.name,
            site=site.name,
            inbound_cap=endpoint.inbound_cap,
            outbound_cap=endpoint.outbound_cap,
            budget=endpoint.budget_bytes_per_day,
            wan_gbit_s=site.wan_gbit_s,
            quiet=quiet_of((site.quiet_from, site.quiet_until)),
            paused=next(map(str, endpoint.pauses(now)), ""),
        )


def _at(row: object, path: str) -> object:
    for name in path.split("__"):
        row = getattr(row, name)
    return row


@dataclass(frozen=True)
class Plan:
    """A mesh: between which endpoints it tests, and with which size classes every so many seconds.

    ``sources`` and ``destinations`` have only those that are tested; ``left_out`` are the others
    that the mesh means, as they are not enabled or paused.
    """

    mesh: Mesh
    every: tuple[tuple[SizeClass, int], ...]
    sources: tuple[Member, ...]
    destinations: tuple[Member, ...]
    quiet: Quiet
    left_out: tuple[Member, ...] = ()

    @property
    def key(self) -> int:
        return self.mesh.pk or NEW

    def sides(self, end: str) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
        """Return those at one end, `sources` or `destinations`, and those at the other."""
        both = (self.sources, self.destinations)
        return both if end == "sources" else both[::-1]


@dataclass(frozen=True)
class Named:
    """What a mesh says by name: ids of endpoints by end, none for all, and its intervals."""

    ends: Mapping[str, frozenset[int]]
    every: tuple[tuple[SizeClass, int], ...]


@dataclass(frozen=True)
class Grid:
    """All that is registered. Six SQL queries."""

    members: Mapping[int, Member]
    meshes: Sequence[Mesh]
    named: Mapping[int, Named]
    size_classes: Mapping[str, SizeClass] = field(default_factory=dict)

    @classmethod
    def read(cls, now: datetime) -> Grid:
        rows = Endpoint.objects.in_use().select_related("site").order_by("id")
        members = {row.pk: Member.of(row, now) for row in rows}
        meshes = list(Mesh.objects.order_by("name"))
        ends = {end: _named(end) for end in ENDS}
        every: dict[int, list[tuple[SizeClass, int]]] = {}
        sizes = SizeClass.objects.in_bulk()
        intervals = MeshInterval.objects.order_by("size_class__from_bytes")
        for mesh, size, seconds in intervals.values_list(
            "mesh_id", "size_class_id", "every_seconds"
        ):
            every.setdefault(mesh, []).append((sizes[size], seconds))
        named = {
            mesh.pk: Named(
                {end: frozenset(ends[end].get(mesh.pk, ())) for end in ENDS},
                tuple(every.get(mesh.pk, ())),
            )
            for mesh in meshes
        }
        return cls(members, meshes, named, {size.name: size for size in sizes.values()})

    def replacing(self, member: Member) -> Grid:
        """Return the same with an endpoint as it would be."""
        return replace(self, members={**self.members, member.id: member})

    def plans(self) -> list[Plan]:
        """Return what is planned now: the meshes that are enabled."""
        return [self.plan(mesh, self.named[mesh.pk]) for mesh in self.meshes if mesh.enabled]

    def plan(self, mesh: Mesh, named: Named) -> Plan:
        meant = [tuple(self._meant(mesh, end, named)) for end in ENDS]
        sources, destinations = (
            tuple(each for each in members if each.enabled and not each.paused) for members in meant
        )
        others = {each.id: each for members in meant for each in members}
        left_out = tuple(each for each in others.values() if each.paused or not each.enabled)
        hours = quiet_of((mesh.quiet_from, mesh.quiet_until))
        return Plan(mesh, named.every, sources, destinations, hours, left_out)

    def _meant(self, mesh: Mesh, end: str, named: Named) -> Iterable[Member]:
        """Return those that a mesh means, and whose files its mover moves (scheduler.sync)."""
        schemes = mesh.mover_description.schemes_in(mesh.mode)
        moved = [each for each in self.members.values() if each.scheme in schemes]
        if chosen := mesh.filter_of(end):
            return fitting(chosen, moved)
        ids = named.ends[end]
        return (each for each in moved if each.id in ids) if ids else moved

    def intervals(self, every: Mapping[str, int]) -> tuple[tuple[SizeClass, int], ...]:
        """Return intervals by names of size classes, smallest first; raise KeyError."""
        rows = [(self.size_classes[name], seconds) for name, seconds in every.items()]
        return tuple(sorted(rows, key=lambda row: row[0].from_bytes))


def _named(end: str) -> dict[int, list[int]]:
    by_mesh: dict[int, list[int]] = {}
    for mesh, endpoint in getattr(Mesh, end).through.objects.values_list("mesh_id", "endpoint_id"):
        by_mesh.setdefault(mesh, []).append(endpoint)
    return by_mesh


def without(members: Iterable[Member], others: Collection[int]) -> tuple[Member, ...]:
    """Return those whose ids are not among others."""
    return tuple(each for each in members if each.id not in others)
