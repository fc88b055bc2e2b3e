"""One HTTP exchange with a storage server: deadlines that hold, errors that say whose they are.

urllib3 does the work (pooling, TLS, chunks). What is added here: a ``Wait`` for each exchange,
connections kept apart by credential, redirects that leak none, foreign errors as MoverError.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import urljoin

import urllib3
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse
from urllib3.util import Timeout, parse_url

from sonar.movers.base import End, MoverError, Order, Stopped, Where
from sonar.movers.http_failures import foreign_failure
from sonar.movers.http_patience import (
    CURRENT_WAIT,
    KEEP_ALIVE,
    PatientHTTPPool,
    PatientHTTPSPool,
    Wait,
)
from sonar.movers.spans import current
from sonar.movers.web_address import PORTS, host_of, one_line, place_of, web_url

MAX_REDIRECTS = 5
MAX_ANSWER_BYTES = 64 * 1024
CONNECTIONS_KEPT = 256  # for one host; hundreds of threads may share it
CREDENTIALS_KEPT = 256
BLOCK_BYTES = 256 * 1024  # each must leave within limits.connect


class Body(Protocol):
    """What an upload reads from."""

    len: int

    def read(self, size: int = -1) -> bytes: ...

    def seek(self, offset: int, whence: int = 0) -> int: ...


@dataclass(frozen=True)
class Request:
    """What is asked of one end; its credential is added when it is sent."""

    method: str
    end: End
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None

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


class _Upload:
    """A body that is not read on once the exchange's time is up."""

    def __init__(self, body: Body, wait: Wait) -> None:
        self._body, self._wait = body, wait

    def read(self, size: int = -1) -> bytes:
        self._wait.remaining()
        return self._body.read(size)


class Web:
    """The connections of one mover, shared by all its threads."""

    def __init__(self) -> None:
        self._pools: OrderedDict[tuple[str, str], urllib3.PoolManager] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, request: Request, order: Order) -> Reply:
        """Make one request and read the short answer to its end, or raise MoverError."""
        limits = order.limits
        # All redirects share the time of one answer; only an upload may take longer.
        total = limits.total if request.body else limits.connect + limits.answer
        wait = Wait(limits.answer, min(total, limits.total))
        with self.open(request, order, wait) as response:
            return Reply(response.status, response.headers, read_text(response, request.end))

    @contextmanager
    def open(self, request: Request, order: Order, wait: Wait) -> Iterator[BaseHTTPResponse]:
        """Send a request and hold its answer open; errors within become MoverError."""
        mark, response, span = CURRENT_WAIT.set(wait), None, current()
        if span:
            wait.end_by(span.end)
        try:
            with span.watch.on_stop(wait.stop) if span else nullcontext():
                response = self._send(request, order, wait)
                yield response
        except (HTTPError, OSError, http.client.HTTPException, UnicodeError) as error:
            if wait.stopped:
                raise Stopped from None
            overdue = wait.overdue(request.end, request.place)
            raise foreign_failure(error, request.end, request.place, overdue) from error
        finally:
            CURRENT_WAIT.reset(mark)
            wait.release()
            if response is not None:
                response.close()  # of no effect on a connection that was read to its end

    def _send(self, request: Request, order: Order, wait: Wait) -> BaseHTTPResponse:
        end, url = request.end, web_url(request.end)
        headers = {**authorization(end), **request.headers}
        pool = self._pool(order.ca_bundle, end.token)
        for _ in range(MAX_REDIRECTS):
            response = pool.urlopen(
                request.method,
                url,
                headers=headers,
                body=_Upload(request.body, wait) if request.body else None,
                redirect=False,
                retries=False,
                preload_content=False,
                timeout=Timeout(connect=order.limits.connect, read=order.limits.answer),
            )
            location = response.get_redirect_location()
            if not location:
                return response
            response.close()
            url, headers = redirected(url, location, headers, end)
            if request.body:
                request.body.seek(0)
        raise MoverError(end.where, f"{request.place}: more than {MAX_REDIRECTS} redirects")

    def _pool(self, ca_bundle: str, token: str) -> urllib3.PoolManager:
        """Return the connections for one credential.

        Not shared between credentials: XRootD 5.5.3 grants a later request on a connection
        what an earlier one's token allowed, so a missing right would look like a right.
        """
        with self._lock:
            pool = self._pools.pop((ca_bundle, token), None) or new_pool(ca_bundle)
            self._pools[ca_bundle, token] = pool
            while len(self._pools) > CREDENTIALS_KEPT:
                self._pools.popitem(last=False)
        return pool


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
    directory = bool(ca_bundle) and Path(ca_bundle).is_dir()
    try:
        return ssl.create_default_context(
            cafile=None if directory else ca_bundle or None,
            capath=ca_bundle if directory else None,
        )
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or "it holds no certificate"
        message = f"the CA certificates {ca_bundle} cannot be used: {reason}"
        raise MoverError(Where.CONTROL, message, permanent=True) from error


def read_text(response: BaseHTTPResponse, end: End) -> str:
    """Return the beginning of a short answer as one line."""
    # Not decoded: 64 KiB of gzip may hold 64 MiB.
    content = response.read(MAX_ANSWER_BYTES, decode_content=False)
    return one_line(content.decode("utf-8", "replace"), end.token)


def authorization(end: End) -> dict[str, str]:
    """Return the headers that say who asks."""
    return {"Authorization": f"Bearer {bearer(end, end.token)}"} if end.token else {}


def bearer(end: End, token: str) -> str:
    """Return a token of this end, fit for a header."""
    token = token.strip()
    if not token.isascii() or not token.isprintable():
        message = f"the credential for {host_of(end)} is no token: it holds unprintable characters"
        raise MoverError(end.where, message, permanent=True)
    return token


def redirected(
    url: str, location: str, headers: dict[str, str], end: End
) -> tuple[str, dict[str, str]]:
    """Return where a redirect leads and what may be sent there; never from https to http."""
    try:
        target = urljoin(url, location)
        before, after = parse_url(url), parse_url(target)
    except ValueError as error:  # not a URL at all, to either of the two
        message = f"{host_of(end)} redirects to what is no URL: {one_line(location, end.token)}"
        raise MoverError(end.where, message, permanent=True) from error
    if after.scheme not in PORTS or (before.scheme == "https" and after.scheme != "https"):
        message = f"{host_of(end)} redirects from {before.scheme} to {after.scheme}: not followed"
        raise MoverError(end.where, message, permanent=True)
    if before.netloc != after.netloc:
        headers = {name: value for name, value in headers.items() if name != "Authorization"}
    return target, headers
