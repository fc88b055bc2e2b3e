"""Requests to an issuer: bounded in time, in size and in how many wait, and led nowhere else.

Of `requests`, as allauth asks with that, too; its connections are those of movers, which hold
their deadlines (sonar.movers.http.deadlines).
"""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import BoundedSemaphore
from typing import Any

import orjson
import requests
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
        raise Unfit(f"is slow: {MOST_WAITING} others wait for it already")
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
            raise Unfit("redirects, which is not followed", response=response)
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
    """Return what asks an issuer, whoever asks."""
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
        raise away(address, f"does not answer ({type(error).__name__})") from error
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise away(address, "answers with no JSON object")
    return answer


def away(address: str, why: str) -> IssuerAway:
    log.warning("The issuer at %s %s", address, why)
    return IssuerAway(f"{address} {why}.")
