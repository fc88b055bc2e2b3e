"""Why a matrix is empty or bare, and what to do about it: an empty grid explains itself."""

from __future__ import annotations

from dataclasses import dataclass

from matrix import records
from matrix.grid import Grid
from sonar.models import Endpoint, Probe
from sonar.units import format_age, format_count
from sonar.windows import format_time


@dataclass(frozen=True)
class Notice:
    title: str
    sentence: str
    # Text and address of what to do next.
    action: tuple[str, str] | None = None


def notice_for(grid: Grid) -> Notice | None:
    """Return what the reader must know before the cells, if anything."""
    if grid.cells.ok.any() or grid.cells.failed.any():
        return None
    if grid.sources:
        return no_results(grid)
    if not Endpoint.objects.filter(retired_at=None).exists():
        return no_endpoints()
    return nothing_matches(grid) if grid.query.filters else no_mesh(grid)


def no_endpoints() -> Notice:
    return Notice(
        "No endpoints are registered yet.",
        "Sonar measures the rates between registered storage endpoints: add the sites and their "
        "endpoints, then a mesh that says which links are tested and how often.",
        ("Add a site in the admin", "/admin/sonar/site/add/"),
    )


def no_mesh(grid: Grid) -> Notice:
    count = Endpoint.objects.filter(retired_at=None).count()
    return Notice(
        f"No mesh tests links with {grid.query.size} files.",
        f"{format_count(count)} endpoints are registered, but no enabled mesh has an interval for "
        f"this size class, and nothing was recorded in this window. {last_result(grid)}",
        ("Look at the meshes in the admin", "/admin/sonar/mesh/"),
    )


def nothing_matches(grid: Grid) -> Notice:
    return Notice(
        "No link matches these filters.",
        "No scheduled link and no result in this window passes all of them.",
        ("Show the matrix without filters", grid.query.replace(filters=()).url()),
    )


def no_results(grid: Grid) -> Notice:
    """Say what is on its way where all cells are bare."""
    probes = Probe.objects.filter(size_class__name=grid.query.size)
    running = probes.filter(state=Probe.State.RUNNING).count()
    queued = probes.count() - running
    under_way = (
        f"{format_count(running)} tests of this size are running, {format_count(queued)} queued."
        if running or queued
        else "No test of this size is running or queued just now."
    )
    return Notice("No results in this window yet.", f"{last_result(grid)} {under_way}")


def last_result(grid: Grid) -> str:
    last = records.read_last(grid.query.size)
    if last is None:
        return f"There has never been a result with {grid.query.size} files."
    age = format_age(grid.moment - last)
    return f"The last result with {grid.query.size} files was {age}, at {format_time(last)}."
