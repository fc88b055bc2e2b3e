"""Who may use the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

if TYPE_CHECKING:  # the framework imports this module while it is making APIView
    from rest_framework.views import APIView


def may_read(request: Request | HttpRequest) -> bool:
    return bool(settings.SONAR_PUBLIC_READ or (request.user and request.user.is_authenticated))


class MayRead(BasePermission):
    """Reading is for everyone, or with SONAR_PUBLIC_READ off for those with an account.

    It never lets a writing method pass: a view that writes names its own permission.
    """

    message = "Reading needs an account here: log in first."

    def has_permission(self, request: Request, view: APIView) -> bool:
        # A method that the view does not have passes on to its 405.
        writes = request.method not in SAFE_METHODS and request.method in view.allowed_methods
        return may_read(request) and not writes
