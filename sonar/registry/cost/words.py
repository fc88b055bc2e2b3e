"""What tests cost, in words: in one line, and what of it does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.conf import settings

from sonar.models import Mesh
from sonar.notation.units import exact_duration, format_bytes, format_count, three_digits
from sonar.registry.cost.figures import Cost, Share
from sonar.registry.cost.grid import Grid, Member, Plan

# Fewer than so many of what is asked for are said to be held back.
ALL_OF_IT = 0.995


def summary(cost: Cost) -> str:
    """Say it: `38 links, 912 tests and 42.7 GB a day`, or how many of those that are asked for."""
    links = count_links(cost.links)
    if not cost.asked_per_day:
        return f"{links}, no tests"
    demanded = round(cost.asked_per_day) or 1  # of a link there is more than none, however seldom
    tests = f"{format_count(demanded)} test{'s' * (demanded != 1)}"
    if is_held_back(cost):
        tests = f"{format_count(round(cost.tests_per_day))} of {tests}"
    return f"{links}, {tests} and {format_bytes(cost.bytes_per_day)} a day"


def count_links(count: int) -> str:
    return f"{format_count(count)} link{'s' * (count != 1)}"


def at_most(tests: int) -> str:
    """Say what a peak is: `at most 12 tests at once`."""
    return f"at most {_tests(tests)} at once"


def in_its_meshes(costs: Sequence[Cost]) -> str:
    """Say what enabling an endpoint starts: `38 links, 912 tests and 42.7 GB a day in mesh uk`."""
    if not costs:
        return "no tests, because no mesh includes the endpoint"
    return "; ".join(f"{summary(cost)} in mesh {cost.mesh}" for cost in costs)


def is_held_back(cost: Cost) -> bool:
    """Say whether budgets, caps or limits hold back some of what is asked for."""
    return cost.tests_per_day < cost.asked_per_day * ALL_OF_IT


def remarks(cost: Cost, grid: Grid, plan: Plan, own: Member | None) -> Iterator[str]:
    """Yield sentences on what was left out, and on what does not fit."""
    mesh = plan.mesh
    if not mesh.enabled:
        yield f"Mesh {mesh.name} is not enabled. Its tests start only after it is enabled."
    if own is not None:
        yield from _about(own, grid, plan, cost)
    if not any(each.links for each in cost.classes):
        yield "No links would be tested."
    yield from _left_out(plan, own)
    yield from _too_large(cost, mesh)
    yield from _over(cost)
    if is_held_back(cost):
        yield (
            f"{_tests(cost.asked_per_day)} a day are scheduled, but the limits allow only "
            f"{format_count(round(cost.tests_per_day))}. The other tests wait."
        )


def _about(own: Member, grid: Grid, plan: Plan, cost: Cost) -> Iterator[str]:
    """Yield why an endpoint is not in a mesh, or not now."""
    mesh = plan.mesh
    if own.scheme not in mesh.mover_description.schemes_in(mesh.mode):
        schemes = mesh.mover_description.what_it_moves(mesh.mode)
        yield f"{own.name} uses {own.scheme}, but the transfer tool {mesh.mover} {schemes}."
    elif not any(each.links for each in cost.classes) and (
        mesh.sources_filter or mesh.destinations_filter
    ):
        yield f"The filter of mesh {mesh.name} excludes {own.name}."
    registered = grid.members.get(own.id)
    if registered is not None and registered.paused:
        words = f"The tests of {registered.paused} are paused"
        yield f"{words}. The cost applies after these tests are resumed."


def _left_out(plan: Plan, own: Member | None) -> Iterator[str]:
    others = [each for each in plan.left_out if own is None or each.id != own.id]
    if paused := sorted({each.paused for each in others if each.paused}):
        yield f"Links with paused tests are not included: {_listed(paused)}."
    if names := sorted(each.name for each in others if not each.enabled):
        endpoints = "An endpoint that is" if len(names) == 1 else "Endpoints that are"
        verb = "is" if len(names) == 1 else "are"
        yield f"{endpoints} not enabled {verb} not included: {_listed(names)}."


MOST_NAMED = 5


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def _too_large(cost: Cost, mesh: Mesh) -> Iterator[str]:
    """Yield which tests never run, and which are due more often than anybody looks."""
    limits = [each for each in (mesh.bytes_per_hour, settings.SONAR_BYTES_PER_HOUR) if each]
    budget = cost.budget.limit if cost.budget else None
    tick = settings.SONAR_PLAN_SECONDS
    for each in cost.classes:
        if limits and each.test_bytes > min(limits):
            yield (
                f"Tests in size class “{each.name}” never run, because a test file exceeds the "
                f"hourly limit of {format_bytes(min(limits))}."
            )
        if budget and each.test_bytes > budget:
            yield (
                f"Tests in size class “{each.name}” never run, because a test file exceeds the "
                f"daily budget of {cost.endpoint}, {format_bytes(budget)}."
            )
        if each.every_seconds < tick:
            yield (
                f"Tests in size class “{each.name}” are due every "
                f"{exact_duration(each.every_seconds)}, but the planner runs only every "
                f"{exact_duration(tick)}."
            )


def _over(cost: Cost) -> Iterator[str]:
    """Yield the limits that are asked for more than they allow."""
    for budget in (cost.budget, cost.nearest_budget):
        if budget and budget.share > 1:
            yield (
                f"{budget.whose} exceeds its budget: {format_bytes(budget.used)} a day is "
                f"scheduled, but only {format_bytes(budget.limit)} is allowed."
            )
    for cap, preposition in (
        (cost.cap_out, "from "),
        (cost.cap_in, "to "),
        (cost.nearest_cap, "at "),
    ):
        if cap and cap.share > 1:
            yield _cap(cap, preposition)
    if cost.wan and cost.wan.share > 1:
        yield f"The tests need more than the WAN capacity of {cost.wan.whose}."
    if cost.grid.limit and cost.grid.afterwards > cost.grid.limit:
        yield (
            f"All meshes together schedule {format_bytes(cost.grid.afterwards)} an hour, but "
            f"Sonar's limit is {format_bytes(cost.grid.limit)}."
        )


def _cap(cap: Share, preposition: str) -> str:
    return (
        f"The cap on tests {preposition} {cap.whose} is too low: on average "
        f"{three_digits(cap.used)} would run at once, but {cap.limit:g} are allowed."
    )


def _tests(count: float) -> str:
    number = round(count)
    return f"{format_count(number)} test{'s' * (number != 1)}"
