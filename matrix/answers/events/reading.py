"""Select the events of a time range, and describe the events of today in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Self

from matrix.answers.conditions.reading import Judgement, members_q, open_sizes, read_window
from matrix.answers.events.event import FASTER, RECOVERED, SCOPES, SLOWER, TYPES, Event, events_of
from matrix.answers.site.reports import Report
from matrix.answers.words.names import NO_NAMES
from matrix.query.filters import LINK_FILTERS, Filter, words_of
from matrix.query.filters import alternatives as grouped
from matrix.query.forms import (
    BadQueryError,
    Texts,
    check_names,
    one_of,
    read_number,
    text_of,
)
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store.keyset import Cursor
from sonar.models import SizeClass
from sonar.notation.units import format_count
from sonar.notation.windows import EARLIEST, Window, format_minute, format_time, parse_time

EVENT_FIELDS = ("size", "type", "scope", "factor", "now", "significant", "since")
EVENT_NAMES = ("window", "from", "to", *LINK_FILTERS, *EVENT_FIELDS)
NOW = ("yes", "no")
LASTING_WORDS = {"": "", "yes": "only ongoing events", "no": "only ended events"}
SIGNIFICANT = ("yes", "any")
MOST_FACTOR = 1000
EVENT_TYPE_WORDS = {
    "slower": "Slowdowns",
    "faster": "Speed-ups",
    "failing": "Failures",
    "silent": "Periods without results",
    "recovered": "Recoveries",
}
SCOPE_WORDS = {
    "link": "of individual links",
    "source": "of endpoints as sources",
    "destination": "of endpoints as destinations",
    "endpoint": "of endpoints in both directions",
    "site": "of sites",
    "grid": "of the whole grid",
}


def page_of(
    events: Sequence[Event], count: int, after: Cursor | None = None
) -> tuple[list[Event], Cursor | None]:
    """Return a page of events, newest first, and where the next one begins if there is one."""
    if after is not None:
        events = [event for event in events if (event.at, event.id) < (after.moment, after.id)]
    page = list(events[:count])
    return page, Cursor(page[-1].at, page[-1].id) if len(events) > count else None


@dataclass(frozen=True)
class EventsQuestion:
    """A selection of events; ``query`` has only the time range and the filters.

    Empty values match any event. ``with_unconfirmed`` adds the unconfirmed ones, ``now`` selects
    by whether they last, and ``since`` replaces the time range: from then up to now.
    """

    query: MatrixQuery
    size: str = ""
    type: str = ""
    scope: str = ""
    factor: str = ""
    with_unconfirmed: bool = False
    now: str = ""
    since: datetime | None = None

    @classmethod
    def read(cls, params: Texts, also: Sequence[str] = ()) -> Self:
        """Read URL parameters; raise BadQueryError. Those in ``also`` belong to the caller."""
        check_names(params, (*EVENT_NAMES, *also))
        query = MatrixQuery.from_params(params, also=(*EVENT_FIELDS, *also))
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        return cls(
            query,
            size=one_of(params, "size", sizes),
            type=one_of(params, "type", TYPES),
            scope=one_of(params, "scope", SCOPES),
            factor=factor_of(params),
            now=one_of(params, "now", NOW),
            with_unconfirmed=one_of(params, "significant", SIGNIFICANT) == "any",
            since=since_of(params),
        )

    def to_params(self) -> dict[str, list[str]]:
        own = {name: getattr(self, name) for name in ("size", "type", "scope", "factor", "now")} | {
            "significant": "any" if self.with_unconfirmed else "",
            "since": format_time(self.since) if self.since else "",
        }
        return self.query.to_params() | {name: [text] for name, text in own.items() if text}

    def window_at(self, now: datetime) -> Window:
        if self.since:
            end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
            return Window(min(self.since, end - timedelta(minutes=1)), end)
        return self.query.window_at(now)

    def read_events(
        self, places: Sequence[EndpointInfo], now: datetime
    ) -> tuple[list[Event], Judgement]:
        """Read the events of its time range and filters, newest first, whatever else it asks."""
        judgement = read_window(self.window_at(now), members_q(self.query.filters, places))
        return events_of(judgement), judgement

    def chosen(self, events: Iterable[Event]) -> list[Event]:
        """Return those that match its size class, type, scope, `now` and `significant`."""
        now, factor = self.now == NOW[0], float(self.factor or 1)
        return [
            event
            for event in events
            # Of what lasts, those classes count in which it does.
            if (not self.size or self.size in (open_sizes(event.condition) if now else event.sizes))
            and (not self.type or event.type == self.type)
            and (not self.scope or event.scope == self.scope)
            and (not self.factor or event.changed_by(factor))
            and (not self.now or event.lasts == now)
            and (self.with_unconfirmed or event.is_significant)
        ]

    def describe(self) -> str:
        """Say the question as a sentence without a full stop, leaving out what is empty."""
        parts = [
            EVENT_TYPE_WORDS.get(self.type, "Events")
            + (f" {SCOPE_WORDS[self.scope]}" if self.scope else "")
            + (f" with {self.size} files" if self.size else ""),
            f"since {format_minute(self.since)}" if self.since else self.query.window_words(),
            f"by a factor of at least {self.factor}" if self.factor else "",
            LASTING_WORDS[self.now],
            *map(words_of, grouped(self.query.filters)),
            "including unconfirmed events" if self.with_unconfirmed else "",
        ]
        return ", ".join(filter(None, parts))


def factor_of(params: Texts) -> str:
    """Return the smallest factor, or nothing for 1, which leaves out no event."""
    text = text_of(params, "factor")
    try:
        factor = read_number(text) if text else 1.0
    except ValueError:
        factor = 0.0
    if not 1 <= factor <= MOST_FACTOR:
        allowed = f"a number from 1 to {MOST_FACTOR}, for example, 1.5"
        raise BadQueryError({"factor": [f"“factor” is “{text}”, which is not {allowed}."]})
    return "" if factor == 1 else f"{factor:g}"


def since_of(params: Texts) -> datetime | None:
    text = text_of(params, "since")
    if not text:
        return None
    if clash := next((name for name in ("window", "from", "to") if params.get(name)), None):
        sentence = f"“since” cannot be combined with “{clash}”: use one of the two."
        raise BadQueryError({"since": [sentence]})
    try:
        moment = parse_time(text)
    except ValueError:
        moment = EARLIEST - timedelta(days=1)
    if moment < EARLIEST:
        sentence = (
            f"“since” is “{text}”, which is not a time: use ISO 8601 in UTC, for example, "
            "2026-11-20T04:00:00Z."
        )
        raise BadQueryError({"since": [sentence]})
    return moment.replace(microsecond=0)


MOST_TODAY = 3
WEIGHT = {type_: at for at, type_ in enumerate(("failing", "silent", SLOWER, RECOVERED, FASTER))}


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
        if event.is_significant and max(event.since, event.until or event.since) >= start
    ]
    if not of_day:
        return "Today: no new events so far"
    first = sorted(of_day, key=weight)
    said = [
        f"{event.words(short)}{f' until {event.until:%H:%M}' if event.until else ''}"
        for event in first[:most]
    ]
    rest = len(first) - len(said)
    more = f" and {format_count(rest)} more" if rest else ""
    return f"Today: {', '.join(said)}{more}"


def weight(event: Event) -> tuple[int, int, float]:
    factor = event.factor[0] if event.factor else 1.0
    return WEIGHT[event.type], -SCOPES.index(event.scope), factor
