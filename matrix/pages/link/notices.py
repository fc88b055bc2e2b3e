"""Why a link has no rate in a window, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from matrix.answers.link.report import LinkReport
from matrix.pages.progress import until_words
from matrix.query.addresses import address
from matrix.query.matrix_query import MatrixQuery
from sonar import windows
from sonar.models import Schedule
from sonar.units import format_age, format_count
from sonar.windows import PRESET_WORDS, PRESETS, format_moment

# Turns a question into the address of the same page for it.
UrlOf = Callable[[MatrixQuery], str]


@dataclass(frozen=True)
class LinkNotice:
    """``actions`` are texts and addresses of what to do next."""

    title: str
    sentence: str
    actions: Sequence[tuple[str, str]] = ()


def notice_for(answer: LinkReport, url_of: UrlOf) -> LinkNotice | None:
    """Return what the reader must know before the numbers, if no test of the link succeeded."""
    if any(line.there.ok for line in answer.classes):
        return None
    failed = sum(line.there.failed for line in answer.classes)
    if failed:
        return all_failed(failed)
    query, planned = answer.question.query, planned_for(answer)
    if query.filters:
        return LinkNotice(
            "No result of this link passes these filters.",
            "Results that were measured in other ways are not shown.",
            [("Show all ways of measuring", url_of(query.replace(filters=())))],
        )
    if answer.last:
        return not_in_window(answer, answer.last, planned, url_of)
    if planned:
        coming = next_test(planned, answer.now)
        return LinkNotice("There is no result yet.", f"{coming} Come back then.")
    return LinkNotice(
        "This link is not tested.",
        "No enabled mesh has it, and it has never had a result. Add its ends to a mesh to test it.",
        [("Look at the meshes in the admin", address("admin:sonar_mesh_changelist"))],
    )


def planned_for(answer: LinkReport) -> list[Schedule]:
    """Return the tests of this direction, of the size classes that are shown."""
    sizes = {line.size for line in answer.classes}
    source = answer.question.source.id
    return [
        schedule
        for schedule in answer.schedules
        if schedule.source_id == source and schedule.size_class.name in sizes
    ]


def all_failed(failed: int) -> LinkNotice:
    many = f"All {format_count(failed)} tests" if failed > 1 else "The one test"
    return LinkNotice(
        "Nothing has come through in this window.",
        f"{many} of this link failed: there is no rate. What went wrong stands below, by where "
        "and why; if the reverse direction works, look at what differs between the two.",
        [("See the failures", "#failures")],
    )


def next_test(planned: Sequence[Schedule], now: datetime) -> str:
    """Say when the next test is due and, if one had to wait, why."""
    first = min(planned, key=lambda schedule: schedule.next_due)
    due = (
        f"The next test is due {until_words(first.next_due, now)} ({format_moment(first.next_due)})"
    )
    if not first.skipped_because or first.skipped_since is None:
        return f"{due}."
    since = format_moment(first.skipped_since)
    return f"{due}; it waits since {since} because of {first.skipped_because}."


def not_in_window(
    answer: LinkReport, last: datetime, planned: Sequence[Schedule], url_of: UrlOf
) -> LinkNotice:
    age = format_age(answer.now - last)
    sentence = f"The last result of this link was {age}, at {format_moment(last)}."
    coming = next_test(planned, answer.now) if planned else "No mesh tests it any more."
    words, query = window_with(answer.question.query, last, answer.now)
    return LinkNotice(
        "No results in this window.", f"{sentence} {coming}", [(f"Show {words}", url_of(query))]
    )


def window_with(query: MatrixQuery, last: datetime, now: datetime) -> tuple[str, MatrixQuery]:
    """Return the shortest usual window that holds a moment, else the day of it."""
    for name in PRESETS:
        window = windows.preset(name, now)
        if window.start <= last < window.end:
            return PRESET_WORDS[name], query.replace(window=name)
    day = last.replace(hour=0, minute=0, second=0, microsecond=0)
    return f"{day:%Y-%m-%d}", query.replace(window="", start=day, end=day + timedelta(days=1))
