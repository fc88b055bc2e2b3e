"""Why the link table is empty or bare, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from matrix.answers.link_table import LinkTable
from matrix.pages.notices import (
    Notice,
    WorkAtHand,
    no_endpoints,
    no_planner,
    no_workers,
    overdue_since,
)
from matrix.query.addresses import address
from matrix.store import registry
from sonar.models import Endpoint
from sonar.notation.units import format_age, format_count
from sonar.notation.windows import format_minute


def about_empty(drop_filters: str) -> Notice:
    """Say why there is not a single link; ``drop_filters`` leads to all, if any are set."""
    if drop_filters:
        return Notice(
            "nothing-matches",
            "No link matches these filters.",
            "No scheduled link and no result in this window matches all of them.",
            (("Clear the filters", drop_filters),),
        )
    count = Endpoint.objects.filter(retired_at=None).count()
    return no_mesh(count) if count else no_endpoints()


def no_mesh(endpoints: int) -> Notice:
    return Notice(
        "no-mesh",
        "No mesh tests any link.",
        f"{format_count(endpoints)} endpoints are registered, but no enabled mesh has an interval, "
        "and nothing was recorded in this window.",
        (("An administrator can add a mesh in the admin", address("admin:sonar_mesh_changelist")),),
    )


def about_work(size: str, now: datetime) -> Iterator[Notice]:
    """Say so if nothing is planned, or nobody takes what is. Two SQL queries."""
    work = WorkAtHand.read(size)
    notices = no_workers(work, now), no_planner(work, overdue_since(now), now)
    yield from (notice for notice in notices if notice)


def about_results(table: LinkTable, now: datetime, longer: str) -> Notice | None:
    """Say so if no link has a result, or none that is ok.

    ``longer`` leads to the longest window. One SQL query for each class where there are none.
    """
    if any(table.column(f"{size}.ok").any() for size in table.sizes):
        return None
    failed = sum(int(table.column(f"{size}.failed").sum()) for size in table.sizes)
    return all_failed(failed) if failed else no_results(table.sizes, now, longer)


def all_failed(tests: int) -> Notice:
    noun = "test" if tests == 1 else "tests"
    return Notice(
        "all-failed",
        "Every test in this window failed.",
        f"{format_count(tests)} {noun} ran and none succeeded. The page of each link lists its "
        "errors by where they happened.",
    )


def no_results(sizes: list[str], now: datetime, longer: str) -> Notice:
    lasts = [last for size in sizes if (last := registry.read_last(size))]
    sentence = "There has never been a result."
    if lasts:
        newest = max(lasts)
        sentence = f"The last was {format_age(now - newest)}, at {format_minute(newest)}."
    links = (("Show the last 90 days", longer),)
    return Notice("no-results", "No results in this window.", sentence, links)


def nothing_found(drop: str, drop_all: str) -> Notice:
    """Say that no link is left; ``drop`` and ``drop_all`` lead to where more of them are."""
    links = (("Clear the search and the column filters", drop),)
    return Notice(
        "nothing-found",
        "No link matches the search and the column filters.",
        "There are links, but none matches all of them.",
        (*links, ("Clear all filters", drop_all)) if drop_all else links,
    )
