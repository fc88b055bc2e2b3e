"""The views that an account keeps: listed, saved, renamed and deleted, by forms alone."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import cache_control

from matrix.http.my_site import my_site
from matrix.http.page_rights import accounts, for_whom
from sonar.models import SavedView
from sonar.people import saved_views
from sonar.people.saved_views import SavedViewError


@for_whom(GET=accounts, POST=accounts)
@cache_control(no_store=True, private=True)
def own_views(request: HttpRequest) -> HttpResponse:
    """Show the views of the account; keep one that is posted, and lead to its page."""
    if request.method != "POST":
        return listing(request, request.GET.get("address", ""))
    name, address = request.POST.get("name", ""), request.POST.get("address", "")
    try:
        view = saved_views.save(cast(User, request.user), name, address)
    except SavedViewError as error:
        return listing(request, address, name, f"{error} Nothing was saved.")
    return redirect(view.address)


@for_whom(POST=accounts)
def rename_view(request: HttpRequest) -> HttpResponse:
    try:
        saved_views.rename(own_view(request), request.POST.get("name", ""))
    except SavedViewError as error:
        return listing(request, sentence=f"{error} Nothing was renamed.")
    return redirect("views")


@for_whom(POST=accounts)
def delete_view(request: HttpRequest) -> HttpResponse:
    own_view(request).delete()
    return redirect("views")


def own_view(request: HttpRequest) -> SavedView:
    """Return the view that a form is about; those of others are as if they were not there."""
    # PostgreSQL keeps no text with such a character, so that no view is called so.
    name = request.POST.get("view", "").replace("\0", "")
    view = saved_views.of(cast(User, request.user)).filter(name=name).first()
    if view is None:
        raise Http404("You have no view with this name: it may already be deleted.")
    return view


def listing(
    request: HttpRequest, address: str = "", name: str = "", sentence: str = ""
) -> HttpResponse:
    context = {
        "views": saved_views.of(cast(User, request.user)),
        "address": address,
        "name": name,
        "sentence": sentence,
        "my_site": my_site(request),
    }
    return render(request, "views.html", context, status=400 if sentence else 200)
