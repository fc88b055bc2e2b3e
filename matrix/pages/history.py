"""The page of who changed what, newest first."""

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self, cast

from django.http import HttpRequest, HttpResponse, QueryDict

from matrix.answers import registry_history
from matrix.answers.registry_history import CHANNEL_WORDS, SEE, HistoryQuestion
from matrix.http.page_rights import for_whom, holders
from matrix.pages.base import Page, Params
from matrix.pages.parts.controls import select
from matrix.pages.parts.share import Share
from matrix.pages.views import show
from matrix.query.addresses import address
from matrix.query.forms import BadQueryError
from matrix.store import keyset
from matrix.store.data_version import DataVersion
from matrix.store.keyset import Cursor
from sonar.models import HistoryEntry
from sonar.people import roles
from sonar.people.roles import Anyone

PER_PAGE = 50


@dataclass(frozen=True)
class HistoryPage(Page):
    template: ClassVar[str] = "history.html"
    route: ClassVar[str] = "history"

    question: HistoryQuestion
    before: Cursor | None = None

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        question = HistoryQuestion.read(dict(params.lists()), ["before"])
        text = next(iter(params.getlist("before")), "")
        try:
            return cls(question, Cursor.parse_numbered(text) if text else None)
        except (ValueError, OverflowError):
            sentence = (
                f"“before” is “{text[:80]}”, which is not a position in the history: open the "
                "history, then follow its links."
            )
            raise BadQueryError({"before": [sentence]}) from None

    def params(self) -> Params:
        return self.question.to_params() | ({"before": [str(self.before)]} if self.before else {})

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        question = self.question
        rows = question.rows(reader)
        entries, further = keyset.page_by_time(rows, registry_history.ORDER, PER_PAGE, self.before)
        kinds = {kind.value: kind.value for kind in HistoryEntry.Kind}
        channels = {channel.value: words for channel, words in CHANNEL_WORDS.items()}
        first = dataclasses.replace(self, before=None)
        return {
            "lines": list(registry_history.lines_of(entries)),
            "further": dataclasses.replace(self, before=further).url() if further else "",
            "first": first.url() if self.before else "",
            "unfiltered": type(self)(HistoryQuestion()).url() if question.to_params() else "",
            "selects": [
                select("kind", "kind", ["", *kinds], question.kind, {"": "anything"} | kinds),
                select(
                    "channel",
                    "channel",
                    ["", *channels],
                    question.channel,
                    {"": "any channel"} | channels,
                ),
            ],
            "bounds": question.bounds,
            "own_sites": not roles.may(reader, SEE),
            "share": Share.of(first.url().replace(self.path(), address("api-history"), 1)),
        }


@for_whom(GET=holders(SEE))
def history(request: HttpRequest) -> HttpResponse:
    return cast(HttpResponse, show(request, HistoryPage, {}))
