"""Why the link table is empty or bare, and what to do about it."""

from datetime import datetime

from matrix.answers.table.link_table import LinkTable
from matrix.answers.words.phrases import counted
from matrix.pages.parts.notices import Notice, no_endpoints
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
    if not count:
        return no_endpoints()
    meshes = address("admin:sonar_mesh_changelist")
    return Notice(
        "no-mesh",
        "No mesh tests any link.",
        f"{format_count(count)} endpoints are registered, but no enabled mesh has an interval, "
        "and nothing was recorded in this window.",
        (("An administrator can add a mesh in the admin", meshes),),
    )


def about_results(table: LinkTable, now: datetime, longer: str) -> Notice | None:
    """Say so if no link has a result, or none that is ok.

    ``longer`` leads to the longest window. One SQL query for each class where there are none.
    """
    if any(table.column(f"{size}.ok").any() for size in table.sizes):
        return None
    failed = sum(int(table.column(f"{size}.failed").sum()) for size in table.sizes)
    if failed:
        return Notice(
            "all-failed",
            "Every test in this window failed.",
            f"{counted(failed, 'test')} ran and none succeeded. The page of "
            "each link lists its errors by where they happened.",
        )
    lasts = [last for size in table.sizes if (last := registry.read_last(size))]
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
