"""The page of changes of level: what became slower or faster in the whole grid, newest first."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from django.conf import settings
from django.http import QueryDict

from matrix.answers.changes.lines import lines_of
from matrix.answers.changes.question import KIND_WORDS, ChangesQuestion
from matrix.pages.base import Params, QueryPage
from matrix.pages.controls import (
    Choice,
    Select,
    bounds_of,
    filter_chips,
    kept,
    select,
    window_choices,
)
from matrix.pages.share import Share
from matrix.query import filter_form
from matrix.query.addresses import address
from matrix.query.attributes import OF_ENDPOINTS
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.store import changes, registry
from matrix.store.changes import LEVELS, ChangeCursor, WrittenNear
from matrix.store.data_version import DataVersion
from sonar.models import Change, ChangeSearch, SizeClass
from sonar.roles import Anyone
from sonar.units import format_age, format_count
from sonar.windows import format_minute

PER_PAGE = 50
OWN = ("before", *filter_form.PARAMETERS)
ENDS = {"either": "from or to", "source": "from", "destination": "to"}
KINDS = {
    "": "all",
    "link": "links",
    "source": "sources",
    "destination": "destinations",
    "grid": "whole grid",
}
# A question that leaves nothing out but what is not sure.
ANY = {"size": "", "kind": "", "level": "", "factor": "", "unsure": False}
# A search that is later than this many of its intervals is not coming.
LATE = 3


@dataclass(frozen=True)
class ChangesPage(QueryPage):
    """``question`` has the query of the page, with what this page alone asks for."""

    template: ClassVar[str] = "changes.html"
    nav = route = "changes"

    question: ChangesQuestion
    before: ChangeCursor | None = None

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        lists = filter_form.added({name: list(texts) for name, texts in params.lists()})
        question = ChangesQuestion.read(lists, OWN)
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
        endpoints = registry.read_places(registry.read_versions())
        rows = self.question.selection(now).rows(endpoints)
        listed, further = changes.listing(rows, PER_PAGE, self.before)
        searches = changes.searches()
        return {
            "heading": self.question.describe(),
            "rows": [
                (line, line.url(now), line.comparison_url(now))
                for line in lines_of(listed, endpoints, WrittenNear.read(listed, reader))
            ],
            "further": dataclasses.replace(self, before=further).url() if further else "",
            "first": dataclasses.replace(self, before=None).url() if self.before else "",
            "searched": searched_words(searches, now),
            "is_late": is_late(searches, now),
            "has_any": Change.objects.exists(),
            "simulated": any(endpoint.simulated for endpoint in endpoints if not endpoint.retired),
            "unfiltered": self.questioning(query=MatrixQuery(window="90d"), **ANY).url(),
            "share": Share.of(with_params(address("api-changes"), self.params())),
            **self.controls(now),
        }

    def controls(self, now: datetime) -> dict[str, Any]:
        """Return what can be changed about the question. One SQL query."""
        question = self.question
        sizes = ["", *SizeClass.objects.values_list("name", flat=True)]
        return {
            "sizes": [
                self.choice(size or "all sizes", size == question.size, size=size) for size in sizes
            ],
            "kinds": [
                self.choice(words, kind == question.kind, KIND_WORDS.get(kind, ""), kind=kind)
                for kind, words in KINDS.items()
            ],
            "levels": [
                self.choice(level or "both", level == question.level, level=level)
                for level in ("", *LEVELS)
            ],
            "sureness": [
                self.choice(words, unsure == question.unsure, title, unsure=unsure)
                for words, unsure, title in (
                    ("sure", False, "Of these, about one in twenty is chance at most"),
                    ("all found", True, "Those, too, that so many searches may find by chance"),
                )
            ],
            "windows": window_choices(self),
            "bounds": bounds_of(self, self.query.window_at(now)),
            "chips": filter_chips(self),
            "kept": kept(self, ("before",)),
            "kept_without_factor": kept(self, ("before", "factor")),
            "adds": self.filter_selects(),
        }

    def choice(self, words: str, chosen: bool, title: str = "", **changed: object) -> Choice:
        return Choice(words, self.questioning(**changed).url(), chosen, title)

    @staticmethod
    def filter_selects() -> list[Select]:
        """Return the fields that add a filter, but for its value."""
        titles = {name: attribute.title for name, attribute in OF_ENDPOINTS.items()}
        return [
            select("filter_end", "only links", ENDS, "either", ENDS),
            select("filter_on", "", titles, next(iter(titles)), titles),
        ]


def cursor_of(params: Mapping[str, list[str]]) -> ChangeCursor | None:
    text = next(iter(params.get("before", ())), "")
    try:
        return ChangeCursor.parse(text) if text else None
    except (ValueError, OverflowError):
        sentence = "before is not a place in the list of changes: follow a link to it."
        raise BadQueryError({"before": [sentence]}) from None


def with_params(path: str, params: Params) -> str:
    text = urlencode(
        {name: texts for name, texts in params.items() if name != "before"}, True, ":!"
    )
    return f"{path}?{text}" if text else path


def searched_words(searches: list[ChangeSearch], now: datetime) -> str:
    """Say when it was last looked, and at how many sequences; nothing if never."""
    if not searches:
        return ""
    oldest = min(search.searched_at for search in searches)
    parts = [
        f"{format_count(search.sequences)} with {search.size_class.name} files"
        for search in searches
    ]
    return (
        f"Last searched {format_age(now - oldest)}, at {format_minute(oldest)}. Links and "
        f"endpoints with results enough for a change: {', '.join(parts)}."
    )


def is_late(searches: list[ChangeSearch], now: datetime) -> bool:
    """Say whether the search is overdue; one that has never run is not, yet."""
    longest = timedelta(seconds=LATE * settings.SONAR_CHANGES_SECONDS)
    return any(now - search.searched_at > longest for search in searches)
