"""Answers of the pages. A bad URL is a 400 that says why, a longer one leads to the shortest."""

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import get_conditional_response, patch_vary_headers

from matrix.http.my_site import my_site
from matrix.http.page_rights import for_whom, readers
from matrix.pages.base import Page
from matrix.pages.parts.share import permalinks
from matrix.query.forms import BadQueryError
from matrix.query.time_words import MOMENTS, in_iso
from matrix.store import registry
from matrix.store.data_version import DataVersion, snapshot
from sonar.database import reader
from sonar.people import roles
from sonar.results import store

# Parameters that a page does not know: their `names`, and a `sentence` with those that it does.
Ignored = dict[str, Any]


def showing(page: type[Page]) -> Callable[..., HttpResponseBase]:
    """Return the view of a page: for readers, whoever they are here.

    A view that calls it for some requests states itself for whom it is.
    """

    @for_whom(GET=readers)
    def view(request: HttpRequest, **path: str) -> HttpResponseBase:
        return show(request, page, path)

    return view


def show(request: HttpRequest, page: type[Page], path: dict[str, str]) -> HttpResponseBase:
    """Answer a page, or lead to the shortest address of it, or say what is wrong with this one.

    As of one moment: what changes meanwhile would not fit together.
    """
    with snapshot(of_primary=page.of_primary):
        try:
            current, ignored = read_page(page, in_iso(request.GET, timezone.now()), path)
            current = current.remembering(request.COOKIES)
        except BadQueryError as error:
            about_time = not error.errors.keys().isdisjoint(MOMENTS)
            said = {"errors": error.errors, "about_time": about_time}
            return render(request, "400.html", said, status=400)
        shortest = QueryDict(urlsplit(current.url()).query)
        if not ignored and list(request.GET.lists()) != list(shortest.lists()):
            return HttpResponseRedirect(current.url())
        response = answer(request, current, ignored)
        if ignored:
            response["Link"] = f'<{current.url()}>; rel="canonical"'
        return response


def read_page(
    page: type[Page], params: QueryDict, path: dict[str, str]
) -> tuple[Page, Ignored | None]:
    """Read the URL without the parameters that the page does not know: mail adds some of its own.

    Raises BadQueryError for a value that is not allowed.
    """
    try:
        return page.read(params, **path), None
    except BadQueryError as error:
        # No mail adds what no name can hold.
        if not error.unknown or "\0" in "".join(error.unknown):
            raise
        own = params.copy()
        for name in error.unknown:
            own.pop(name)
        sentence = " ".join(error.errors[error.unknown[0]])
        return page.read(own, **path), {"names": error.unknown, "sentence": sentence}


def answer(request: HttpRequest, page: Page, ignored: Ignored | None) -> HttpResponseBase:
    """Render the page, or nothing but a 304 if the reader has it already."""
    now = timezone.now()
    version = page.version(now)
    response: HttpResponseBase | None = None
    etag = ""
    if version:
        # For whom it is made: by account, what it may see and do, and its own site.
        stopped = registry.stopped(now)
        of_reader = f"{request.user.pk}-{roles.rights_of(request.user)}-{my_site(request)}"
        whom = f"{of_reader}{page.stamp()}{stopped and stopped.sentence(now)}"
        etag = version.shown(hashlib.sha256(whom.encode()).hexdigest()[:8]).etag
        response = get_conditional_response(request, etag=etag)
    if response is None:
        response = rendered(request, page, now, version, ignored=ignored)
    if etag:
        response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["Cookie"])
    return response


@snapshot()
def rendered(
    request: HttpRequest,
    page: Page,
    now: datetime,
    version: DataVersion | None,
    *,
    ignored: Ignored | None = None,
    status: int = 200,
    **changes: object,
) -> HttpResponse:
    """Render the page; ``changes`` stand in its context for what it says itself."""
    own = {
        "page": page,
        "now": now,
        "ignored": ignored,
        "permalinks": permalinks(page, now),
        "my_site": my_site(request),
        "as_of": reader.data_as_of(),
        "stopped": registry.stopped(now),
        "needs_token": not settings.SONAR_PUBLIC_READ,
        # Read where a page says that something is simulated.
        "made_up_until": store.until,
    }
    context = own | page.context(now, version, request.user) | changes
    return render(request, page.template, context, status=status)
