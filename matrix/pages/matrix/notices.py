"""What the reader of a matrix must know before the cells: an empty grid explains itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from matrix.answers.grid import Grid
from matrix.answers.mixed_ways import MixedWays
from matrix.pages.matrix.cell_links import ordered_table
from matrix.pages.matrix.line_notice import about_lines
from matrix.pages.notices import (
    Notice,
    WorkAtHand,
    mixed,
    no_endpoints,
    no_planner,
    no_workers,
    overdue_since,
)
from matrix.plots.arrangement import Arrangement
from matrix.plots.display import Display
from matrix.query.addresses import address
from matrix.query.filters import either
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import pauses_of
from matrix.statistics.cells.states import STALE, STALE_AFTER_INTERVALS
from matrix.store import registry
from sonar.models import Endpoint
from sonar.models.testing_times import end_words
from sonar.notation.units import format_age, format_count, format_span
from sonar.notation.windows import format_minute
from sonar.results import store

MOST_PAUSES = 6


@dataclass(frozen=True)
class View:
    """What is drawn; ``address`` is the address of a matrix with this question and display."""

    arrangement: Arrangement
    address: Callable[[MatrixQuery, Display], str]

    @property
    def grid(self) -> Grid:
        return self.arrangement.grid

    def asking(self, query: MatrixQuery) -> str:
        return self.address(query, self.arrangement.display)


def notices_for(view: View, mixture: MixedWays, now: datetime) -> list[Notice]:
    """Return the notices, most serious first; of mixed ways only if many cells mix some.

    Two SQL queries, and one more where there are no results or no new ones; up to two without rows.
    """
    if not view.grid.sources:
        count = Endpoint.objects.filter(retired_at=None).count()
        if not count:
            return [no_endpoints()]
        filters = view.grid.query.filters
        return [nothing_matches(view) if filters else no_mesh(view.grid, count, now)]
    work = WorkAtHand.read(view.grid.query.size)
    notices = [
        no_workers(work, now),
        no_planner(work, overdue_since(now), now),
        *about_results(view, work, now),
        about_pauses(view.grid),
        about_lines(view.grid),
        about_focus(view),
        mixed(view.grid.query, view.asking, mixture, "cells") if mixture.are_many else None,
    ]
    return [notice for notice in notices if notice]


def no_mesh(grid: Grid, count: int, now: datetime) -> Notice:
    return Notice(
        "no-mesh",
        f"No mesh tests links with {grid.query.size} files.",
        f"{format_count(count)} endpoints are registered, but no enabled mesh (test schedule) has "
        f"an interval for this size class. This window has no results. {last_result(grid, now)}",
        (("An administrator can add a mesh in the admin", address("admin:sonar_mesh_changelist")),),
    )


def nothing_matches(view: View) -> Notice:
    without = view.asking(view.grid.query.replace(filters=()))
    return Notice(
        "nothing-matches",
        "No link matches these filters.",
        "No scheduled link and no result in this window matches all of them.",
        (("Show the matrix without filters", without),),
    )


def about_pauses(grid: Grid) -> Notice | None:
    """Name the sites in sight that have paused their tests, each with until when and why."""
    pauses = pauses_of(registry.read_places(grid.version), grid.moment)
    # A row of several sites has none: then all of them are in sight.
    in_sight = {group.site for group in (*grid.sources, *grid.destinations)}
    paused = [site for site in sorted(pauses) if in_sight & {site, None}]
    if not paused:
        return None
    title = f"{len(paused)} sites have paused their tests."
    if len(paused) == 1:
        title = f"{paused[0]} has paused its tests."
    return Notice(
        "paused",
        title,
        "No test of these links starts meanwhile, so their results get older.",
        tuple(
            (
                f"{site}, {end_words(pauses[site].until)}: {pauses[site].reason}",
                address("site", site),
            )
            for site in paused[:MOST_PAUSES]
        ),
    )


def about_focus(view: View) -> Notice | None:
    """Say what is left out; in plain view if that is everything."""
    display = view.arrangement.display
    if not display.focuses:
        return None
    every_cell = view.address(view.grid.query, display.unfocused())
    links = (("Show all cells", every_cell),)
    if view.arrangement.rows.groups:
        sentence = "Means still include all measured cells of a row or column."
        return Notice("focused", "Only matching cells are shown.", sentence, links, quiet=True)
    return Notice(
        "unfocused",
        "No cell matches.",
        f"None of the {format_count(sum(view.grid.states().values()))} cells is "
        f"{focus_words(display, view.grid.unit)}.",
        links,
    )


def focus_words(display: Display, unit: str) -> str:
    """Say what is in focus: `failed or stale, and at least 5 MB/s`."""
    parts = [either(display.only)] if display.only else []
    if display.above is not None:
        parts.append(f"at least {display.above:g} {unit}")
    if display.below is not None:
        parts.append(f"at most {display.below:g} {unit}")
    return ", and ".join(parts)


def about_results(view: View, work: WorkAtHand, now: datetime) -> Iterator[Notice]:
    """Say what is wrong with the results: none, only failed ones, or none any more."""
    grid = view.grid
    if not grid.has_results:
        yield no_results(view, work, now)
        return
    if last := data_stopped(grid):
        until = store.until()
        yield first_tests(work) if until and last < until else stopped(grid, last)
    if not grid.cells.ok.any():
        yield all_failed(grid)


def no_results(view: View, work: WorkAtHand, now: datetime) -> Notice:
    """Say what is on its way where all cells are bare."""
    longer = view.grid.query.replace(window="90d")
    return Notice(
        "no-results",
        "No results in this window yet.",
        f"{last_result(view.grid, now)} {of_this_size(work)}",
        () if longer == view.grid.query else (("Show the last 90 days", view.asking(longer)),),
    )


def of_this_size(work: WorkAtHand) -> str:
    if not (work.running_of_size or work.queued_of_size):
        return "No test of this size is running or queued right now."
    running, queued = map(format_count, (work.running_of_size, work.queued_of_size))
    return f"Tests of this size: {running} running, {queued} queued."


def last_result(grid: Grid, now: datetime) -> str:
    last = registry.read_last(grid.query.size)
    if last is None:
        return f"There has never been a result with {grid.query.size} files."
    age = format_age(now - last)
    return f"The last result with {grid.query.size} files was {age}, at {format_minute(last)}."


def all_failed(grid: Grid) -> Notice:
    tests, links = int(grid.cells.failed.sum()), int((grid.cells.failed > 0).sum())
    most_failures = ordered_table(grid.query, f"-{grid.query.size}.failed")
    return Notice(
        "all-failed",
        "Every test in this window failed.",
        f"{format_count(tests)} tests ran in {format_count(links)} cells and none succeeded. "
        "The page of each link lists its errors by where they happened.",
        (("Show the links with most failures", most_failures),),
    )


def data_stopped(grid: Grid) -> datetime | None:
    """Return the newest result if it is older than the meshes promise, in a window up to now."""
    newest = float(np.nanmax(grid.cells.last))
    age = grid.moment.timestamp() - newest
    is_late = age > STALE_AFTER_INTERVALS * grid.shortest_promise
    if grid.is_past or not is_late or not (grid.cells.state == STALE).any():
        return None
    return datetime.fromtimestamp(int(newest), UTC)


def stopped(grid: Grid, last: datetime) -> Notice:
    promise = timedelta(seconds=grid.shortest_promise)
    return Notice(
        "stopped",
        f"Data stopped arriving at {format_minute(last)}.",
        f"The newest result here is {format_span(grid.moment - last)} old, and a mesh promises one "
        f"every {format_span(promise)}. Everything shown was measured before then.",
        (
            (
                "See in Operations whether Sonar itself is healthy",
                address("operations"),
            ),
        ),
    )


def first_tests(work: WorkAtHand) -> Notice:
    """Say what a new sandbox is about to show, where all results so far are made up."""
    return Notice(
        "first-tests",
        "The first tests are on their way.",
        f"All results shown are made up. {of_this_size(work)}",
    )
