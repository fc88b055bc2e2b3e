"""One HTTP exchange with a storage server: deadlines that hold, errors that say whose they are.

urllib3 does the work (pooling, TLS, chunks). What is added here: a ``Wait`` for each exchange,
connections kept apart by credential, redirects to no stranger (``redirects``, ``peers``), foreign
errors as MoverError.
"""

import http.client
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import urllib3
from cachetools import LRUCache
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse
from urllib3.util import Timeout

from sonar.movers.base import End, MoverError, Order, Stopped, Where
from sonar.movers.file_address import host_of, place_of, web_url
from sonar.movers.http.deadlines import (
    CURRENT_WAIT,
    KEEP_ALIVE,
    PatientHTTPPool,
    PatientHTTPSPool,
    Wait,
)
from sonar.movers.http.failures import foreign_failure
from sonar.movers.http.peers import ForbiddenPeer, Route
from sonar.movers.http.redirects import STATUSES, NotFollowed, Step, following, without
from sonar.movers.messages import one_line
from sonar.movers.tcp_info import TcpConnection
from sonar.movers.watch import current

MAX_REDIRECTS = 5
MAX_ANSWER_BYTES = 64 * 1024
CONNECTIONS_KEPT = 256  # for one host; hundreds of threads may share it
CREDENTIALS_KEPT = 256
BLOCK_BYTES = 256 * 1024  # each must leave within limits.connect
FOREIGN = (HTTPError, OSError, http.client.HTTPException, UnicodeError)
"""Exceptions of urllib3, ssl and the system."""


class Body(Protocol):
    """What an upload reads from."""

    def read(self, size: int = -1) -> bytes: ...

    def seek(self, offset: int, whence: int = 0) -> int: ...


@dataclass(frozen=True)
class Request:
    """What is asked of one end; its credential is added when it is sent."""

    method: str
    end: End
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    hold_seconds: float = 0.0
    """How long its connection is kept from the next request once the answer has begun."""
    sent_by: Callable[[TcpConnection | None], None] | None = None
    """Is told of the connection by which the body went, whatever came of it."""

    @property
    def place(self) -> str:
        """Name method, host, port and path, as every message begins."""
        return f"{self.method} {place_of(self.end)}"


@dataclass(frozen=True)
class Reply:
    """A whole answer, as far as it is worth reading."""

    status: int
    headers: Mapping[str, str]
    text: str
    data_server: str = ""
    """Host and port of the server that gave it, where the endpoint redirected to another one."""


class _Upload:
    """A body that is not read on once the exchange's time is up, or the server wants no more."""

    def __init__(self, body: Body, wait: Wait) -> None:
        self._body, self._wait = body, wait

    def read(self, size: int = -1) -> bytes:
        self._wait.remaining()
        return b"" if self._wait.is_body_refused else self._body.read(size)


@contextmanager
def in_time(wait: Wait) -> Iterator[None]:
    """Let an exchange end with its wait, and with the step that it belongs to.

    What goes wrong in it once it was stopped is Stopped.
    """
    mark, span = CURRENT_WAIT.set(wait), current()
    if span:
        wait.end_by(span.end)
    try:
        with span.watch.on_stop(wait.stop) if span else nullcontext():
            yield
    except FOREIGN:
        if wait.stopped:
            raise Stopped from None
        raise
    finally:
        CURRENT_WAIT.reset(mark)
        wait.release()


class Web:
    """The connections of one mover, shared by all its threads."""

    def __init__(self) -> None:
        self._pools: LRUCache[tuple[str, str], urllib3.PoolManager] = LRUCache(CREDENTIALS_KEPT)
        self._lock = threading.Lock()

    def ask(self, request: Request, order: Order) -> Reply:
        """Make one request and read the short answer to its end, or raise MoverError."""
        limits = order.limits
        # All redirects share the time of one answer; only an upload may take longer, and a server
        # that has all of it may read the file for a checksum before it answers.
        total = limits.total if request.body else limits.connect + limits.answer
        answer = max(limits.answer, limits.checksum) if request.body else limits.answer
        wait = Wait(answer, min(total, limits.total))
        with self.open(request, order, wait) as response:
            time.sleep(request.hold_seconds)  # what is read to its end is free for others
            text = wait.route.quotable(read_text(response, request.end, wait.route))
            return Reply(response.status, response.headers, text, wait.route.data_server)

    @contextmanager
    def open(self, request: Request, order: Order, wait: Wait) -> Iterator[BaseHTTPResponse]:
        """Send a request and hold its answer open; errors within become MoverError."""
        response = None
        try:
            with in_time(wait):
                response = self._send(request, order, wait)
                yield response
        except FOREIGN as error:
            raise failure_of(error, request, wait) from error
        except ForbiddenPeer as error:
            why = f"{request.place}: the server {error}"
            raise MoverError(request.end.where, why, permanent=True) from error
        finally:
            if response is not None:
                response.close()  # of no effect on a connection that was read to its end

    def _send(self, request: Request, order: Order, wait: Wait) -> BaseHTTPResponse:
        end = request.end
        step = Step(web_url(end), {**authorization(end), **request.headers}, end.token)
        for _ in range(MAX_REDIRECTS + 1):
            try:
                response = self._pool(order.ca_bundle, step.token).urlopen(
                    request.method,
                    step.url,
                    headers=step.headers,
                    body=_Upload(request.body, wait) if request.body else None,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                    timeout=Timeout(connect=order.limits.connect, read=order.limits.answer),
                )
            finally:
                if request.sent_by:
                    request.sent_by(wait.connection())
            if response.status not in STATUSES:
                return response
            response.close()
            try:
                step = following(step, request.method, end, response, wait.route)
            except NotFollowed as refusal:
                if not (refusal.is_relayed and "Expect" in step.headers):
                    raise not_followed(request, refusal) from None
                step = replace(step, headers=without(step.headers, "expect"))
            if request.body:
                request.body.seek(0)
        raise MoverError(end.where, f"{request.place}: more than {MAX_REDIRECTS} redirects")

    def _pool(self, ca_bundle: str, token: str) -> urllib3.PoolManager:
        """Return the connections for one credential.

        Not shared between credentials: XRootD 5.5.3 grants a later request on a connection
        what an earlier one's token allowed, so a missing right would look like a right.
        """
        with self._lock:
            if (ca_bundle, token) not in self._pools:
                self._pools[ca_bundle, token] = new_pool(ca_bundle)
            return self._pools[ca_bundle, token]


def new_pool(ca_bundle: str) -> urllib3.PoolManager:
    pool = urllib3.PoolManager(
        num_pools=CREDENTIALS_KEPT,
        maxsize=CONNECTIONS_KEPT,
        blocksize=BLOCK_BYTES,
        socket_options=KEEP_ALIVE,
        ssl_context=trust(ca_bundle),
    )
    pool.pool_classes_by_scheme = {"http": PatientHTTPPool, "https": PatientHTTPSPool}
    return pool


@lru_cache(maxsize=16)
def trust(ca_bundle: str) -> ssl.SSLContext:
    """Return the TLS settings that trust this file or directory; made once, it costs 20 ms."""
    return new_trust(ca_bundle)


def new_trust(ca_bundle: str) -> ssl.SSLContext:
    """Return such settings of one's own, to which a certificate may be added."""
    directory = bool(ca_bundle) and Path(ca_bundle).is_dir()
    try:
        return ssl.create_default_context(
            cafile=None if directory else ca_bundle or None, capath=ca_bundle if directory else None
        )
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or "the file contains no certificate"
        message = f"the CA certificates {ca_bundle} cannot be used: {reason}"
        raise MoverError(Where.CONTROL, message, permanent=True) from error


def read_text(response: BaseHTTPResponse, end: End, route: Route) -> str:
    """Return the beginning of a short answer as one line."""
    # Not decoded: 64 KiB of gzip may hold 64 MiB.
    content = response.read(MAX_ANSWER_BYTES, decode_content=False)
    return one_line(content.decode("utf-8", "replace"), end.token, end.lent, *route.secrets)


def authorization(end: End) -> dict[str, str]:
    """Return the headers that say who asks."""
    return {"Authorization": f"Bearer {bearer(end, end.token)}"} if end.token else {}


def bearer(end: End, token: str) -> str:
    """Return a token of this end, fit for a header."""
    token = token.strip()
    if not token.isascii() or not token.isprintable():
        message = (
            f"the credential for {host_of(end)} is not a token: it contains unprintable characters"
        )
        raise MoverError(end.where, message, permanent=True)
    return token


def failure_of(error: Exception, request: Request, wait: Wait) -> MoverError:
    """Return what an error of urllib3, ssl or the system means for a request."""
    place, elsewhere = wait.route.named(request.place), wait.route.elsewhere
    overdue = wait.overdue(request.end, place)
    return foreign_failure(error, request.end, place, overdue, elsewhere=elsewhere)


def not_followed(request: Request, refusal: NotFollowed) -> MoverError:
    """Return the error for a redirect that leads where Sonar does not go."""
    message = f"{request.place}: the server {refusal}: redirect not followed"
    error = MoverError(request.end.where, message, permanent=True)
    error.refused_server = refusal.server
    return error
