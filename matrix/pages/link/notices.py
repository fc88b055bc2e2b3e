"""What to do next where a window of a link has no test, or is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from matrix.answers.link.report import LinkReport
from matrix.pages.progress import until_words
from matrix.query.addresses import address
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo, pauses_of
from sonar.models import Schedule
from sonar.models.testing_times import end_words
from sonar.notation import windows
from sonar.notation.windows import PRESET_WORDS, PRESETS, format_day, format_minute
from sonar.obstacles.catalogue import waits_because_of

# Turns a question into the address of the same page for it.
UrlOf = Callable[[MatrixQuery], str]


@dataclass(frozen=True)
class Advice:
    """What a reader may do next: ``links`` are texts and addresses."""

    sentence: str = ""
    links: Sequence[tuple[str, str]] = ()


def advice_for(answer: LinkReport, url_of: UrlOf) -> Advice:
    """Return what follows the verdict: what to do about a window without a test, or one long over.

    Nothing where the page below has all there is to see.
    """
    query, planned = answer.question.query, planned_for(answer)
    if any(line.there.tests for line in answer.classes):
        return now_instead(answer, url_of)
    if query.filters:
        everything = url_of(query.replace(filters=()))
        return Advice(links=[("Show all tests, however they were made", everything)])
    if answer.last:
        return not_in_window(answer, answer.last, planned, url_of)
    if planned:
        return Advice(f"{next_test(answer, planned)} Come back then.")
    meshes = ("Look at the meshes in the admin", address("admin:sonar_mesh_changelist"))
    return Advice("An administrator can add it to a mesh.", [meshes])


def now_instead(answer: LinkReport, url_of: UrlOf) -> Advice:
    if answer.now_or_end == answer.now:
        return Advice()
    newest = answer.question.query.replace(window=MatrixQuery.window)
    return Advice(links=[("How it is now", url_of(newest))])


def planned_for(answer: LinkReport) -> list[Schedule]:
    """Return the tests of this direction, of the size classes that are shown."""
    sizes = {line.size for line in answer.classes}
    source = answer.question.source.id
    return [
        schedule
        for schedule in answer.schedules
        if schedule.source_id == source and schedule.size_class.name in sizes
    ]


def paused_sites(ends: Iterable[EndpointInfo], now: datetime) -> list[str]:
    """Say of each site that has paused its tests since when, until when, and why."""
    return [
        f"{site} has paused its tests since {format_minute(pause.since)}, "
        f"{end_words(pause.until)}: {pause.reason}."
        for site, pause in pauses_of(ends, now).items()
    ]


def next_test(answer: LinkReport, planned: Sequence[Schedule]) -> str:
    """Say when the next test is due and, if one had to wait, why."""
    now = answer.now
    first = min(planned, key=lambda schedule: schedule.next_due)
    until = until_words(first.next_due, now)
    when = until if until.startswith("overdue") else f"due {until}"
    due = f"The next test is {when} ({format_minute(first.next_due)})"
    why = waits_because_of(first, now)
    if not why:
        return f"{due}."
    if first.skipped_since is None:
        return f"{due}; it will wait because of {why}."
    since = format_minute(first.skipped_since)
    return f"{due}; it has been waiting since {since} because of {why}."


def not_in_window(
    answer: LinkReport, last: datetime, planned: Sequence[Schedule], url_of: UrlOf
) -> Advice:
    coming = next_test(answer, planned) if planned else "No mesh tests it any more."
    words, query = window_with(answer.question.query, last, answer.now)
    return Advice(coming, [(f"Show {words}", url_of(query))])


def window_with(query: MatrixQuery, last: datetime, now: datetime) -> tuple[str, MatrixQuery]:
    """Return the shortest usual window that holds a moment, else the day of it."""
    for name in PRESETS:
        window = windows.preset(name, now)
        if window.start <= last < window.end:
            return PRESET_WORDS[name], query.replace(window=name)
    day = last.replace(hour=0, minute=0, second=0, microsecond=0)
    return format_day(day), query.replace(window="", start=day, end=day + timedelta(days=1))
