"""Who may use the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

if TYPE_CHECKING:  # the framework imports this module while it is making APIView
    from rest_framework.views import APIView


def scopes_of(request: Request | HttpRequest) -> list[str] | None:
    """Return the scopes of the token that a request came with; None if it has none."""
    token = getattr(request, "auth", None)
    return None if token is None else list(token.scopes)


def may_read(request: Request | HttpRequest) -> bool:
    if settings.SONAR_PUBLIC_READ:
        return True
    scopes = scopes_of(request)
    return (
        bool(request.user and request.user.is_authenticated)
        if scopes is None
        else ("read" in scopes)
    )


class MayRead(BasePermission):
    """Reading is for everyone, or with SONAR_PUBLIC_READ off for those with an account.

    It never lets a writing method pass: a view that writes names its own permission.
    """

    message = "Reading needs an account here: log in first, or send a token with scope read."

    def has_permission(self, request: Request, view: APIView) -> bool:
        # A method that the view does not have passes on to its 405.
        writes = request.method not in SAFE_METHODS and request.method in view.allowed_methods
        return may_read(request) and not writes


class MayIngest(BasePermission):
    """Storing results needs a token with scope ingest, or a session with sonar.add_transfer."""

    message = "Storing results needs a token with scope ingest, or the permission add_transfer."

    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.method not in view.allowed_methods:
            return True
        scopes = scopes_of(request)
        if scopes is not None:
            return "ingest" in scopes
        return bool(request.user and request.user.has_perm("sonar.add_transfer"))
