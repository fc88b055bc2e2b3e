"""What the reader of a matrix must know before the cells: an empty grid explains itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from django.utils.text import capfirst

from matrix.answers.conditions.reading import is_now
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.matrix.mixed_ways import NOTHING, MixedWays
from matrix.answers.other_origins import NONE, OtherOrigins
from matrix.answers.words.phrases import counted
from matrix.pages.matrix.payload import ordered_table
from matrix.pages.parts import notices as common
from matrix.pages.parts.notices import Notice
from matrix.plots.arrangement import Arrangement
from matrix.plots.display import Display
from matrix.query.addresses import address
from matrix.query.filters import on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import pauses_of
from matrix.statistics.cells.states import STALE, STALE_AFTER_INTERVALS
from matrix.statistics.transfers.overhead import BENT, FEW, FEWEST_TRANSFERS, LEAST_RATIO
from matrix.store import downtimes, registry
from matrix.store.downtimes import DeclaredDowntime
from sonar.models import Downtime, Endpoint
from sonar.models.fields import end_words
from sonar.notation.enumeration import either
from sonar.notation.units import format_age, format_count, format_span
from sonar.notation.windows import format_minute
from sonar.results import store
from sonar.sandbox.stories import STORIES

HOUR = timedelta(hours=1)
MOST_PAUSES = 6
MOST_DOWNTIMES = 3


def notices_for(
    arrangement: Arrangement,
    address_of: Callable[[MatrixQuery, Display], str],
    now: datetime,
    *,
    soon: Sequence[Downtime],
    mixture: MixedWays = NOTHING,
    others: OtherOrigins = NONE,
    about_groups: Notice | None = None,
) -> list[Notice]:
    """Return the notices, most serious first; of mixed ways only if many cells mix some.

    ``address_of`` is the address of a matrix with this question and display, ``soon`` are the
    downtimes of its endpoints (`downtimes_of`), ``others`` the results of other origins that do not
    count. ``about_groups`` explains why rows and columns are grouped, or that they are very many.
    Two SQL queries, one more where there are no results or no new ones; up to two without rows.
    """
    grid, query = arrangement.grid, arrangement.grid.query

    def asking(query: MatrixQuery) -> str:
        return address_of(query, arrangement.display)

    not_counted = common.about_others(query, asking, others)
    if not grid.sources:
        count = Endpoint.objects.in_use().count()
        if not count:
            return [common.no_endpoints()]
        if not query.filters:
            without_mesh = Notice(
                "no-mesh",
                f"No mesh has tests with {query.size} files.",
                f"{format_count(count)} endpoints are registered, but no enabled mesh (test "
                "schedule) has an interval for this size class. "
                "There are no results in this time range. "
                f"{last_result(grid, now)}",
                (("An operator can add a mesh", address("meshes")),),
            )
            return [without_mesh, not_counted] if not_counted else [without_mesh]
        without = asking(query.replace(filters=()))
        return [
            Notice(
                "nothing-matches",
                "No link matches these filters.",
                "No scheduled link and no result in this time range matches all filters.",
                (("Show the matrix without filters", without),),
            )
        ]
    work = common.work_at_hand(query.size)
    of_ways = "The status of a link is based on all its tests."
    notices = [
        *common.about_work(work, now),
        *about_results(grid, asking, work, now),
        about_pauses(grid),
        about_risks(grid, soon),
        about_lines(grid),
        Notice("ways", "Numbers include only the chosen tests.", of_ways, (), quiet=True)
        if on_profiles(query.filters)
        else None,
        about_focus(arrangement, address_of),
        about_groups,
        common.mixed(query, asking, mixture, "cells") if mixture.are_many else None,
        not_counted,
    ]
    return [notice for notice in notices if notice]


def planted_faults(moment: datetime) -> list[tuple[str, str]]:
    """Return the questions that a sandbox asks its reader, with the answers.

    Before ``moment`` its results are made up.
    """
    return [
        (
            story.question,
            f"{capfirst(story.links)}, since {format_minute(moment - story.ended * HOUR)}: "
            f"{story.name}.",
        )
        for story in STORIES
        if story.question
    ]


def about_pauses(grid: Grid) -> Notice | None:
    # A row of several sites has none: then all of them are in sight.
    in_sight = {group.site for group in (*grid.sources, *grid.destinations)}
    pauses = pauses_of(registry.read_places(grid.version), grid.moment)
    paused = [pause for pause in pauses if in_sight & {pause.site, None}]
    if not paused:
        return None
    title = f"The tests of {format_count(len(paused))} sites or endpoints are paused."
    if len(paused) == 1:
        title = f"{paused[0].words}."
    return Notice(
        "paused",
        title,
        "No test of these links starts during the pause, so their results get older.",
        tuple(
            (f"{pause.name}, {end_words(pause.until)}: {pause.reason}", address("site", pause.site))
            for pause in paused[:MOST_PAUSES]
        ),
    )


def about_focus(
    arrangement: Arrangement, address_of: Callable[[MatrixQuery, Display], str]
) -> Notice | None:
    """Say what is left out; in plain view if that is everything."""
    display, grid = arrangement.display, arrangement.grid
    if not display.focuses:
        return None
    links = (("Show all cells", address_of(grid.query, display.unfocused())),)
    if arrangement.rows.groups:
        sentence = "Means still include all measured cells of a row or column."
        return Notice("focused", "Only matching cells are shown.", sentence, links, quiet=True)
    parts = [either(display.only)] if display.only else []
    if display.above is not None:
        parts.append(f"at least {display.above:g} {grid.unit}")
    if display.below is not None:
        parts.append(f"at most {display.below:g} {grid.unit}")
    count = format_count(sum(grid.states().values()))
    sentence = f"None of the {count} cells is {', and '.join(parts)}."
    return Notice("unfocused", "No cell matches these filters.", sentence, links)


def about_results(
    grid: Grid, asking: Callable[[MatrixQuery], str], work: Mapping[str, Any], now: datetime
) -> Iterator[Notice]:
    """Say what is wrong with the results: none, only failed ones, or none any more.

    Where all results so far are made up, say what a new sandbox is about to show.
    """
    query = grid.query
    if not grid.has_results:
        longer = query.replace(window="90d")
        yield Notice(
            "no-results",
            "No results in this time range yet.",
            f"{last_result(grid, now)} {of_this_size(work)}",
            () if longer == query else (("Show the last 90 days", asking(longer)),),
        )
        return
    # The newest result, where it is older than the meshes promise in a window up to now.
    newest = float(np.nanmax(grid.cells.last))
    age = grid.moment.timestamp() - newest
    is_late = age > STALE_AFTER_INTERVALS * grid.shortest_promise and is_now(grid.window, now)
    has_stale = is_late and (grid.cells.state == STALE).any()
    last = datetime.fromtimestamp(int(newest), UTC) if has_stale else None
    until = store.until() if last else None
    if last and until and last < until:
        yield Notice(
            "first-tests",
            "The first tests have not finished yet.",
            f"All results shown are demo data. {of_this_size(work)}",
        )
    elif last:
        promise = timedelta(seconds=grid.shortest_promise)
        yield Notice(
            "stopped",
            f"Data stopped arriving at {format_minute(last)}.",
            f"The newest result here is {format_span(grid.moment - last)} old, but a mesh "
            f"schedules a test every {format_span(promise)}. All values on this page are at least "
            "as old as this result.",
            (("See whether Sonar itself is healthy", address("operations")),),
        )
    if not grid.cells.ok.any():
        tests, links = int(grid.cells.failed.sum()), int(np.count_nonzero(grid.cells.failed))
        yield Notice(
            "all-failed",
            "Every test in this time range failed.",
            f"{format_count(tests)} tests ran in {format_count(links)} cells and none succeeded. "
            "The page of each link groups its errors by where they happened.",
            (
                (
                    "Show the links with the most failures",
                    ordered_table(query, f"-{query.size}.failed"),
                ),
            ),
        )


def of_this_size(work: Mapping[str, Any]) -> str:
    running, queued = work["running_of_size"], work["queued_of_size"]
    if not (running or queued):
        return "No test of this size class is running or queued now."
    return (
        f"Tests of this size class: {format_count(running)} running, {format_count(queued)} queued."
    )


def last_result(grid: Grid, now: datetime) -> str:
    last = registry.read_last(grid.query.size)
    if last is None:
        return f"Sonar has no results for {grid.query.size} files yet."
    age = format_age(now - last)
    return f"The last result for {grid.query.size} files was {age}, at {format_minute(last)}."


def downtimes_of(links: Grid) -> list[Downtime]:
    """Return the downtimes of the sites of links: in force, or within a day. One or two queries."""
    in_sight = {group.site for group in (*links.sources, *links.destinations)}
    rows = downtimes.read_soon(links.moment)
    return [row for row in rows if DeclaredDowntime((row,)).site_name in in_sight]


def downtime_line(soon: Sequence[Downtime], links: Grid, now: datetime) -> dict[str, str]:
    """Say in one line what is down or at risk today and tomorrow; empty if nothing is.

    A window that is over says nothing of today.
    """
    declared = downtimes.declared(soon) if is_now(links.window, now) else []
    if not declared:
        return {}
    names = links.short_names()
    texts = []
    for each in declared:
        of_one = len(each.rows) == 1
        subject = names.get(each.subject, each.subject) if of_one else each.site_name
        if each.starts_at <= now:
            times = each.until_words
        else:
            start = each.starts_at.astimezone(UTC)
            day = "today" if start.date() == now.astimezone(UTC).date() else "tomorrow"
            times = f"{day} from {start:%H:%M} UTC"
        texts.append(f"{subject}{'' if each.stops_tests else ' at risk'} {times}")
    more = len(texts) - MOST_DOWNTIMES
    coming = "" if declared[0].starts_at <= now else "?when=coming"
    return {
        "sentence": ", ".join(texts[:MOST_DOWNTIMES])
        + (f" and {format_count(more)} more" if more > 0 else ""),
        "title": "\n".join(
            f"{each.subject}, {each.times_words}: {each.reason}" for each in declared
        ),
        "url": f"{address('downtimes')}{coming}",
    }


def about_risks(grid: Grid, soon: Sequence[Downtime]) -> Notice | None:
    rows = [row for row in soon if not row.stops_tests and row.starts_at <= grid.moment]
    risks = downtimes.declared(rows)
    if not risks:
        return None
    first = risks[0]
    return Notice(
        "at-risk",
        f"{first.subject} is declared at risk."
        if len(risks) == 1 and len(rows) == 1
        else f"{format_count(len(rows))} sites or endpoints are declared at risk.",
        "Tests of sites and endpoints at risk continue, but may be slower or fail.",
        tuple(
            (
                f"{risk.subject} {risk.until_words}: {risk.reason_words}",
                address("site", risk.site_name),
            )
            for risk in risks[:MOST_PAUSES]
        ),
    )


def about_lines(grid: Grid) -> Notice | None:
    """Count the cells that have successes and no line; None if there are none, or no lines."""
    if grid.lines is None:
        return None
    fit = grid.lines.fit[grid.cells.ok > 0]
    bent, few = (int(np.count_nonzero(fit == kind)) for kind in (BENT, FEW))
    if not bent + few:
        return None
    reasons = []
    if bent:
        reasons.append(
            f"In {counted(bent, 'cell')}, the transfer times of the size classes do not fit a "
            "straight line. Overhead and bandwidth cannot be separated there."
        )
    if few:
        reasons.append(
            f"In {counted(few, 'cell')}, too few tests succeeded. Overhead and bandwidth need "
            f"{FEWEST_TRANSFERS} successful tests with each of two file sizes, one at least "
            f"{LEAST_RATIO:g} times the other."
        )
    cells = f"{format_count(bent + few)} of {format_count(fit.size)} cells with results"
    return Notice("no-line", f"{cells} have no value.", " ".join(reasons), (), quiet=True)
