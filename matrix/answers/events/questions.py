"""Which events somebody asks for: the parameters of the page and of the call."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self

import numpy as np

from matrix.answers.events.event import KINDS, LEVELS, Event
from matrix.query.filters import LINK_FILTERS, on_links, words_of
from matrix.query.filters import alternatives as grouped
from matrix.query.forms import BadQueryError, check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.store.changes import LEVELS as CHANGE_LEVELS
from matrix.store.changes import ChangeSelection
from sonar.models import Change, SizeClass
from sonar.notation.enumeration import either
from sonar.notation.units import three_digits
from sonar.notation.windows import EARLIEST, Window, format_minute, format_time, parse_time

EVENT_FIELDS = ("size", "kind", "level", "now", "certain", "since")
EVENT_NAMES = ("window", "from", "to", *LINK_FILTERS, *EVENT_FIELDS)
NOW = ("yes", "no")
LASTING_WORDS = {"": "", "yes": "only those going on now", "no": "only those that ended"}
CERTAIN = ("yes", "any")
EVENT_KIND_WORDS = {
    "slower": "Slowdowns",
    "faster": "Speed-ups",
    "failing": "Failures",
    "recovered": "Recoveries",
}
LEVEL_WORDS = {
    "link": "of single links",
    "source": "of endpoints that send",
    "destination": "of endpoints that receive",
    "endpoint": "of endpoints in both directions",
    "site": "of sites",
    "grid": "of the whole grid",
}

Texts = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class EventCursor:
    """The last event of a page: the next page has those that come after it."""

    at: datetime
    id: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str`` has written; raise ValueError for anything else."""
        moment, _, identity = text.partition("_")
        return cls(parse_time(moment), identity)

    @classmethod
    def of(cls, event: Event) -> Self:
        return cls(event.at, event.id)

    def __str__(self) -> str:
        moment = self.at.isoformat(timespec="microseconds").replace("+00:00", "Z")
        return f"{moment}_{self.id}"


def page_of(
    events: Sequence[Event], count: int, after: EventCursor | None = None
) -> tuple[list[Event], EventCursor | None]:
    """Return a page of events, newest first, and where the next one begins if there is one."""
    if after is not None:
        events = [event for event in events if (event.at, event.id) < (after.at, after.id)]
    page = list(events[:count])
    return page, EventCursor.of(page[-1]) if len(events) > count else None


@dataclass(frozen=True)
class Criteria:
    """``query`` has window and filters alone; of the rest, nothing means any."""

    query: MatrixQuery
    size: str = ""
    kind: str = ""
    level: str = ""
    unsure: bool = False

    def own_params(self) -> dict[str, str]:
        """Return what is asked beside the query, by the names of URL parameters."""
        return {"size": self.size, "kind": self.kind, "level": self.level}

    def to_params(self) -> dict[str, list[str]]:
        """Return the URL parameters; what is empty is left out."""
        own = self.own_params()
        return self.query.to_params() | {name: [text] for name, text in own.items() if text}

    def sentence(self, subject: str, when: str, *conditions: str) -> str:
        """Say the question without a full stop, leaving out what is empty."""
        files = f" with {self.size} files" if self.size else ""
        unsure = "uncertain ones, too" if self.unsure else ""
        return ", ".join(filter(None, [f"{subject}{files}", when, *conditions, unsure]))

    def replace(self, **changed: Any) -> Self:  # noqa: ANN401 - any of the fields
        return replace(self, **changed)


@dataclass(frozen=True)
class EventsQuestion(Criteria):
    """``now`` is whether they last, ``since`` takes the place of a window: up to now."""

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
            kind=one_of(params, "kind", KINDS),
            level=one_of(params, "level", LEVELS),
            now=one_of(params, "now", NOW),
            unsure=one_of(params, "certain", CERTAIN) == "any",
            since=since_of(params),
        )

    def own_params(self) -> dict[str, str]:
        return super().own_params() | {
            "now": self.now,
            "certain": "any" if self.unsure else "",
            "since": format_time(self.since) if self.since else "",
        }

    def window_at(self, now: datetime) -> Window:
        if self.since:
            end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
            return Window(min(self.since, end - timedelta(minutes=1)), end)
        return self.query.window_at(now)

    def chosen(self, events: Iterable[Event], places: Sequence[EndpointInfo]) -> list[Event]:
        """Return those events that are asked for, of any time."""
        passing = Passing.of(self.query, places)
        return [event for event in events if self._is_asked_for(event) and passing.has(event)]

    def _is_asked_for(self, event: Event) -> bool:
        return (
            (not self.size or self.size in event.sizes)
            and (not self.kind or event.kind == self.kind)
            and (not self.level or event.level == self.level)
            and (not self.now or (event.until is None) == (self.now == NOW[0]))
            and (self.unsure or event.is_certain)
        )

    def describe(self) -> str:
        """Say the question as a sentence without a full stop."""
        subject = EVENT_KIND_WORDS.get(self.kind, "Events")
        return self.sentence(
            f"{subject} {LEVEL_WORDS[self.level]}" if self.level else subject,
            f"since {format_minute(self.since)}" if self.since else self.query.window_words(),
            LASTING_WORDS[self.now],
            *map(words_of, grouped(self.query.filters)),
        )


@dataclass(frozen=True)
class Passing:
    """Which links, sources and destinations pass the filters of a query, by the ids of ends.

    An endpoint passes with any of its links; what is of the grid always does. ``links`` is None
    where there are no filters.
    """

    number: Mapping[int, int]
    links: Flags | None

    @classmethod
    def of(cls, query: MatrixQuery, places: Sequence[EndpointInfo]) -> Self:
        number = {place.id: at for at, place in enumerate(places)}
        index, chosen = LinkIndex(tuple(places)), on_links(query.filters)
        links = index.matching(chosen).reshape(index.shape) if chosen else None
        return cls(number, links)

    def has(self, event: Event) -> bool:
        if self.links is None or event.level == "grid":
            return True
        if event.level == "link" and event.source and event.destination:
            return bool(self.links[self.number[event.source.id], self.number[event.destination.id]])
        sends, receives = (
            [self.number[end] for part in event.parts if (end := part.ends[at])] for at in (0, 1)
        )
        return bool(np.any(self.links[sends]) or np.any(self.links[:, receives]))


def since_of(params: Texts) -> datetime | None:
    """Return the time from which on events are asked for, if one is given."""
    text = text_of(params, "since")
    if not text:
        return None
    if clash := next((name for name in ("window", "from", "to") if params.get(name)), None):
        sentence = f"since and {clash} exclude each other: use one of the two."
        raise BadQueryError({"since": [sentence]})
    try:
        moment = parse_time(text)
    except ValueError:
        moment = EARLIEST - timedelta(days=1)
    if moment < EARLIEST:
        sentence = f"since “{text}” is not a time: use ISO 8601 in UTC, like 2026-11-20T04:00:00Z."
        raise BadQueryError({"since": [sentence]})
    return moment.replace(microsecond=0)


# Changes are rare: a longer window than elsewhere.
WINDOW = "30d"
CHANGE_FIELDS = ("size", "kind", "level", "factor", "sure")
CHANGE_NAMES = ("window", "from", "to", *LINK_FILTERS, *CHANGE_FIELDS)
SURE = ("yes", "any")
MOST_FACTOR = 1000.0
CHANGE_KIND_WORDS = {
    "link": "of single links",
    "source": "of endpoints as sources",
    "destination": "of endpoints as destinations",
    "grid": "of all links together",
}


@dataclass(frozen=True)
class ChangesQuestion(Criteria):
    factor: str = ""

    @classmethod
    def read(cls, params: Texts, also: Sequence[str] = ()) -> Self:
        """Read URL parameters; raise BadQueryError. Those in ``also`` belong to the caller."""
        check_names(params, (*CHANGE_NAMES, *also))
        query = MatrixQuery.from_params(params, also=(*CHANGE_FIELDS, *also))
        bare = not any(params.get(name) for name in ("window", "from"))
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        return cls(
            query.replace(window=WINDOW) if bare else query,
            size=one_of(params, "size", sizes),
            kind=one_of(params, "kind", Change.Kind.values),
            level=one_of(params, "level", CHANGE_LEVELS),
            factor=factor_of(params),
            unsure=one_of(params, "sure", SURE) == "any",
        )

    def own_params(self) -> dict[str, str]:
        return super().own_params() | {
            "window": self.query.window,
            "factor": self.factor,
            "sure": "any" if self.unsure else "",
        }

    def selection(self, now: datetime) -> ChangeSelection:
        return ChangeSelection(
            self.query.window_at(now),
            self.size,
            (self.kind,) if self.kind else (),
            self.level,
            float(self.factor) if self.factor else 1.0,
            self.unsure,
            self.query.filters,
        )

    def describe(self) -> str:
        """Say the question as a sentence without a full stop."""
        factor = three_digits(float(self.factor)) if self.factor else ""
        return self.sentence(
            f"Changes in rate {CHANGE_KIND_WORDS[self.kind]}" if self.kind else "Changes in rate",
            self.query.window_words(),
            f"only to a {self.level} rate" if self.level else "",
            f"by a factor of at least {factor}" if factor else "",
            *(condition.words() for condition in self.query.filters),
        )


def one_of(params: Texts, name: str, allowed: Sequence[str]) -> str:
    """Return one of some words, or nothing; raise BadQueryError."""
    value = text_of(params, name)
    if value and value not in allowed:
        raise BadQueryError({name: [f"{name} “{value}” is not known: use {either(allowed)}."]})
    return value


def factor_of(params: Texts) -> str:
    """Return the smallest factor as it is written; nothing for 1, which leaves out none."""
    text = text_of(params, "factor")
    if not text:
        return ""
    number = float(text) if re.fullmatch(r"\d{1,4}(\.\d{0,6})?", text, re.ASCII) else 0.0
    if not 1 <= number <= MOST_FACTOR:
        sentence = f"factor “{text}” is not a number from 1 to {MOST_FACTOR:.0f}, like 1.5."
        raise BadQueryError({"factor": [sentence]})
    return "" if number == 1 else f"{number:g}"


def text_of(params: Texts, name: str) -> str:
    values = params.get(name, ())
    if len(values) > 1:
        raise BadQueryError({name: [f"{name} is given {len(values)} times: give it once."]})
    return values[0] if values else ""
