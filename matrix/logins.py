"""Wrong passwords: only so many from one address, and for one account, before a pause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib.auth.signals import user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from matrix.api import throttles
from matrix.api.throttles import Rate, TooOften, address, left
from matrix.errors import refusal

# An account may be tried from more places than one, so that nobody locks its owner out alone.
FROM_ADDRESS = Rate(10, 300)
FOR_ACCOUNT = Rate(50, 300)
LOGINS = ("login", "admin:login")


def tried(request: HttpRequest, account: str) -> Iterator[tuple[str, Rate]]:
    """Give the counts that a wrong password adds to."""
    yield f"login:address:{address(request)}", FROM_ADDRESS
    yield f"login:account:{account}", FOR_ACCOUNT


@receiver(user_login_failed)
def remember(
    credentials: Mapping[str, Any], request: HttpRequest | None = None, **_: object
) -> None:
    if request is not None:
        for name, rate in tried(request, str(credentials.get("username", ""))):
            throttles.counts.add(name, rate.seconds)


class LimitedLogins(MiddlewareMixin):
    """Answers a login with a 429 where too many wrong passwords were sent before."""

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> HttpResponse | None:
        match = request.resolver_match
        if request.method != "POST" or match is None or match.view_name not in LOGINS:
            return None
        for name, rate in tried(request, request.POST.get("username", "")):
            if throttles.counts.get(name, rate.seconds) >= rate.most:
                wait = left(rate.seconds)
                sentence = f"Too many wrong passwords were sent: try again in {wait} s."
                return refusal(request, TooOften(sentence, wait), "429.html")
        return None
