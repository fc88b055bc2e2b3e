"""Tokens of an OpenID Connect issuer: are they its own, for whom, and until when?

Where the issuer's keys are it says itself (discovery). Both are kept for an hour, so that a token
costs no request; a key that is not known is looked for once a minute at most. One thread at a time
asks: what is known serves the others, and who knows nothing waits for a moment (`Kept`).

Requests are bounded in time, in size and in how many wait, and led nowhere else. They are of
`requests`, as allauth asks with that, too; its connections are those of movers, which hold their
deadlines (sonar.movers.http.deadlines).
"""

import io
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from threading import BoundedSemaphore, Lock
from typing import Any, Generic, TypeVar

import jwt
import orjson
import requests
from django.conf import settings
from django.core.checks import Error
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from sonar.movers.http.deadlines import CURRENT_WAIT, PatientHTTPPool, PatientHTTPSPool, Wait

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5
ANSWER_SECONDS = 5
MOST_BYTES = 1_000_000
# Of the eight threads of a web process: those who wait for no issuer have the others.
MOST_WAITING = 4
_POOLS = {"http": PatientHTTPPool, "https": PatientHTTPSPool}
_places = BoundedSemaphore(MOST_WAITING)
_has_place: ContextVar[bool] = ContextVar("has_place", default=False)


class IssuerAway(Exception):
    """The issuer does not answer, or not as one; the sentence says what it did."""


class Unfit(requests.RequestException):
    """What is not asked, or not read on; goes on after an address in a sentence."""


@contextmanager
def waiting() -> Iterator[None]:
    """Be one of the few threads that wait for an issuer; raise Unfit if there are enough.

    Who waits already needs no second place: those in the queue behind may have all others.
    """
    if _has_place.get():
        yield
        return
    if not _places.acquire(blocking=False):
        raise Unfit(f"is slow: {MOST_WAITING} other requests are already waiting for a response")
    mark = _has_place.set(True)
    try:
        yield
    finally:
        _has_place.reset(mark)
        _places.release()


class Bounded(HTTPAdapter):
    """Reads whole answers, in time and of a size; follows no redirect, and unpacks nothing."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - of its base
        super().init_poolmanager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - likewise
        manager = super().proxy_manager_for(*arguments, **named)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def send(
        self,
        request: requests.PreparedRequest,
        *arguments: Any,  # noqa: ANN401 - of its base
        **named: Any,  # noqa: ANN401
    ) -> requests.Response:
        """Send a request; raise a RequestException for whatever stands against its answer."""
        request.headers["Accept-Encoding"] = "identity"  # a little gzip may hold a lot
        wait = Wait(ANSWER_SECONDS, CONNECT_SECONDS + ANSWER_SECONDS)
        mark = CURRENT_WAIT.set(wait)
        try:
            with waiting():
                named |= {"stream": True, "timeout": (CONNECT_SECONDS, ANSWER_SECONDS)}
                response = super().send(request, *arguments, **named)
                response.raw = io.BytesIO(whole(response))
        finally:
            CURRENT_WAIT.reset(mark)
            wait.release()
        if response.is_redirect:
            raise Unfit("redirects, and Sonar does not follow redirects", response=response)
        response.encoding = "utf-8"  # else it is guessed, byte by byte
        return response


def whole(response: requests.Response) -> bytes:
    """Return all bytes of an answer, as they were sent; raise RequestException."""
    try:
        content: bytes = response.raw.read(MOST_BYTES + 1, decode_content=False)
    except (HTTPError, OSError) as error:
        raise requests.ConnectionError(error, response=response) from error
    finally:
        response.raw.close()
    if len(content) > MOST_BYTES:
        raise Unfit(f"answers with more than {MOST_BYTES:,} bytes", response=response)
    return content


def session() -> requests.Session:
    asking = requests.Session()
    for scheme in ("https://", "http://"):  # the second on this machine alone (SONAR_OIDC_ISSUER)
        asking.mount(scheme, Bounded())
    return asking


def ask(address: str) -> dict[str, Any]:
    """Return the JSON object at an address; raise IssuerAway."""
    try:
        with session() as asking:
            response = asking.get(address)
        response.raise_for_status()
        answer = orjson.loads(response.content)
    except Unfit as error:
        raise away(address, str(error)) from error
    except requests.RequestException as error:
        raise away(address, f"is not responding ({type(error).__name__})") from error
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise away(address, "did not return a JSON object")
    return answer


def away(address: str, why: str) -> IssuerAway:
    log.warning("The issuer at %s %s", address, why)
    return IssuerAway(f"{address} {why}.")


T = TypeVar("T")
KEPT_SECONDS = 3600
# Before an issuer is asked again: anybody may show a token with a key that nobody knows. Only while
# nothing at all is known of it, it is asked again soon.
KEY_PAUSE_SECONDS = 60
SILENCE_PAUSE_SECONDS = 5
# For what another thread is asking.
LONGEST_WAIT_SECONDS = 3
LEEWAY_SECONDS = 30
# No shared secrets, and never none.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
ADDRESSES = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
METHODS = "token_endpoint_auth_methods_supported"
REQUIRED = ["iss", "sub", "aud", "exp"]
REASONS: Sequence[tuple[type[Exception], str]] = (
    (jwt.ExpiredSignatureError, "the token has expired"),
    (jwt.ImmatureSignatureError, "the token is not valid yet: a clock may be wrong"),
    (jwt.InvalidAudienceError, "the token is for another audience"),
    (jwt.InvalidIssuerError, "the token comes from another issuer"),
    (
        jwt.MissingRequiredClaimError,
        f"the token lacks at least one of the required claims ({', '.join(REQUIRED)})",
    ),
    (jwt.InvalidSignatureError, "the signature of the token is not the issuer's"),
    (jwt.InvalidKeyError, "the signature of the token is not the issuer's"),
)
# What PyJWT raises for a key that lacks a field, or has one of another type than it expects.
UNREADABLE_KEYS = (jwt.PyJWTError, LookupError, TypeError, ValueError)


class TokenRefused(Exception):
    """A token that is not accepted; the sentence says why."""


class Kept(Generic[T]):
    """What an issuer said at one address, for all threads: one asks, others go on meanwhile."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._asking = Lock()  # nobody waits for it for long
        # And when by the clock of this process.
        self._said: tuple[T, float] | None = None
        self._failure = ""
        self._not_before = 0.0

    def value(self) -> T:
        """Return what was said an hour ago at most, or last; raise IssuerAway if nothing was."""
        said = self._said
        if said is None:
            return self.newest()
        is_old = time.monotonic() - said[1] > KEPT_SECONDS
        if is_old and self._may_ask():
            with suppress(IssuerAway), self._turn(0):
                self._ask_anew()
        return (self._said or said)[0]

    def newest(self) -> T:
        """Return what was said a minute ago at most; raise IssuerAway if it was not said."""
        if self._may_ask():
            with self._turn(LONGEST_WAIT_SECONDS):
                self._ask_anew()
        said = self._said
        if self._failure or said is None:
            raise IssuerAway(self._failure)
        return said[0]

    def _may_ask(self) -> bool:
        return time.monotonic() >= self._not_before

    @contextmanager
    def _turn(self, seconds: float) -> Iterator[None]:
        """Be the one thread that asks, as long as it takes; raise IssuerAway if others are it."""
        try:
            with waiting():
                if not self._asking.acquire(timeout=seconds):
                    raise IssuerAway("The issuer takes too long to respond. Try again shortly.")
                try:
                    yield
                finally:
                    self._asking.release()
        except Unfit as error:
            raise IssuerAway(f"The issuer {error}.") from error

    def _ask_anew(self) -> None:
        """Ask, unless another thread just did, and note the answer."""
        if not self._may_ask():
            return
        try:
            self._said, self._failure = (self._ask(), time.monotonic()), ""
        except IssuerAway as error:
            self._failure = str(error)
        pause = KEY_PAUSE_SECONDS if self._said else SILENCE_PAUSE_SECONDS
        self._not_before = time.monotonic() + pause


class Issuer:
    """One issuer, and what it has said of itself; for all threads."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._configuration = Kept(self._ask_configuration)
        self._keys = Kept(self._ask_keys)

    def configuration(self) -> dict[str, Any]:
        """Return what discovery says; raise IssuerAway."""
        return self._configuration.value()

    def verify(self, token: str, audience: str) -> dict[str, Any]:
        """Return the claims of a token of this issuer; raise TokenRefused or IssuerAway.

        What a header says of keys (`jwk`, `jku`, `x5u`, `x5c`) counts for nothing.
        """
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError as error:
            raise TokenRefused("the token is not a signed token (JWT)") from error
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise TokenRefused("the token is not signed with an accepted algorithm")
        issuer = self.configuration()["issuer"]
        key = self._key(header.get("kid"))
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=audience,
                issuer=issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": REQUIRED},
            )
        except jwt.PyJWTError as error:
            sentences = (said for kind, said in REASONS if isinstance(error, kind))
            raise TokenRefused(next(sentences, "the token cannot be read")) from error
        # PostgreSQL has no text with some of the others.
        if not claims["sub"].isprintable():
            raise TokenRefused("the subject (sub) of the token contains unprintable characters")
        return claims

    def _key(self, name: str | None) -> jwt.PyJWK:
        """Return the key of this name, if the issuer has it; its only one where none is named."""
        for read in (self._keys.value, self._keys.newest):
            keys = read()
            if name is not None:
                keys = [key for key in keys if key.key_id == name and key.public_key_use != "enc"]
            if len(keys) == 1 or (keys and name is not None):
                return keys[0]
        raise TokenRefused("the token is signed with a key that the issuer does not have")

    def _ask_configuration(self) -> dict[str, Any]:
        said = ask(f"{self.url}/.well-known/openid-configuration")
        name = said.get("issuer")
        if not isinstance(name, str) or name.rstrip("/") != self.url:
            raise IssuerAway(f"{self.url} identifies itself as another issuer: {name!r:.200}.")
        scheme = self.url.partition("//")[0]
        for field in ADDRESSES:
            if not re.fullmatch(f"{scheme}//[!-~]+", str(said.get(field, ""))):
                raise IssuerAway(f"{self.url} does not publish {field} over https.")
        if not isinstance(said.get(METHODS, []), list):
            raise IssuerAway(f"{self.url} does not publish {METHODS} as a list.")
        return said

    def _ask_keys(self) -> list[jwt.PyJWK]:
        try:
            return jwt.PyJWKSet.from_dict(ask(self.configuration()["jwks_uri"])).keys
        except UNREADABLE_KEYS as error:
            raise IssuerAway("The issuer's keys cannot be read.") from error


@lru_cache(maxsize=4)
def issuer_at(url: str) -> Issuer:
    return Issuer(url)


def the_issuer() -> Issuer:
    """Return the issuer of the settings, of which there must be one."""
    return issuer_at(settings.SONAR_OIDC_ISSUER)


def check(**_: object) -> list[Error]:
    """Let `check --deploy` end with an issuer that does not answer: it may be nobody's way in."""
    if not settings.SONAR_OIDC_ISSUER:
        return []
    try:
        Issuer(settings.SONAR_OIDC_ISSUER).configuration()
    except IssuerAway as error:
        return [Error(f"SONAR_OIDC_ISSUER: {error}", id="sonar.E002")]
    return []
