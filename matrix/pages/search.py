"""The search page, which also is the list below the search box of every page."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase

from matrix.answers.search import LONGEST, MOST_MATCHES, find
from matrix.http.page_rights import for_whom, readers
from matrix.pages.base import Page, Params
from matrix.pages.views import showing
from matrix.query.forms import BadQueryError, check_names
from matrix.store.data_version import DataVersion
from sonar.people.roles import Anyone


@dataclass(frozen=True)
class SearchPage(Page):
    text: str
    most: int = MOST_MATCHES

    template = "search.html"
    route = "search"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params, ["q"])
        text = params.get("q", "").strip()
        if len(text) > LONGEST or "\0" in text:
            raise BadQueryError({"q": [f"“q” must be at most {LONGEST} printable characters."]})
        return cls(text)

    def params(self) -> Params:
        return {"q": [self.text]} if self.text else {}

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        findings = find(self.text)
        more = findings.more or len(findings.matches) > self.most
        return {"text": self.text, "matches": findings.matches[: self.most], "more": more}


@dataclass(frozen=True)
class SearchList(SearchPage):
    """The list below the search box of every page, short enough to be seen whole."""

    most: int = 10


@for_whom(GET=readers)
def search(request: HttpRequest) -> HttpResponseBase:
    """Lead on where only one thing was found, unless a script asks for the list as one types."""
    if "HX-Request" in request.headers:
        return showing(SearchList)(request)
    only = find(request.GET.get("q", "").replace("\0", "")).only
    if only:
        return HttpResponseRedirect(only.url)
    return showing(SearchPage)(request)
