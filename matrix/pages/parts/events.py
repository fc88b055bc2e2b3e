"""Events as pages list them, those of a link or a site, and the sentence of today."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any, Self

from matrix.answers.conditions import words
from matrix.answers.conditions.reading import is_now
from matrix.answers.events import reading
from matrix.answers.events.event import Event, events_of
from matrix.answers.events.nearby import notes_near
from matrix.answers.events.reading import events_of_site
from matrix.answers.link.report import LinkReport
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.site.reports import Report
from matrix.answers.words.names import NO_NAMES, short_names_of
from matrix.answers.words.phrases import counted
from matrix.plots.sparkline import share_of
from matrix.query.addresses import address
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import registry
from matrix.store.written_near import WrittenNear
from sonar.notation.units import factor_and_interval, format_factor
from sonar.notation.windows import format_day, short_time

SCOPE_WORDS = {
    "link": "link",
    "source": "source",
    "destination": "destination",
    "endpoint": "endpoint",
    "site": "site",
    "grid": "grid",
}
NOTHING = WrittenNear([], [])
# A page of something else shows so many of them.
MOST = 8


def event_row(
    event: Event,
    now: datetime,
    all_sizes: Sequence[str],
    short: Mapping[str, str] = NO_NAMES,
    near: WrittenNear = NOTHING,
) -> dict[str, Any]:
    """Return the cells of an event as of ``now``: ``short`` names, notes and downtimes near it.

    `full_where` has the full names and the direction, for the tooltip. `scope` adds the number of
    affected links, and the size classes unless all are affected. `gauge` has the positions of
    factor, low and high in percent of its width; a factor of 1 is in the middle.
    """
    condition = event.condition
    missing = [size for size in all_sizes if size not in event.sizes]
    sizes = links = ""
    if missing and len(all_sizes) > 1:
        only = f", only {' and '.join(event.sizes)}"
        sizes = f", not {missing[0]}" if len(missing) == 1 < len(event.sizes) else only
    if event.scope != "link":
        affected = words.affected_links(event.scope, condition.links, condition.of_links)
        links = f", {affected}"
    factor = interval = ""
    gauge = None
    if event.factor:
        value, low, high = event.factor
        factor = format_factor(value, low or None, high or None).partition(" ")[0]
        interval = factor_and_interval(value, low, high)[1] if low and high else ""
        gauge = {"at": place(value), "low": place(low or value), "high": place(high or value)}
    tests = "" if event.type == "silent" else counted(event.tests, "test")
    if event.type in ("failing", "recovered"):
        tests = f"{tests} failed"
    confirmed = "confirmed" if event.is_significant else "unconfirmed"
    began = words.since(condition).partition(" until ")[0].partition(" ")[2]
    return {
        "event": event,
        "where": event.where(short),
        "full_where": words.subject(condition),
        "scope": f"{SCOPE_WORDS[event.scope]}{links}{sizes}",
        "lasts": lasting_words(event, now),
        "factor": "fails" if event.type == "failing" else factor,
        "interval": interval,
        "gauge": gauge,
        "evidence": ", ".join(filter(None, (confirmed, tests))),
        "between": f"began {began.removesuffix(' UTC')} UTC",
        "url": event.url(now),
        "comparison_url": event.comparison_url(now) if event.factor else "",
        "near": notes_near(event, event.sites, near),
    }


def lasting_words(event: Event, now: datetime) -> str:
    """Say for how long it has lasted, or until when it did."""
    if event.until is None:
        return f"ongoing for {long_words(now - event.since)}"
    if event.type == "recovered":
        return f"failed for {long_words(event.until - event.since)}"
    same_day = event.until.date() == event.since.date()
    return f"until {f'{event.until:%H:%M}' if same_day else short_time(event.until)}"


def by_day(
    rows: Iterable[dict[str, Any]], today: date
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the rows of each UTC day with its name: `Today, Wed 25 Nov`."""
    for day, of_day in groupby(rows, lambda row: row["event"].at.date()):
        listed = list(of_day)
        name = {0: "Today, ", 1: "Yesterday, "}.get((today - day).days, "")
        yield f"{name}{day:%a} {format_day(listed[0]['event'].at, today.year)}", listed


def place(factor: float) -> float:
    return round(50 + 50 * share_of(factor), 1)


def long_words(span: timedelta) -> str:
    """Write how long something lasts to two units: `5 h 20 min`, `3 d 4 h`, `12 min`."""
    minutes = max(int(span.total_seconds() // 60), 0)
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{rest} min"


@dataclass(frozen=True)
class EventsPart:
    """The newest events of a page of something else, and the page of all that are like them.

    ``events`` are all of its time range, ``rows`` the newest confirmed ones, ``unconfirmed`` those
    of the others.
    """

    events: list[Event]
    rows: list[dict[str, Any]]
    url: str
    unconfirmed: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, answer: LinkReport | Report, places: Sequence[EndpointInfo], now: datetime) -> Self:
        """Read the events of the links of a page, and of the whole grid. Two SQL queries."""
        if isinstance(answer, LinkReport):
            source, destination = answer.question.ends
            events, sizes = events_of(answer.judgement), [part.size for part in answer.classes]
            filters = [
                Filter("destination_endpoint", destination.name),
                Filter("source_endpoint", source.name),
            ]
        else:
            events, sizes = events_of_site(answer), [*answer.sites]
            filters = [Filter("site", answer.name)]
        short = short_names_of(places)
        rows, unconfirmed = (
            [
                event_row(event, now, sizes, short)
                for event in [each for each in events if each.is_significant == is_significant][
                    :MOST
                ]
            ]
            for is_significant in (True, False)
        )
        query = MatrixQuery(
            window="", start=answer.window.start, end=answer.window.end, filters=tuple(filters)
        )
        url = query.url(address("events"))
        return cls(events, rows, url, unconfirmed)


def todays_sentence(grid: Grid, now: datetime, most: int) -> str:
    """Say the worst of what happened today to the links of a matrix that reaches up to now.

    At most ``most`` confirmed events are named. It is nothing for a matrix that ends earlier, nor
    does it say that there is nothing new where there is nothing at all.
    """
    query = grid.query
    if not is_now(grid.window, now):
        return ""
    places = registry.read_places(grid.version)
    events = reading.read(reading.day_of(now), places, query.filters)
    if not (events or grid.has_results):
        return ""
    return f"{reading.today_words(events, now, short_names_of(places), most)}."
