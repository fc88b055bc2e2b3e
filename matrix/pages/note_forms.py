"""What people send from pages: notes, and which site is theirs."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from matrix.http.my_site import MY_SITE, remember
from matrix.http.page_rights import for_whom, holders, readers
from matrix.query.addresses import address
from matrix.store.notes import WRITE, NoteForm
from sonar.models import Site
from sonar.people import roles


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
