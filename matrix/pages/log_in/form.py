"""The page of the log-in, and names with passwords.

Log-in leads back to where it began; a site admin who came from nowhere lands on the own site.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse

from matrix.pages.log_in.landing import front_of, offers, refused, remember_own_site

NO_PASSWORDS = "Names and passwords are not accepted here."


class LogIn(LoginView):
    """Django's view, which follows `next` to addresses of this Sonar alone."""

    template_name = "login.html"

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not settings.SONAR_PASSWORDS:
            return refused(request, NO_PASSWORDS, next_url=self.get_redirect_url())
        return super().post(request, *args, **kwargs)

    def get_context_data(self, **kwargs: object) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        return context | offers(self.get_redirect_url())

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        # The session may be one that a log-in elsewhere has begun.
        self.request.session.set_expiry(None)
        remember_own_site(self.request, response)
        return response

    def get_default_redirect_url(self) -> str:
        return front_of(self.request)
