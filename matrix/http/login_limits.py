"""Wrong passwords: only so many from one address, and for one account, before a pause."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import PermissionDenied
from django.dispatch import receiver
from django.http import HttpRequest

from matrix.http import throttling
from matrix.http.throttling import Rate, TooOften, address, left

# An account may be tried from more places than one, so that nobody locks its owner out alone.
FROM_ADDRESS = Rate(10, 300)
FOR_ACCOUNT = Rate(50, 300)
# Each keeps a session for ten minutes; a whole institute may have one address.
BEGUN_ELSEWHERE = Rate(60, 300)


def tried(request: HttpRequest, account: str) -> Iterator[tuple[str, Rate]]:
    """Give the counts that a wrong password adds to; the account is named as it is looked up."""
    yield f"login:address:{address(request)}", FROM_ADDRESS
    yield f"login:account:{account}", FOR_ACCOUNT


@receiver(user_login_failed)
def remember(
    credentials: Mapping[str, Any], request: HttpRequest | None = None, **_: object
) -> None:
    if request is not None:
        for name, rate in tried(request, str(credentials.get("username", ""))):
            throttling.counts.add(name, rate.seconds)


def count_log_in_elsewhere(request: HttpRequest) -> None:
    """Count a log-in that begins here and goes on elsewhere; raise TooOften for one too many."""
    rate = BEGUN_ELSEWHERE
    if throttling.counts.add(f"login:elsewhere:{address(request)}", rate.seconds) > rate.most:
        wait = left(rate.seconds)
        sentence = f"Too many log-ins were begun from your address: try again in {wait} s."
        raise TooOften(sentence, wait)


class LimitedPasswords:
    """Goes before the backend that compares passwords, and lets none be tried too often.

    Django asks it with the name that it then looks up, and counts failures by: whatever a form
    makes of what was sent, both are the same name. It knows no account itself.
    """

    def authenticate(self, request: HttpRequest | None, username: str = "", **_: object) -> None:
        """Raise TooOften where too many wrong passwords were sent before.

        Raises PermissionDenied, which ends it for all backends, where no password is accepted.
        """
        if not settings.SONAR_PASSWORDS:
            raise PermissionDenied
        if request is None:
            return
        for name, rate in tried(request, username):
            if throttling.counts.get(name, rate.seconds) >= rate.most:
                wait = left(rate.seconds)
                sentence = f"Too many wrong passwords were sent: try again in {wait} s."
                raise TooOften(sentence, wait)
