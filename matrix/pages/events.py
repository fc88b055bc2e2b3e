"""The Events page, and what it shares with the list of incidents."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Self, TypeVar

from django.conf import settings
from django.http import QueryDict

from matrix.answers.conditions import words
from matrix.answers.conditions.reading import is_now
from matrix.answers.events import reading
from matrix.answers.events.event import SCOPES, TYPES, Event
from matrix.answers.events.reading import SCOPE_WORDS, EventsQuestion, page_of
from matrix.answers.incidents.questions import IncidentCursor, IncidentsQuestion
from matrix.answers.words.names import short_names_of
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
from matrix.query.forms import BadQueryError, Texts
from matrix.query.matrix_query import MatrixQuery
from matrix.store import registry
from matrix.store.data_version import DataVersion
from matrix.store.keyset import Cursor
from matrix.store.written_near import WrittenNear
from sonar.notation.endpoint_attributes import OF_ENDPOINTS
from sonar.notation.units import format_count
from sonar.notation.windows import Window
from sonar.people.roles import Anyone

PER_PAGE = 50
OWN = ("before", *forms.FILTER_FORM)
ENDS = {"either": "from or to", "source": "from", "destination": "to"}
LASTING = {"": "ongoing and ended", "yes": "only ongoing", "no": "only ended"}
# A question that leaves out only unconfirmed events.
ANY = {"size": "", "type": "", "scope": "", "factor": "", "now": "", "with_unconfirmed": False}
# Limit of the list of unconfirmed events.
MOST_APART = 20
Question = TypeVar("Question", EventsQuestion, IncidentsQuestion)
Place = TypeVar("Place", Cursor, IncidentCursor)


@dataclass(frozen=True)
class QuestionPage(QueryPage, Generic[Question, Place]):
    """A list: its ``question`` has the query of the page, with what this page alone asks for.

    It shows what comes after the place ``before``.
    """

    question: Question
    before: Place | None = None

    @classmethod
    def of(cls, question: Question, params: Texts, parse: Callable[[str], Place]) -> Self:
        """Return the page of a question, after the place that `before` names."""
        text = next(iter(params.get("before", ())), "")
        try:
            return cls(question.query, question, parse(text) if text else None)
        except (ValueError, OverflowError):
            sentence = (
                f"“before” is “{text[:80]}”, which is not a position in the list of {cls.route}: "
                "open the list, then follow its links."
            )
            raise BadQueryError({"before": [sentence]}) from None

    def params(self) -> Params:
        before = {"before": [str(self.before)]} if self.before else {}
        return replace(self.question, query=self.query).to_params() | before

    def asking(self, query: MatrixQuery) -> Self:
        return self.questioning(query=query)

    def questioning(self, **changed: Any) -> Self:  # noqa: ANN401 - any of the fields
        question = replace(self.question, **changed)
        return replace(self, query=question.query, question=question, before=None)

    def choice(self, label: str, title: str = "", **changed: object) -> Choice:
        """Return a position of a switch; it is chosen if the question is so already."""
        chosen = all(getattr(self.question, name) == value for name, value in changed.items())
        return Choice(label, self.questioning(**changed).url(), chosen, title)

    def other_pages(self, further: Place | None) -> dict[str, Any]:
        """Return the addresses of other pages, and of the call that has what the page shows."""
        first = replace(self, before=None).url()
        return {
            "further": replace(self, before=further).url() if further else "",
            "first": first if self.before else "",
            "share": Share.of(first.replace(self.path(), address(f"api-{self.route}"), 1)),
        }


@dataclass(frozen=True)
class EventsPage(QuestionPage[EventsQuestion, Cursor]):
    template: ClassVar[str] = "events.html"
    route = "events"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        lists = forms.with_filter_form(params)
        return cls.of(EventsQuestion.read(lists, OWN), lists, Cursor.parse_numbered)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        places = registry.read_places(registry.read_versions())
        sizes, window = reading.size_names(), self.question.window_at(now)
        events, judgement = self.question.read_events(places, now)
        counted = replace(self.question, type="").chosen(events)
        chosen = self.question.chosen(counted)
        listed, further = page_of(chosen, PER_PAGE, self.before)
        with_apart = replace(self.question, with_unconfirmed=True).chosen(events)
        apart = (
            []
            if self.question.with_unconfirmed
            else [each for each in with_apart if not each.is_significant]
        )
        short = short_names_of(places)
        near = WrittenNear.read(listed, reader)
        rows = [event_row(event, now, sizes, short, near) for event in listed]
        unconfirmed = [event_row(event, now, sizes, short) for event in apart[:MOST_APART]]
        doubtful = judgement.doubtful
        return {
            "heading": self.question.describe(),
            "sentence": reading.today_words(chosen, now, short) if is_now(window, now) else "",
            "doubtful": words.doubtful(doubtful) if doubtful else "",
            "days": list(by_day(rows, now.date())),
            "unconfirmed": unconfirmed,
            "more_unconfirmed": max(len(apart) - MOST_APART, 0),
            "unconfirmed_url": self.questioning(with_unconfirmed=True).url(),
            "assessed": words.as_of(judgement),
            "is_late": judgement.is_late,
            "has_any": judgement.as_of is not None,
            "assess_every": long_words(timedelta(seconds=settings.SONAR_INCIDENTS_SECONDS)),
            "simulated": any(place.simulated for place in places if not place.retired),
            "unfiltered": self.questioning(
                query=MatrixQuery(window="90d"), since=None, **ANY
            ).url(),
            **self.other_pages(further),
            **self.controls(window, sizes, counted),
        }

    def controls(
        self, window: Window, sizes: Sequence[str], events: Sequence[Event]
    ) -> dict[str, Any]:
        """Return the controls of the page; types have the number of ``events``."""
        question, counts = self.question, Counter(event.type for event in events)
        titles = {name: attribute.title for name, attribute in OF_ENDPOINTS.items()}
        return {
            "types": [
                self.choice(f"{type_ or 'all'} {format_count(number)}", type=type_)
                for type_, number in (("", len(events)), *((name, counts[name]) for name in TYPES))
            ],
            "sizes": [self.choice(size or "all sizes", size=size) for size in ("", *sizes)],
            "scopes": [
                self.choice(scope or "any", SCOPE_WORDS.get(scope, ""), scope=scope)
                for scope in ("", *SCOPES)
            ],
            "lasting": [self.choice(words, now=value) for value, words in LASTING.items()],
            "confirmations": [
                self.choice("list unconfirmed events separately", with_unconfirmed=False),
                self.choice("include unconfirmed events", with_unconfirmed=True),
            ],
            "of_words": ", ".join(filter(None, (question.scope or "any", question.size))),
            "lasting_words": LASTING[question.now]
            + ", including unconfirmed" * question.with_unconfirmed,
            "windows": [] if question.since else window_choices(self),
            "bounds": bounds_of(self, window),
            "chips": filter_chips(self),
            "kept": kept(self, ("before",)),
            # The fields of the form that adds a filter, except its value.
            "adds": [
                select("filter_end", "only links", ENDS, "either", ENDS),
                select("filter_on", "", titles, next(iter(titles)), titles),
            ],
        }
