"""Who may use the API: roles, cut down by the scopes of a token where one is sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from matrix.http.questions import internal_filters
from sonar.people import roles
from sonar.people.roles import Anyone

if TYPE_CHECKING:  # the framework imports this module while it is making APIView
    from rest_framework.views import APIView

# For what names the machines of sites: servers, workers, logs.
MACHINES = "sonar.view_transfer"


def scopes_of(request: Request | HttpRequest) -> list[str] | None:
    """Return the scopes of the token that a request came with; None if it has none."""
    token = getattr(request, "auth", None)
    return None if token is None else list(token.scopes)


def has_scope(request: Request | HttpRequest, scope: str) -> bool:
    """Say whether a request came without a token, or with one of this scope."""
    scopes = scopes_of(request)
    return scopes is None or scope in scopes


def may_read(request: Request | HttpRequest) -> bool:
    return bool(settings.SONAR_PUBLIC_READ or reader_of(request).is_authenticated)


def reader_of(request: Request | HttpRequest) -> Anyone:
    """Return who reads: nobody in particular if the token that was sent may not read."""
    return request.user if has_scope(request, "read") else AnonymousUser()


def sees(request: Request | HttpRequest, permission: str, sites: Iterable[int] = ()) -> bool:
    """Say whether the reader has a right to what only some may see, of one of these sites."""
    return roles.may(reader_of(request), permission, sites)


def hidden_filters(request: Request | HttpRequest) -> dict[str, list[str]]:
    """Return a sentence for each filter of an address that its sender may not use, by name."""
    present = internal_filters(request.META.get("QUERY_STRING", ""))
    if not present or sees(request, MACHINES):
        return {}
    sentence = "contains host names: only operators and administrators can filter by it"
    return {name: [f"“{name}” {sentence}. Omit this filter, or log in."] for name in present}


def allow(request: Request, permission: str, sites: Iterable[int] = ()) -> None:
    """Let a call write, by its role everywhere or for one of these sites; else raise a 403."""
    if not roles.may(request.user, permission, sites):
        of_site = " for that site" if list(sites) else ""
        raise refused(request, f"Your role does not allow this{of_site}.")


def refused(request: Request, sentence: str) -> PermissionDenied | NotAuthenticated:
    """Return the error for who may not: a 401 that asks for a token, or a 403."""
    return PermissionDenied(sentence) if request.user.is_authenticated else NotAuthenticated()


class MayRead(BasePermission):
    """Reading is for everyone, or with SONAR_PUBLIC_READ off for those with an account.

    It never lets a writing method pass: a view that writes names its own permission.
    """

    message = "Reading requires an account: log in, or send a token with the scope “read”."

    def has_permission(self, request: Request, view: APIView) -> bool:
        # A method that the view does not have passes on to its 405.
        writes = request.method not in SAFE_METHODS and request.method in view.allowed_methods
        return may_read(request) and not writes


class MaySee(BasePermission):
    """Reading needs a right, for some site at least, and by a token its scope read."""

    right = ""
    message = "Your role does not allow this, or your token lacks the scope “read”."

    @classmethod
    def of(cls, right: str) -> type[MaySee]:
        return type(cls.__name__, (cls,), {"right": right})

    def has_permission(self, request: Request, view: APIView) -> bool:
        may = roles.may_somewhere(reader_of(request), self.right)
        return may or request.method not in view.allowed_methods  # which is a 405


class MayIngest(BasePermission):
    """Storing results needs the permission add_transfer and, by a token, its scope ingest."""

    message = (
        "Importing results requires the permission “add_transfer” and, for a token, the scope "
        "“ingest”."
    )

    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.method not in view.allowed_methods:
            return True
        return has_scope(request, "ingest") and request.user.has_perm("sonar.add_transfer")


class MayOperate(BasePermission):
    """Reads as MayRead says. Writing needs an account and, by a token, its scope operate.

    The account needs what the view states for the method (`needs`), for some site at least: that
    is told before the body is read. Which sites are concerned only the view knows: it asks `allow`.
    """

    message = (
        "Writing requires an account with the right to do so and, for a token, the scope “operate”."
    )

    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.method in SAFE_METHODS:
            return may_read(request)
        if request.method not in view.allowed_methods:
            return True
        if not request.user.is_authenticated or not has_scope(request, "operate"):
            return False
        if not roles.may_somewhere(request.user, cast("Any", view).needs[request.method]):
            raise PermissionDenied("Your role does not allow this.")
        return True
