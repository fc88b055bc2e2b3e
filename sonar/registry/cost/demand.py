"""What meshes ask of each endpoint, of each link and of all of Sonar, and how long tests wait."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from django.conf import settings

from sonar.models import SizeClass
from sonar.registry.cost.budgets import LEAST_STEP, hourly_waits, within_budget
from sonar.registry.cost.grid import Grid, Member, Plan
from sonar.registry.cost.rates import (
    DAY,
    HOUR,
    Kind,
    Quiet,
    Use,
    together,
    waits,
)

Uses = tuple[Use, ...]
# What is known of no storage: a test is as long as at this rate, and a while before and after.
ASSUMED_BYTES_PER_SECOND = 50_000_000
ASSUMED_OVERHEAD_SECONDS = 2.0


def assumed_seconds(size_class: SizeClass) -> float:
    """Return how long a test takes where nobody has seen one."""
    return ASSUMED_OVERHEAD_SECONDS + size_class.test_bytes / ASSUMED_BYTES_PER_SECOND


def in_ticks(seconds: float) -> float:
    """Return how long that is for the planner, which looks every SONAR_PLAN_SECONDS."""
    tick: int = settings.SONAR_PLAN_SECONDS
    return math.ceil(seconds / tick) * tick


def in_steps(seconds: float) -> float:
    """Return that moment, as far as a day of the planner is played through in steps."""
    return max(math.ceil(seconds / LEAST_STEP) * LEAST_STEP, in_ticks(seconds))


def rank(use: Use) -> int:
    """Return the place in the order of meshes by priority."""
    return -use.priority


def places(use: Use) -> float:
    return use.seconds


@dataclass(frozen=True)
class EndpointRoom:
    """How long tests of an endpoint wait at its caps, by rank, and what its budget lets through.

    ``shares`` has by size in bytes which share of its tests, for those that do not all fit.
    """

    out: Mapping[int, float]
    into: Mapping[int, float]
    shares: Mapping[int, float]


@dataclass(frozen=True)
class Demand:
    """What is asked of all endpoints by these plans, before any limit.

    ``seconds`` has by name of a size class how long a test takes.
    """

    grid: Grid
    plans: tuple[Plan, ...]
    seconds: Mapping[str, float]

    def use(self, plan: Plan, size: SizeClass, every: float, quiet: Quiet, links: int) -> Use:
        seconds = self.seconds.get(size.name) or assumed_seconds(size)
        priority, mesh = plan.mesh.priority, plan.key
        return Use(links, every, quiet, size.test_bytes, in_ticks(seconds), priority, mesh)

    def between(self, plan: Plan, quiet: Quiet, others: Mapping[Quiet, int]) -> Uses:
        """Return the tests of an endpoint with so many others, by quiet hours."""
        return tuple(
            self.use(plan, size, in_ticks(every), together(quiet, theirs), links)
            for theirs, links in others.items()
            for size, every in plan.every
            if links
        )

    @cached_property
    def _sides(self) -> tuple[dict[int, list[Uses]], dict[int, list[Uses]]]:
        out: dict[int, list[Uses]] = {}
        into: dict[int, list[Uses]] = {}
        for plan in self.plans:
            for by_key, own, others in (
                (out, plan.sources, plan.destinations),
                (into, plan.destinations, plan.sources),
            ):
                for member, uses in self._of_side(plan, own, others):
                    by_key.setdefault(member.id, []).append(uses)
        return out, into

    def _of_side(
        self, plan: Plan, own: Iterable[Member], others: Iterable[Member]
    ) -> Iterable[tuple[Member, Uses]]:
        """Yield each endpoint at one end with its tests; those that are alike share them."""
        ids = {other.id for other in others}
        counts = Counter(together(plan.quiet, other.quiet) for other in others)
        alike: dict[tuple[Quiet, bool], Uses] = {}
        for member in own:
            itself = member.id in ids
            key = (member.quiet, itself)
            if key not in alike:
                less = Counter({together(plan.quiet, member.quiet): 1}) if itself else Counter()
                alike[key] = self.between(plan, member.quiet, counts - less)
            yield member, alike[key]

    def out(self, member: Member) -> Uses:
        return tuple(use for uses in self._sides[0].get(member.id, ()) for use in uses)

    def into(self, member: Member) -> Uses:
        return tuple(use for uses in self._sides[1].get(member.id, ()) for use in uses)

    def all(self, plans: Iterable[Plan] | None = None) -> Uses:
        """Return all tests of these plans, of all by default; each link once."""
        total: Counter[Use] = Counter()
        for plan in self.plans if plans is None else plans:
            of_end: Counter[Uses] = Counter(
                uses for _, uses in self._of_side(plan, plan.sources, plan.destinations)
            )
            for uses, members in of_end.items():
                for use in uses:
                    total[use._replace(links=1)] += use.links * members
        return tuple(use._replace(links=links) for use, links in total.items())

    @cached_property
    def _sums(self) -> dict[Uses, tuple[float, float]]:
        return {}

    def _sum(self, uses: Uses) -> tuple[float, float]:
        """Return bytes and seconds in a day; added up once of those that many endpoints share."""
        if uses not in self._sums:
            tests = [(use.tests, use) for use in uses]
            moved = sum(count * use.bytes for count, use in tests)
            self._sums[uses] = moved, sum(count * use.seconds for count, use in tests)
        return self._sums[uses]

    def bytes_a_day(self, uses: Uses) -> float:
        return self._sum(uses)[0]

    def at_once(self, uses: Uses) -> float:
        """Return how many run at once on average, if all have room."""
        return self._sum(uses)[1] / DAY

    @cached_property
    def rooms(self) -> dict[int, EndpointRoom]:
        """Return the room at each endpoint that is tested, by its id; alike ones share it."""
        kept: dict[tuple[object, ...], EndpointRoom] = {}
        by_key: dict[int, EndpointRoom] = {}
        ids = self._sides[0].keys() | self._sides[1].keys()
        for id_ in ids:
            member = self.grid.members[id_]
            out, into = self.out(member), self.into(member)
            key = (member.outbound_cap, member.inbound_cap, member.budget, out, into)
            if key not in kept:
                kept[key] = self._room(member, out, into)
            by_key[id_] = kept[key]
        return by_key

    def _room(self, member: Member, out: Uses, into: Uses) -> EndpointRoom:
        out_waits = waits(out, member.outbound_cap, places, rank)
        in_waits = waits(into, member.inbound_cap, places, rank)
        uses = [
            use.waiting(max(by_key[rank(use)], self.hourly.get(use.kind, 0.0)))
            for by_key, side in ((out_waits, out), (in_waits, into))
            for use in side
        ]
        return EndpointRoom(out_waits, in_waits, within_budget(uses, member.budget))

    @cached_property
    def in_flight(self) -> dict[int, float]:
        """Return how long tests wait for a place among SONAR_IN_FLIGHT, by rank."""
        return waits(self.all(), settings.SONAR_IN_FLIGHT, places, rank)

    @cached_property
    def hourly(self) -> dict[Kind, float]:
        """Return how long tests wait for limits on the bytes of an hour, by mesh and size."""
        limit = settings.SONAR_BYTES_PER_HOUR
        by_key = hourly_waits(self.all(), limit, in_steps) if limit else {}
        for mesh in {plan.key: plan.mesh for plan in self.plans}.values():
            if mesh.bytes_per_hour:
                own = self.all(plan for plan in self.plans if plan.mesh == mesh)
                waits_of_mesh = hourly_waits(own, mesh.bytes_per_hour, in_steps)
                by_key |= {
                    kind: max(wait, by_key.get(kind, 0.0)) for kind, wait in waits_of_mesh.items()
                }
        return by_key

    def of_link(self, plan: Plan) -> float:
        """Return how long the tests of one link wait for each other: it has one at a time."""
        uses = self.between(plan, (), {(): 1})
        return next(iter(waits(uses, 1, places, rank).values()), 0.0)

    def bytes_an_hour(self) -> float:
        """Return what all tests together come to, on average."""
        return self.bytes_a_day(self.all()) * HOUR / DAY
