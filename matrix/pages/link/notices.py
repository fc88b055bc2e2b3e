"""Why a link has no rate in a window, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from matrix.answers.link.report import Between
from matrix.pages.progress import until_words
from matrix.query.addresses import address
from matrix.query.matrix_query import MatrixQuery
from sonar import windows
from sonar.models import Schedule
from sonar.units import format_age, format_count
from sonar.windows import PRESET_WORDS, PRESETS, format_moment

# Turns a question into the address of the same page for it.
Address = Callable[[MatrixQuery], str]


@dataclass(frozen=True)
class LinkNotice:
    """``actions`` are texts and addresses of what to do next."""

    title: str
    sentence: str
    actions: Sequence[tuple[str, str]] = ()


def notice_for(found: Between, address: Address) -> LinkNotice | None:
    """Return what the reader must know before the numbers, if no test of the link succeeded."""
    if any(one.there.ok for one in found.classes):
        return None
    failed = sum(one.there.failed for one in found.classes)
    if failed:
        return all_failed(failed)
    if found.question.query.filters:
        return filtered(found, address)
    planned = planned_for(found)
    if found.last is None:
        return never_yet(planned, found.now) if planned else never()
    return not_in_window(found, found.last, planned, address)


def planned_for(found: Between) -> list[Schedule]:
    """Return the tests of this direction, of the size classes that are shown."""
    sizes = {one.size for one in found.classes}
    source = found.question.source.id
    return [
        one for one in found.schedules if one.source_id == source and one.size_class.name in sizes
    ]


def all_failed(failed: int) -> LinkNotice:
    many = f"All {format_count(failed)} tests" if failed > 1 else "The one test"
    return LinkNotice(
        "Nothing has come through in this window.",
        f"{many} of this link failed: there is no rate. What went wrong stands below, by where "
        "and why; if the reverse direction works, look at what differs between the two.",
        [("See the failures", "#failures")],
    )


def filtered(found: Between, address: Address) -> LinkNotice:
    return LinkNotice(
        "No result of this link passes these filters.",
        "Results that were measured in other ways are not shown.",
        [("Show all ways of measuring", address(found.question.query.replace(filters=())))],
    )


def never() -> LinkNotice:
    return LinkNotice(
        "This link is not tested.",
        "No enabled mesh has it, and it has never had a result. Add its ends to a mesh to test it.",
        [("Look at the meshes in the admin", address("admin:sonar_mesh_changelist"))],
    )


def never_yet(planned: Sequence[Schedule], now: datetime) -> LinkNotice:
    return LinkNotice("There is no result yet.", f"{next_test(planned, now)} Come back then.")


def next_test(planned: Sequence[Schedule], now: datetime) -> str:
    """Say when the next test is due and, if one had to wait, why."""
    first = min(planned, key=lambda one: one.next_due)
    due = (
        f"The next test is due {until_words(first.next_due, now)} ({format_moment(first.next_due)})"
    )
    if not first.skipped_because or first.skipped_since is None:
        return f"{due}."
    since = format_moment(first.skipped_since)
    return f"{due}; it waits since {since} because of {first.skipped_because}."


def not_in_window(
    found: Between, last: datetime, planned: Sequence[Schedule], address: Address
) -> LinkNotice:
    age = format_age(found.now - last)
    said = f"The last result of this link was {age}, at {format_moment(last)}."
    coming = next_test(planned, found.now) if planned else "No mesh tests it any more."
    words, query = window_with(found.question.query, last, found.now)
    return LinkNotice(
        "No results in this window.", f"{said} {coming}", [(f"Show {words}", address(query))]
    )


def window_with(query: MatrixQuery, last: datetime, now: datetime) -> tuple[str, MatrixQuery]:
    """Return the shortest usual window that holds a moment, else the day of it."""
    for name in PRESETS:
        window = windows.preset(name, now)
        if window.start <= last < window.end:
            return PRESET_WORDS[name], query.replace(window=name)
    day = last.replace(hour=0, minute=0, second=0, microsecond=0)
    return f"{day:%Y-%m-%d}", query.replace(window="", start=day, end=day + timedelta(days=1))
