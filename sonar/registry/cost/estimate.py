"""What a mesh costs as it would be saved, or what an endpoint costs that joins it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial

from django.conf import settings

from sonar.models import Endpoint, Mesh, SizeClass
from sonar.models.member_filters import ENDS
from sonar.registry.cost import words
from sonar.registry.cost.demand import Demand, EndpointRoom, in_ticks, rank
from sonar.registry.cost.figures import ClassCost, Cost, GridBytes, Peak, Share
from sonar.registry.cost.grid import NEW, Grid, Member, Named, Plan, without
from sonar.registry.cost.rates import DAY, HOUR, Quiet, tests_a_day, together

BITS = 8
Members = tuple[Member, ...]


def of_endpoint(
    endpoint: Endpoint,
    mesh: Mesh,
    now: datetime,
    *,
    every: Mapping[str, int] | None = None,
    partners: Collection[int] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> Cost:
    """Return what an endpoint costs in a mesh, as if both were enabled. Six SQL queries.

    Neither need be kept yet. ``every`` has seconds by names of size classes (KeyError for one that
    there is not), by default those of the mesh; ``partners`` are ids of endpoints, by default all
    that the mesh means. ``seconds`` says how long a test takes by size class, where that is known.
    """
    grid = Grid.read(now)
    own = _as_enabled(endpoint, now)
    before = Demand(grid, tuple(grid.plans()), seconds or {})
    grid = grid.replacing(own)
    plans = _joined(grid, mesh, own, every, partners)
    after = Demand(grid, tuple(_with(grid.plans(), plans)), seconds or {})
    return _of_member(before, after, own, plans)


def in_its_meshes(endpoint: Endpoint, now: datetime) -> list[Cost]:
    """Return what an endpoint costs in each enabled mesh that means it. Six SQL queries."""
    grid = Grid.read(now)
    own = _as_enabled(endpoint, now)
    before = Demand(grid, tuple(grid.plans()), {})
    grid = grid.replacing(own)
    after = Demand(grid, tuple(grid.plans()), {})
    costs = [_of_member(before, after, own, [plan]) for plan in after.plans]
    return [cost for cost in costs if cost.links]


def _as_enabled(endpoint: Endpoint, now: datetime) -> Member:
    return replace(Member.of(endpoint, now), enabled=True, paused="")


def _of_member(before: Demand, after: Demand, own: Member, plans: Sequence[Plan]) -> Cost:
    """Return what an endpoint costs in one mesh, whose plans these are."""
    mesh = plans[0].mesh
    out, into = [
        [row for plan in plans for row in _rows(after, plan, *ends(plan))]
        for ends in (partial(_out_of, own), partial(_into, own))
    ]
    met = {each.id for plan in plans for each in (*plan.sources, *plan.destinations)} - {own.id}
    cost = Cost(
        endpoint=own.name,
        mesh=mesh.name,
        classes=_classes(plans[0], out, into),
        grid=_grid_bytes(before, after),
        nearest_budget=_nearest(after, met, _budget),
        nearest_cap=_nearest(after, met, _cap),
        budget=_budget(after, own),
        cap_out=_cap_of(after, own, "out"),
        cap_in=_cap_of(after, own, "in"),
        wan=_wan(after, own),
        round_seconds=_round(after, plans, [own]),
        peak=_peak(plans[0], sum(_most_at_once(plans, [own], end) for end in ENDS)),
    )
    return replace(cost, remarks=tuple(words.remarks(cost, before.grid, plans[0], own)))


def of_mesh(
    mesh: Mesh,
    now: datetime,
    *,
    ends: Mapping[str, Collection[int]] | None = None,
    every: Mapping[str, int] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> Cost:
    """Return what a mesh costs as if it were enabled, kept or not. Six SQL queries.

    ``ends`` has ids of endpoints that it names as `sources` and `destinations`, none for all, by
    default those that are kept; the rest as for `of_endpoint`.
    """
    grid = Grid.read(now)
    before = Demand(grid, tuple(grid.plans()), seconds or {})
    named = _named(grid, mesh, every)
    if ends is not None:
        named = replace(named, ends={end: frozenset(ends.get(end, ())) for end in ENDS})
    plan = grid.plan(mesh, named)
    after = Demand(grid, tuple(_with(grid.plans(), [plan])), seconds or {})
    return _of_plan(before, after, plan)


def of_meshes(grid: Grid) -> Callable[[int], Cost]:
    """Return what gives the cost of each mesh that is kept, by its id, as `of_mesh` does.

    Those that are enabled are reckoned together.
    """
    present = Demand(grid, tuple(grid.plans()), {})
    meshes = {mesh.pk: mesh for mesh in grid.meshes}

    @cache
    def cost_of(pk: int) -> Cost:
        plan = grid.plan(meshes[pk], grid.named[pk])
        if meshes[pk].enabled:
            return _of_plan(present, present, plan)
        return _of_plan(present, Demand(grid, (*present.plans, plan), {}), plan)

    return cost_of


def _of_plan(before: Demand, after: Demand, plan: Plan) -> Cost:
    """Return what a whole mesh costs."""
    members = {each.id: each for each in (*plan.sources, *plan.destinations)}
    cost = Cost(
        endpoint="",
        mesh=plan.mesh.name,
        classes=_classes(plan, list(_rows(after, plan, plan.sources, plan.destinations)), []),
        grid=_grid_bytes(before, after),
        nearest_budget=_nearest(after, members, _budget),
        nearest_cap=_nearest(after, members, _cap),
        budget=None,
        cap_out=None,
        cap_in=None,
        wan=_nearest(after, members, _wan),
        round_seconds=_round(after, [plan], list(members.values())),
        peak=_peak(
            plan,
            min(
                _most_at_once([plan], plan.sources, "sources"),
                _most_at_once([plan], plan.destinations, "destinations"),
            ),
        ),
    )
    return replace(cost, remarks=tuple(words.remarks(cost, after.grid, plan, None)))


def _most_at_once(plans: Sequence[Plan], members: Iterable[Member], end: str) -> int:
    """Return how many tests may run at once with these at one end: a link runs one at a time."""
    is_sending = end == "sources"
    links: Counter[int] = Counter()
    for plan in plans:
        own, others = ({each.id for each in side} for side in plan.sides(end))
        for id_ in own:
            links[id_] += len(others) - (id_ in others)
    caps = {each.id: each.outbound_cap if is_sending else each.inbound_cap for each in members}
    return sum(min(cap, links[id_]) for id_, cap in caps.items())


def _peak(plan: Plan, tests: int) -> Peak:
    tests = min(tests, settings.SONAR_IN_FLIGHT) if plan.every else 0
    return Peak(tests, tests * max((size.test_bytes for size, _ in plan.every), default=0))


def _named(grid: Grid, mesh: Mesh, every: Mapping[str, int] | None) -> Named:
    named = grid.named.get(mesh.pk or NEW, Named({end: frozenset() for end in ENDS}, ()))
    return named if every is None else replace(named, every=grid.intervals(every))


def _joined(
    grid: Grid,
    mesh: Mesh,
    own: Member,
    every: Mapping[str, int] | None,
    partners: Collection[int] | None,
) -> list[Plan]:
    """Return the mesh with an endpoint; where it names its endpoints, with this one more.

    With some partners alone these are what it is without, and both directions of the links.
    """
    named = _named(grid, mesh, every)
    ends = {end: ids | {own.id} if ids else ids for end, ids in named.ends.items()}
    plan = grid.plan(mesh, replace(named, ends=ends))
    if partners is None:
        return [plan]
    senders = tuple(each for each in _into(own, plan)[0] if each.id in partners)
    receivers = tuple(each for each in _out_of(own, plan)[1] if each.id in partners)
    plan = replace(
        plan, left_out=tuple(each for each in plan.left_out if each.id in {*partners, own.id})
    )
    itself = [_only(own, members) for members in (plan.sources, plan.destinations)]
    others = [without(members, [own.id]) for members in (plan.sources, plan.destinations)]
    return [
        replace(plan, sources=sources, destinations=destinations)
        for sources, destinations in (others, (itself[0], receivers), (senders, itself[1]))
    ]


def _out_of(own: Member, plan: Plan) -> tuple[Members, Members]:
    """Return the ends of the links of a plan from an endpoint to others."""
    return _only(own, plan.sources), without(plan.destinations, [own.id])


def _into(own: Member, plan: Plan) -> tuple[Members, Members]:
    return without(plan.sources, [own.id]), _only(own, plan.destinations)


def _only(own: Member, members: Members) -> Members:
    return tuple(each for each in members if each.id == own.id)


def _with(plans: Iterable[Plan], others: Sequence[Plan]) -> list[Plan]:
    return [*(each for each in plans if each.key != others[0].key), *others]


@dataclass(frozen=True)
class _Row:
    """Alike links and one size class: how many, and their tests a day."""

    size: SizeClass
    links: int
    demand: float
    allowed: float


def _rows(
    demand: Demand, plan: Plan, sources: Sequence[Member], destinations: Sequence[Member]
) -> Iterable[_Row]:
    """Yield the tests of links between these, those that have the same room together."""
    of_link = demand.of_link(plan)
    groups = [_alike(demand, members) for members in (sources, destinations)]
    for (quiet, _), (room, senders) in groups[0].items():
        for (others_quiet, _), (others, receivers) in groups[1].items():
            links = len(senders) * len(receivers) - len(senders & receivers)
            hours = together(plan.quiet, together(quiet, others_quiet))
            for size, every in plan.every if links else ():
                use = demand.use(plan, size, in_ticks(every), hours, links)
                wait = max(
                    of_link,
                    demand.hourly.get(use.kind, 0.0),
                    demand.in_flight.get(rank(use), 0.0),
                    room.out.get(rank(use), 0.0),
                    others.into.get(rank(use), 0.0),
                )
                share = min(room.shares.get(use.bytes, 1.0), others.shares.get(use.bytes, 1.0))
                demanded = links * tests_a_day(every, hours)
                yield _Row(size, links, demanded, use.waiting(wait).tests * share)


NO_LIMIT = EndpointRoom({}, {}, {})


def _alike(
    demand: Demand, members: Iterable[Member]
) -> dict[tuple[Quiet, int], tuple[EndpointRoom, set[int]]]:
    """Group endpoints by their quiet hours and the room that there is at them."""
    groups: dict[tuple[Quiet, int], tuple[EndpointRoom, set[int]]] = {}
    for member in members:
        room = demand.rooms.get(member.id, NO_LIMIT)
        groups.setdefault((member.quiet, id(room)), (room, set()))[1].add(member.id)
    return groups


def _classes(plan: Plan, out: Sequence[_Row], into: Sequence[_Row]) -> tuple[ClassCost, ...]:
    return tuple(
        ClassCost(
            size.name,
            size.test_bytes,
            every,
            *(sum(row.links for row in rows if row.size == size) for rows in (out, into)),
            *(sum(row.demand for row in rows if row.size == size) for rows in (out, into)),
            *(sum(row.allowed for row in rows if row.size == size) for rows in (out, into)),
        )
        for size, every in plan.every
    )


def _grid_bytes(before: Demand, after: Demand) -> GridBytes:
    return GridBytes(before.bytes_an_hour(), after.bytes_an_hour(), settings.SONAR_BYTES_PER_HOUR)


def _budget(demand: Demand, member: Member) -> Share | None:
    if member.budget is None:
        return None
    used = demand.bytes_a_day(demand.out(member)) + demand.bytes_a_day(demand.into(member))
    return Share(member.name, used, member.budget)


def _cap_of(demand: Demand, member: Member, direction: str) -> Share:
    """Return how many tests would run at once on average, if all had room, and the cap."""
    uses = demand.out(member) if direction == "out" else demand.into(member)
    cap = member.outbound_cap if direction == "out" else member.inbound_cap
    return Share(member.name, demand.at_once(uses), cap)


def _cap(demand: Demand, member: Member) -> Share:
    both = [_cap_of(demand, member, direction) for direction in ("out", "in")]
    return max(both, key=lambda each: each.share)


def _wan(demand: Demand, member: Member) -> Share | None:
    """Return the busier direction of its site's line, in bytes a day, of this endpoint's tests."""
    if not member.wan_gbit_s:
        return None
    directions = (demand.out(member), demand.into(member))
    used = max(demand.bytes_a_day(uses) for uses in directions)
    return Share(member.site, used, member.wan_gbit_s * 1e9 / BITS * DAY)


def _nearest(
    demand: Demand, ids: Iterable[int], limit: Callable[[Demand, Member], Share | None]
) -> Share | None:
    """Return that of these endpoints which comes nearest to its limit; the first by name."""
    members = sorted((demand.grid.members[id_] for id_ in ids), key=lambda each: each.name)
    shares = [share for member in members if (share := limit(demand, member))]
    return max(shares, key=lambda each: each.share, default=None)


def _round(demand: Demand, plans: Sequence[Plan], members: Sequence[Member]) -> float:
    """Return how long one test of each link and size class of these takes, if nothing else ran."""
    mine = Demand(demand.grid, tuple(plans), demand.seconds)
    of_link = sum(use.seconds for use in mine.between(plans[0], (), {(): 1}))
    return max(of_link, _hours(mine, plans, members), *(_at(mine, each) for each in members), 0.0)


def _at(mine: Demand, member: Member) -> float:
    """Return how long that takes an endpoint, with its caps and its budget."""
    out, into = mine.out(member), mine.into(member)
    at_caps = [
        sum(use.links * use.seconds for use in uses) / cap
        for uses, cap in ((out, member.outbound_cap), (into, member.inbound_cap))
    ]
    moved = sum(use.links * use.bytes for use in (*out, *into))
    days = moved / member.budget if member.budget else 0.0
    return max(*at_caps, days * DAY if days > 1 else 0.0)


def _hours(mine: Demand, plans: Sequence[Plan], members: Sequence[Member]) -> float:
    """Return how long it takes with the limits on the bytes of an hour."""
    limits = [plans[0].mesh.bytes_per_hour, settings.SONAR_BYTES_PER_HOUR]
    least = min((limit for limit in limits if limit), default=0)
    uses = mine.all()
    if len(members) == 1:
        uses = (*mine.out(members[0]), *mine.into(members[0]))
    moved = sum(use.links * use.bytes for use in uses)
    return moved / least * HOUR if least else 0.0
