"""The page of events: what happened in the whole grid, each thing once, newest first."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from django.conf import settings
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase

from matrix.answers.events import reading
from matrix.answers.events.event import KINDS, LEVELS, Event
from matrix.answers.events.questions import LEVEL_WORDS, EventCursor, EventsQuestion, page_of
from matrix.answers.words.names import short_names_of
from matrix.http.page_rights import for_whom, readers
from matrix.pages.base import Params, QueryPage
from matrix.pages.parts.controls import (
    Choice,
    bounds_of,
    filter_chips,
    kept,
    select,
    window_choices,
)
from matrix.pages.parts.events import by_day, event_row, long_words
from matrix.pages.parts.share import Share
from matrix.query import forms
from matrix.query.addresses import address
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.samples.newest import NEWEST
from matrix.store import changes, registry
from matrix.store.changes import WrittenNear
from matrix.store.data_version import DataVersion
from sonar.models import ChangeSearch
from sonar.notation.endpoint_attributes import OF_ENDPOINTS
from sonar.notation.units import format_age, format_count
from sonar.notation.windows import Window
from sonar.people.roles import Anyone

PER_PAGE = 50
OWN = ("before", *forms.FILTER_FORM)
ENDS = {"either": "from or to", "source": "from", "destination": "to"}
LASTING = {"": "now and ended", "yes": "only now", "no": "only ended"}
# A question that leaves nothing out but what is not certain.
ANY = {"size": "", "kind": "", "level": "", "now": "", "unsure": False}
# A search that is later than this many of its intervals is not coming.
LATE = 3
# A change shows with so many successful tests before it, and since.
FEWEST_TESTS = 5


@dataclass(frozen=True)
class EventsPage(QueryPage):
    """``question`` has the query of the page, with what this page alone asks for."""

    template: ClassVar[str] = "events.html"
    nav = route = "events"

    question: EventsQuestion
    before: EventCursor | None = None

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        lists = forms.with_filter_form(params)
        question = EventsQuestion.read(lists, OWN)
        return cls(question.query, question, cursor_of(lists))

    def params(self) -> Params:
        before = {"before": [str(self.before)]} if self.before else {}
        return self.question.replace(query=self.query).to_params() | before

    def asking(self, query: MatrixQuery) -> Self:
        return self.questioning(query=query)

    def questioning(self, **changed: object) -> Self:
        """Return the first page of another question."""
        question = self.question.replace(**changed)
        return dataclasses.replace(self, query=question.query, question=question, before=None)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        places = registry.read_places(registry.read_versions())
        sizes, window = reading.size_names(), self.question.window_at(now)
        is_past = window.end < now
        events, present = reading.events_at(window, now, places, sizes)
        of_kinds = self.question.replace(kind="", unsure=True).chosen(events, places)
        chosen = self.question.chosen(of_kinds, places)
        inside = [event for event in chosen if window.start <= event.at]
        listed, further = page_of(inside, PER_PAGE, self.before)
        short = short_names_of(places)
        searches = changes.searches()
        near = WrittenNear.read(listed, reader)
        rows = [event_row(event, now, sizes, short, near) for event in listed]
        longest = timedelta(seconds=LATE * settings.SONAR_CHANGES_SECONDS)
        certain = [event for event in of_kinds if event.is_certain or self.question.unsure]
        return {
            "heading": self.question.describe(),
            "sentence": "" if is_past else reading.today_words(chosen, now, short),
            "going_on": reading.lasting_words(chosen, window.start),
            "going_on_url": self.questioning(
                query=self.query.replace(window="90d"), now="yes", since=None
            ).url(),
            "days": list(by_day(rows, now.date())),
            "further": dataclasses.replace(self, before=further).url() if further else "",
            "first": dataclasses.replace(self, before=None).url() if self.before else "",
            "unsure": sum(not event.is_certain for event in of_kinds if window.start <= event.at),
            "unsure_url": self.questioning(unsure=True).url(),
            "searched": searched_words(searches, places, now),
            # From which day on; nothing if never.
            "searched_since": f"{min(search.start for search in searches):%-d %b %Y}"
            if searches
            else "",
            "search_every": long_words(timedelta(seconds=settings.SONAR_CHANGES_SECONDS)),
            # A search that has never run is not overdue, yet.
            "is_late": any(now - search.searched_at > longest for search in searches),
            "soonest": soonest(present.shortest_promise),
            "has_any": bool(searches) or bool(events),
            "simulated": any(place.simulated for place in places if not place.retired),
            "unfiltered": self.questioning(
                query=MatrixQuery(window="90d"), since=None, **ANY
            ).url(),
            # The call that has what the page shows.
            "share": Share.of(
                dataclasses.replace(self, before=None)
                .url()
                .replace(self.path(), address("api-events"), 1)
            ),
            **self.controls(now, window, sizes, certain),
        }

    def controls(
        self, now: datetime, window: Window, sizes: Sequence[str], events: Sequence[Event]
    ) -> dict[str, Any]:
        """Return what can be changed about the question; kinds with the number of ``events``."""
        question = self.question
        counts = reading.by_kind([event for event in events if window.start <= event.at])
        total = sum(counts.values())
        titles = {name: attribute.title for name, attribute in OF_ENDPOINTS.items()}
        return {
            "kinds": [
                self.choice(f"{kind or 'all'} {format_count(counts.get(kind, total))}", kind=kind)
                for kind in ("", *KINDS)
            ],
            "sizes": [self.choice(size or "all sizes", size=size) for size in ("", *sizes)],
            "levels": [
                self.choice(level or "anything", LEVEL_WORDS.get(level, ""), level=level)
                for level in ("", *LEVELS)
            ],
            "lasting": [self.choice(words, now=value) for value, words in LASTING.items()],
            "certainties": [
                self.choice("certain", unsure=False),
                self.choice("certain or not", unsure=True),
            ],
            "of_words": ", ".join(filter(None, (question.level or "anything", question.size))),
            "lasting_words": LASTING[question.now] + ", uncertain too" * question.unsure,
            "windows": [] if question.since else window_choices(self),
            "bounds": bounds_of(self, window),
            "chips": filter_chips(self),
            "kept": kept(self, ("before",)),
            # The fields that add a filter, but for its value.
            "adds": [
                select("filter_end", "only links", ENDS, "either", ENDS),
                select("filter_on", "", titles, next(iter(titles)), titles),
            ],
        }

    def choice(self, words: str, title: str = "", **changed: object) -> Choice:
        """Return a position of a switch; it is chosen if the question is so already."""
        chosen = all(getattr(self.question, name) == value for name, value in changed.items())
        return Choice(words, self.questioning(**changed).url(), chosen, title)


def cursor_of(params: Mapping[str, Sequence[str]]) -> EventCursor | None:
    text = next(iter(params.get("before", ())), "")
    try:
        return EventCursor.parse(text) if text else None
    except (ValueError, OverflowError):
        sentence = "before is not a place in the list of events: follow a link to it."
        raise BadQueryError({"before": [sentence]}) from None


def searched_words(
    searches: Sequence[ChangeSearch], places: Sequence[EndpointInfo], now: datetime
) -> str:
    """Say when results were last searched, and what of; nothing if never."""
    if not searches:
        return ""
    oldest = min(search.searched_at for search in searches)
    used = [place for place in places if not place.retired]
    endpoints, sites = len(used), len({place.site for place in used})
    return (
        f"Searched {format_age(now - oldest)}: results of {format_count(endpoints)} endpoints at "
        f"{format_count(sites)} sites, with {len(searches)} file sizes"
    )


def soonest(promise: float) -> tuple[str, str] | None:
    """Say after how long a failing link shows, and one that is slower: None without a schedule.

    ``promise`` is the shortest interval of a test in seconds.
    """
    if math.isinf(promise):
        return None
    failing, slower = (timedelta(seconds=promise * tests) for tests in (NEWEST, 2 * FEWEST_TESTS))
    return long_words(failing), long_words(slower)


# What it had that events have by another name, and what they do not have.
RENAMED = {"level": "kind", "kind": "level", "sure": "certain"}
GONE = ("factor", "before")


@for_whom(GET=readers)
def former_changes(request: HttpRequest) -> HttpResponseBase:
    """Lead on, for bookmarks and links in tickets, with the same question."""
    params = request.GET.copy()
    params.clear()
    for name, texts in request.GET.lists():
        if name not in GONE:
            params.setlist(RENAMED.get(name, name), texts)
    query = params.urlencode(safe=":!")
    return HttpResponseRedirect(f"{address('events')}{'?' if query else ''}{query}")
