"""The events of a time range, which are its conditions, and the sentence of today."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time

from matrix.answers.conditions.reading import members_q, read_window
from matrix.answers.events.event import FASTER, LEVELS, RECOVERED, SLOWER, Event, events_of
from matrix.answers.link.report import LinkReport
from matrix.answers.site.reports import Report
from matrix.answers.words.names import NO_NAMES
from matrix.query.filters import Filter
from matrix.statistics.cells.axes import EndpointInfo
from sonar.models import SizeClass
from sonar.notation.units import format_count
from sonar.notation.windows import Window

# More are counted.
MOST_TODAY = 3
# The worst kind first.
WEIGHT = {kind: at for at, kind in enumerate(("failing", "silent", SLOWER, RECOVERED, FASTER))}


def size_names() -> list[str]:
    """Return the size classes, smallest first. One SQL query."""
    return list(SizeClass.objects.values_list("name", flat=True))


def read(
    window: Window,
    places: Sequence[EndpointInfo],
    filters: Sequence[Filter] = (),
    *,
    as_at_end: bool = False,
) -> list[Event]:
    """Return the events that overlap a time range, newest first.

    ``filters`` on sites, clouds and so on choose them by the links that they are of. Where they are
    to be as they were ``as_at_end`` of the time range, what ended later lasts.
    """
    judgement = read_window(window, members_q(filters, places))
    for condition in judgement.conditions if as_at_end else []:
        if condition.ended_at and condition.ended_at > judgement.moment:
            condition.ended_at = None
    return events_of(judgement)


def events_of_link(answer: LinkReport) -> list[Event]:
    """Return the events that a link has a part in, and those of the whole grid."""
    return events_of(answer.judgement)


def events_of_site(report: Report) -> list[Event]:
    """Read the events of the links of a site, and of the whole grid."""
    return read(report.window, report.all_endpoints, [Filter("site", report.name)])


def day_of(now: datetime) -> Window:
    """Return the UTC day so far; a window is not empty."""
    midnight = datetime.combine(now, time(), now.tzinfo)
    return Window(midnight, max(now, midnight.replace(microsecond=1)))


def today_words(
    events: Iterable[Event],
    now: datetime,
    short: Mapping[str, str] = NO_NAMES,
    most: int = MOST_TODAY,
) -> str:
    """Say the confirmed events that began or ended today, the worst first."""
    start = day_of(now).start
    of_day = [
        event
        for event in events
        if event.is_certain and max(event.since, event.until or event.since) >= start
    ]
    if not of_day:
        return "Today: nothing new so far"
    first = sorted(of_day, key=weight)
    said = [
        f"{event.words(short)}{f' until {event.until:%H:%M}' if event.until else ''}"
        for event in first[:most]
    ]
    rest = len(first) - len(said)
    more = f" and {format_count(rest)} more" if rest else ""
    return f"Today: {', '.join(said)}{more}"


def weight(event: Event) -> tuple[int, int, float]:
    """Return what sorts events by how much they matter."""
    factor = event.factor[0] if event.factor else 1.0
    return WEIGHT[event.kind], -LEVELS.index(event.level), factor
