"""Events as pages list them, those of a link or a site, and the sentence of today."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any, Self

from django.utils.text import capfirst

from matrix.answers.changes.lines import notes_near
from matrix.answers.events import reading
from matrix.answers.events.event import Event
from matrix.answers.events.questions import EventsQuestion
from matrix.answers.events.reading import UNKNOWN, Present, events_of_link, events_of_site
from matrix.answers.link.report import LinkReport
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.site.reports import Report
from matrix.answers.words.names import NO_NAMES, short_names_of
from matrix.answers.words.phrases import counted
from matrix.plots.sparkline import course_of, share_of
from matrix.query.addresses import address
from matrix.query.filters import Filter, on_links, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import registry
from matrix.store.changes import WrittenNear
from sonar.notation.units import factor_and_interval, format_factor
from sonar.notation.windows import format_day, short_time

LEVEL_WORDS = {
    "link": "link",
    "source": "sends",
    "destination": "receives",
    "endpoint": "both ways",
    "site": "site",
    "grid": "all links",
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
    """Return an event as of ``now``, with names that are ``short`` and what was written near it.

    `full_where` are the whole names and the direction, for who points at it. `level` also says
    which size classes it is of, if not all. `gauge` are the places of factor, low and high in
    percent, where the middle is 1.
    """
    where = event.where(short)
    full_where = f"{event.where()} {event.role}".strip()
    if event.level == "link":
        full_where = "from {} to {}".format(*(end.name for end in event.ends))
    missing = [size for size in all_sizes if size not in event.sizes]
    sizes = ""
    if missing and len(all_sizes) > 1:
        only = f", only {' and '.join(event.sizes)}"
        sizes = f", not {missing[0]}" if len(missing) == 1 < len(event.sizes) else only
    factor = interval = ""
    gauge = None
    if event.factor:
        value, low, high = event.factor
        factor = format_factor(value, low or None, high or None).partition(" ")[0]
        interval = factor_and_interval(value, low, high)[1] if low and high else ""
        gauge = {"at": place(value), "low": place(low or value), "high": place(high or value)}
    certainty = counted(event.tests, "test")
    if event.kind in ("failing", "recovered"):
        certainty = f"{certainty} failed"
    else:
        certainty = f"certain, {certainty}" if event.is_certain else f"not certain: {certainty}"
    first, last = (short_time(at) for at in (event.earliest, event.latest))
    return {
        "event": event,
        "where": capfirst(where) if event.level == "grid" else where,
        "full_where": full_where,
        "level": f"{LEVEL_WORDS[event.level]}{sizes}",
        "course": course_of(event),
        "lasts": lasting_words(event, now),
        "factor": "fails" if event.kind == "failing" else factor,
        "interval": interval,
        "gauge": gauge,
        "certainty": certainty,
        # Between which tests it began, where that is known.
        "between": f"began between {first} and {last} UTC"
        if first != last
        else f"began {last} UTC",
        "url": event.url(now),
        "comparison_url": event.comparison_url(now) if event.factor else "",
        "near": notes_near(event, event.sites, near),
    }


def lasting_words(event: Event, now: datetime) -> str:
    """Say for how long it has lasted, or until when it did."""
    if event.until is None:
        return f"now, for {long_words(now - event.since)}"
    if event.kind == "recovered":
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
    """The newest events of a page of something else, and the page of all that are like them."""

    events: list[Event]
    rows: list[dict[str, Any]]
    url: str

    @classmethod
    def of(cls, answer: LinkReport | Report, places: Sequence[EndpointInfo], now: datetime) -> Self:
        """Read those of a link or a site, of its ends, and of all links. Three SQL queries."""
        if isinstance(answer, LinkReport):
            source, destination = answer.question.ends
            events, sizes = events_of_link(answer), [part.size for part in answer.classes]
            filters = [
                Filter("destination_endpoint", destination.name),
                Filter("source_endpoint", source.name),
            ]
        else:
            events, sizes = events_of_site(answer), [*answer.sites]
            filters = [Filter("site", answer.name)]
        short = short_names_of(places)
        rows = [event_row(event, now, sizes, short) for event in events[:MOST]]
        query = MatrixQuery(
            window="", start=answer.window.start, end=answer.window.end, filters=tuple(filters)
        )
        return cls(events, rows, query.url(address("events"), certain="any"))


def todays_sentence(grid: Grid, now: datetime, most: int) -> str:
    """Say the worst of what happened today to the links of a matrix that reaches up to now.

    At most ``most`` events are named. It is nothing for a matrix that ends earlier.

    Nor that there is nothing new where there is nothing at all. What goes on is known of its size
    class, where each cell is a link; of the others what the search has found. Results of some ways
    of measuring alone have no sentence.
    """
    query = grid.query
    if grid.window.end < now or on_profiles(query.filters):
        return ""
    places = registry.read_places(grid.version)
    of_links = (query.rows, query.columns) == ("endpoint", "endpoint")
    present = Present.of_grids([grid], places) if of_links else UNKNOWN
    events = reading.read(reading.window_of(now), places, reading.size_names(), present)
    question = EventsQuestion(MatrixQuery(filters=tuple(on_links(query.filters))))
    chosen = list(question.chosen(events, places))
    if not (chosen or grid.has_results):
        return ""
    return f"{reading.today_words(chosen, now, short_names_of(places), most)}."
