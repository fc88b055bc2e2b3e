"""Who may use a page: its view states it, and it is looked at before a body is.

Django reads a form to find its CSRF token, so `RightsFirst` goes before that. Calls of the API
state theirs by permission classes (`permissions`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from matrix.http.exceptions import FormTooLarge
from matrix.http.permissions import hidden_filters, may_read
from matrix.query.addresses import address
from sonar.database import actor
from sonar.people import roles

View = TypeVar("View", bound=Callable[..., Any])
# Says whether the sender of a request may, given what its path names.
Right = Callable[..., bool]
# By the ends of their names; what else posts in the admin changes a row.
ADMIN_RIGHTS = {
    "add": "has_add_permission",
    "delete": "has_delete_permission",
    "changelist": "has_view_or_change_permission",
}


def for_whom(**rights: Right) -> Callable[[View], View]:
    """State by method who may use a view: HEAD goes with GET, and every other one is a 405."""

    def state(view: View) -> View:
        cast(Any, view).rights = rights
        return view

    return state


def accepting(most_bytes: int) -> Callable[[View], View]:
    """Let a view, which takes files, have larger forms than others."""

    def state(view: View) -> View:
        cast(Any, view).most_bytes = most_bytes
        return view

    return state


def anyone(request: HttpRequest, **path: object) -> bool:
    return True


def readers(request: HttpRequest, **path: object) -> bool:
    # Known before the page's snapshot, in which a session that has ended could not be deleted.
    return accounts(request) or may_read(request)


def accounts(request: HttpRequest, **path: object) -> bool:
    return bool(request.user.is_authenticated)


def administrators(request: HttpRequest, **path: object) -> bool:
    # As `roles.role_of` says it, without its queries: the navigation asks on every page.
    return request.user.is_active and request.user.is_superuser


def holders(permission: str, sites: Callable[..., Iterable[int]] | None = None) -> Right:
    """Return the right of who has a permission, be it for some site alone.

    ``sites`` gives the sites that a path is about, of which it must be one then. Who may nowhere
    does not learn what there is: nothing is looked up for them.
    """

    def check(request: HttpRequest, **path: object) -> bool:
        if not roles.may_somewhere(request.user, permission):
            return False
        return sites is None or roles.may(request.user, permission, sites(**path))

    return check


class RightsFirst(MiddlewareMixin):
    """Answers whoever may not; then refuses what no form here is as large as.

    And says for the history who acts, once that is known.
    """

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponse],
        arguments: list[object],
        path: dict[str, Any],
    ) -> HttpResponse | None:
        if getattr(view, "csrf_exempt", False):  # as calls of the API are
            return None
        match = request.resolver_match
        is_admin = match is not None and match.app_name == "admin"
        refusal = of_admin(request, view) if is_admin else of_page(request, view, path)
        if refusal is None and request.method == "POST":
            # Django counts no files for its limit.
            most = getattr(view, "most_bytes", settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
            length = request.META.get("CONTENT_LENGTH") or "0"
            if length.isdecimal() and int(length) > most:
                raise FormTooLarge(most)
            actor.enter("admin" if is_admin else "page", request.user.get_username())
        return refusal

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Nobody acts any more in this thread, neither by a page nor by a call."""
        actor.leave()
        return response


def of_page(
    request: HttpRequest, view: Callable[..., HttpResponse], path: Mapping[str, Any]
) -> HttpResponse | None:
    """Return the answer for who may not use a page, or raise PermissionDenied; else None."""
    rights: Mapping[str, Right] | None = getattr(view, "rights", None)
    if rights is None:
        raise ImproperlyConfigured(f"{view} does not state who can use it.")
    right = rights.get("GET" if request.method == "HEAD" else str(request.method))
    if right is None:
        return HttpResponseNotAllowed([*rights, *(["HEAD"] if "GET" in rights else [])])
    if right(request, **path):
        hidden = hidden_filters(request)
        return render(request, "400.html", {"errors": hidden}, status=403) if hidden else None
    if request.user.is_authenticated:
        raise PermissionDenied
    # After the log-in a browser comes by GET.
    return redirect_to_login(request.get_full_path() if "GET" in rights else address("matrix"))


def of_admin(request: HttpRequest, view: Callable[..., HttpResponse]) -> HttpResponse | None:
    """Say of the admin what it would say itself, which is after it has read the form."""
    name = str(request.resolver_match and request.resolver_match.url_name)
    if name in ("login", "logout"):
        return None
    if not admin.site.has_permission(request):
        return redirect_to_login(request.get_full_path(), address("admin:login"))
    model_admin = getattr(view, "model_admin", None)
    if model_admin is not None and request.method == "POST":
        check = ADMIN_RIGHTS.get(name.rpartition("_")[2], "has_change_permission")
        if not getattr(model_admin, check)(request):
            raise PermissionDenied
    return None
