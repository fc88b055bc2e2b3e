"""How often one may ask, and guess: counted in Redis, over all web processes.

Each account, by its sessions and tokens together, and each address without one has a number
of requests in a period (SONAR_RATE_ACCOUNT, SONAR_RATE_ANONYMOUS). Of wrong passwords only so many
come from one address, and for one account, before a pause. While Redis is away or full each web
process counts for itself, up to the same numbers.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import PermissionDenied
from django.dispatch import receiver
from django.http import HttpRequest
from redis.exceptions import RedisError
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from sonar.notation.addresses import unmapped
from sonar.processes.redis_client import quick_client

if TYPE_CHECKING:  # the framework imports this module while it is making APIView
    from rest_framework.views import APIView

log = logging.getLogger(__name__)

# Nobody waits long for a count. Asked twice, as a restart of Redis leaves dead connections behind.
ANSWER_SECONDS, TRIES_AGAIN = 0.25, 1
# A Redis that did not answer is left alone for as long: each try could wait for its timeout.
PAUSE_SECONDS = 5
TOLD_EVERY_SECONDS = 60
WORDS = {1: "second", 60: "minute", 3600: "hour", 86_400: "day"}


class Rate(NamedTuple):
    most: int
    seconds: int

    def __str__(self) -> str:
        requests = "request" if self.most == 1 else "requests"
        return f"{self.most:,} {requests} a {WORDS.get(self.seconds, f'{self.seconds} s')}"


class TryLater(APIException):
    """An error that says when to try again; the framework makes Retry-After of ``wait``."""

    def __init__(self, sentence: str, wait_seconds: int) -> None:
        super().__init__(sentence)
        self.wait = wait_seconds


class TooOften(TryLater):
    status_code = 429


class OwnCounts:
    """What this process counts for itself: never too little, in a megabyte or so.

    Each name adds to one place in either row, and the smaller of its two numbers is its own. So
    it takes the same memory whoever asks, and nobody pushes out what others have done; among a
    thousand names one in four thousand is charged with what another one did.
    """

    PLACES = 1 << 16

    def __init__(self) -> None:
        self._lock = Lock()
        # By the length of periods, of which there are two or three: the present one and its rows.
        self._periods: dict[int, tuple[int, list[array[int]]]] = {}

    def add(self, name: str, seconds: int) -> int:
        """Count one more; return how many there were in this period."""
        return self.get(name, seconds, one_more=1)

    def get(self, name: str, seconds: int, one_more: int = 0) -> int:
        period, hashed, numbers = int(time.time() // seconds), digest(name), []
        with self._lock:
            if self._periods.get(seconds, (None,))[0] != period:
                rows = [array("I", bytes(4 * self.PLACES)) for _ in range(2)]
                self._periods[seconds] = period, rows
            for index, row in enumerate(self._periods[seconds][1]):
                place = int.from_bytes(hashed[4 * index : 4 * index + 4]) % self.PLACES
                row[place] += one_more
                numbers.append(row[place])
        return min(numbers)


class Counts:
    """Numbers by name, in periods of a fixed length that all processes share.

    While Redis is away or full this process counts for itself; what it did adds to what all
    have counted until the period is over.
    """

    def __init__(self, url: str) -> None:
        self._redis = quick_client(url, ANSWER_SECONDS, TRIES_AGAIN)
        self._own = OwnCounts()
        self._paused_until = self._told_until = 0.0

    def add(self, name: str, seconds: int) -> int:
        """Count one more; return how many there were in this period. One round trip, 0.2 ms."""
        key = self._key(name, seconds)
        both = self._redis.pipeline(transaction=False)
        both.set(key, 0, ex=seconds, nx=True)
        both.incr(key)
        shared = self._answer(lambda: both.execute()[1])
        if shared is None:
            return self._own.add(name, seconds)
        return shared + self._own.get(name, seconds)

    def get(self, name: str, seconds: int) -> int:
        shared = self._answer(lambda: self._redis.get(self._key(name, seconds)) or 0)
        return (shared or 0) + self._own.get(name, seconds)

    def _answer(self, ask: Callable[[], Any]) -> int | None:
        """Return a number that Redis answers, None while it does not."""
        if time.monotonic() < self._paused_until:
            return None
        try:
            return int(ask())
        except RedisError as error:
            self._paused_until = time.monotonic() + PAUSE_SECONDS
            if time.monotonic() >= self._told_until:
                self._told_until = time.monotonic() + TOLD_EVERY_SECONDS
                log.warning(
                    "Redis is unavailable or refuses writes (%s): this process counts requests "
                    "and wrong passwords itself.",
                    type(error).__name__,
                )
            return None

    def _key(self, name: str, seconds: int) -> str:
        # Names hold what people sent, of any length: their hash is always a key.
        return f"sonar:{digest(name).hex()[:32]}:{seconds}:{int(time.time() // seconds)}"


def digest(name: str) -> bytes:
    return hashlib.sha256(name.encode(errors="replace")).digest()


counts = Counts(settings.REDIS_URL)
# An account may be tried from more places than one, so that nobody locks its owner out alone.
FROM_ADDRESS = Rate(10, 300)
FOR_ACCOUNT = Rate(50, 300)
# Each takes a second or two of a processor.
PDFS = Rate(30, 300)
# Each keeps a session for ten minutes; a whole institute may have one address.
BEGUN_ELSEWHERE = Rate(60, 300)


def left(seconds: int) -> int:
    """Return how many seconds the present period still lasts, 1 at least."""
    return max(1, math.ceil(seconds - time.time() % seconds))


def address(request: Request | HttpRequest) -> str:
    """Return where a request came from; of an IPv6 address its network, as hosts have many."""
    ident = BaseThrottle().get_ident(request)  # type: ignore[arg-type]  # a plain one will do
    try:
        host = ip_address(ident)
    except ValueError:
        return ident
    if isinstance(host := unmapped(host), IPv6Address):
        return str(ip_network((host, 64), strict=False))
    return str(host)


class RateLimit(BaseThrottle):
    """Raises TooOften for one request too many, by account or address."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        count(request)
        return True


def count(request: Request) -> None:
    """Count a request once; raise TooOften if there were more than its sender may make."""
    if getattr(request, "is_counted", False):
        return
    request.is_counted = True  # type: ignore[attr-defined]
    limit = (
        settings.SONAR_RATE_ACCOUNT
        if request.user.is_authenticated
        else settings.SONAR_RATE_ANONYMOUS
    )
    if not limit:
        return
    rate = Rate(*limit)
    whom, name = sender(request)
    count_in(rate, f"api:{name}", f"{whom} may make at most {rate}: wait {{wait}} s.")


def sender(request: Request) -> tuple[str, str]:
    """Return who sends, for people and as a key.

    Tokens count for their account: its owner can make any number of them. The token of a person
    without an account counts for that person.
    """
    if request.user.is_authenticated and request.user.pk is not None:
        return "An account", f"account:{request.user.pk}"
    if request.auth is not None:
        return "A token", f"token:{request.auth.pk}"
    return "An IP address that sends no token", f"address:{address(request)}"


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
            counts.add(name, rate.seconds)


def count_in(rate: Rate, name: str, sentence: str) -> None:
    """Count one more by a name; raise TooOften with a sentence, which has `{wait}`, if too many."""
    if counts.add(name, rate.seconds) > rate.most:
        wait = left(rate.seconds)
        raise TooOften(sentence.format(wait=wait), wait)


def count_log_in_elsewhere(request: HttpRequest) -> None:
    """Count a log-in that begins here and goes on elsewhere."""
    sentence = "Too many log-ins were started from your address: try again in {wait} s."
    count_in(BEGUN_ELSEWHERE, f"login:elsewhere:{address(request)}", sentence)


def count_pdf(request: Request) -> None:
    whom, name = sender(request)
    sentence = f"{whom} may create at most {PDFS.most} PDFs in {PDFS.seconds // 60} minutes"
    count_in(PDFS, f"pdf:{name}", f"{sentence}: wait {{wait}} s.")


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
            if counts.get(name, rate.seconds) >= rate.most:
                wait = left(rate.seconds)
                sentence = f"Too many wrong passwords were sent: try again in {wait} s."
                raise TooOften(sentence, wait)
