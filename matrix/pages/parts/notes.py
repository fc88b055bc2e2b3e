"""Notes as pages list them, and what people send from any page: a note, which site is theirs."""

from collections.abc import Iterable
from datetime import datetime
from typing import cast

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from matrix.http.my_site import MY_SITE, remember
from matrix.http.page_rights import for_whom, holders, readers
from matrix.pages.base import QueryPage
from matrix.query.addresses import address
from matrix.query.comparison import LONGEST_AROUND
from matrix.store.notes import WRITE, NoteForm
from sonar.models import Annotation, Site
from sonar.people import roles

COMPARE_SINCE = "Compare with the previous 7 days"


def note_lines(
    page: QueryPage, notes: Iterable[Annotation], now: datetime
) -> list[tuple[Annotation, str]]:
    """Return each note with the page before and after it; empty if there is nothing on a side."""
    return [(note, around_url(page, note.starts_at, now)) for note in notes]


def around_url(page: QueryPage, moment: datetime, now: datetime) -> str:
    """Return the page of the time since a moment and of as much before it, if there is any."""
    try:
        return page.asking(page.query.around(moment, now)).url()
    except ValueError:
        return ""


def since_url(page: QueryPage, moment: datetime, now: datetime) -> str:
    """Return the page of the time since something changed, against LONGEST_AROUND before it.

    What has just begun has few tests: as few before it could not tell it from chance.
    """
    return page.asking(page.query.around(moment, now, LONGEST_AROUND)).url()


def back(request: HttpRequest, otherwise: str = "") -> HttpResponseRedirect:
    """Lead back to the page that a form was on, or else to another; never to another host."""
    path = request.POST.get("next", "")
    is_own = url_has_allowed_host_and_scheme(path, allowed_hosts=None) and path.startswith("/")
    return HttpResponseRedirect(path if is_own else otherwise or address("matrix"))


@for_whom(POST=holders(WRITE))
def add_note(request: HttpRequest) -> HttpResponse:
    """Keep a note on a site or a link; a site admin writes on its own sites and their links."""
    author = cast(User, request.user)
    form = NoteForm(request.POST)
    if not form.is_valid():
        return render(request, "400.html", {"errors": form.sentences()}, status=400)
    if not roles.may(author, WRITE, form.sites()):
        raise PermissionDenied
    form.instance.author = author
    form.save()
    return back(request)


@for_whom(POST=readers)
def choose_my_site(request: HttpRequest) -> HttpResponse:
    """Keep in a cookie which site is the reader's, or forget it for an empty name."""
    name = request.POST.get("site", "")
    if name and ("\0" in name or not Site.objects.filter(name=name).exists()):
        sentence = f"site “{name}” is not known: use the name of a registered site."
        return render(request, "400.html", {"errors": {"site": [sentence]}}, status=400)
    response = back(request)
    if name:
        remember(request, response, name)
    else:
        response.delete_cookie(MY_SITE, samesite="Lax")
    return response
