"""The address of what was the page of changes: it leads to the events that it would show."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase

from matrix.http.page_rights import for_whom, readers
from matrix.query.addresses import address

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
