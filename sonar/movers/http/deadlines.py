"""Deadlines that hold: every single read of an answer asks how long it may still take.

A socket timeout alone begins anew with every byte: a server that trickles outlasts it for ever.
Here a ``Wait`` is asked before each read, headers included, and another thread may end it.
"""

from __future__ import annotations

import errno
import http.client
import io
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NameResolutionError, NewConnectionError
from urllib3.util.connection import allowed_gai_family

from sonar.movers import tcp_info
from sonar.movers.base import End, Late, MoverError
from sonar.movers.http.peers import Addresses, ForbiddenPeer, Route
from sonar.movers.tcp_info import TcpConnection

if TYPE_CHECKING:
    from typing_extensions import Buffer

# A firewall forgets a quiet connection long before a 2 GB transfer over a bad link ends.
KEEP_ALIVE = [
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
]

PIECE_BYTES = 16 * 1024
"""Size of one TLS record, by which the time for a write is counted."""
ANSWER_BUFFER_BYTES = 2048
"""Of an answer that comes in markers, for an hour perhaps: hundreds of tests hold one each."""
SHORTEST_SECONDS = 0.001
TOO_SHORT_SECONDS = 0.5
"""In which a server that is there may not be reached: it says nothing of the server."""
FIRST_REFUSAL = 400
LOOK_UP_SLICE_SECONDS = 0.1
UNKNOWN_NAME = {socket.EAI_NONAME, socket.EAI_NODATA}
"""The DNS has answered that the host, or an address of it, does not exist."""
CONTINUE_SECONDS = 1.0
"""So long a body is held back for a server that says nothing to ``Expect`` (RFC 9110, 10.1.1)."""


class Wait:
    """How long one exchange may take; asked before every read of its socket."""

    def __init__(self, answer: float, total: float) -> None:
        self.answer = answer
        self.began = self.sent_at = time.monotonic()
        self.end = self.began + total
        self.deadline = self.end
        self.stopped = self.is_shortened = False
        self.was_sent = False
        """Whether the whole request has left."""
        self.is_body_refused = False
        """Whether the server answered before it was sent the body."""
        self.route = Route()
        self._handle: socket.socket | None = None
        self._last_seen = b""
        self._lock = threading.Lock()

    def end_by(self, end: float) -> None:
        """Be over by then at the latest, whatever else is allowed."""
        self.is_shortened |= end < self.end
        self.end = min(self.end, end)
        self.deadline = min(self.deadline, end)

    def hold(self, sock: socket.socket) -> None:
        """Use this socket from now on, connected or not: a stop shuts it.

        What is held is a second handle: TLS takes the first one away while it shakes hands.
        """
        number = os.dup(sock.fileno())
        handle = socket.socket(sock.family, sock.type, sock.proto, fileno=number)
        self.release()
        with self._lock:
            self._handle = handle
        if self.stopped:
            self.stop()

    def release(self) -> None:
        """Use the socket no more: it may be somebody else's from now on."""
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                self._last_seen = tcp_info.answer_of(handle)
        if handle is not None:
            handle.close()

    def connection(self) -> TcpConnection | None:
        """Return what the kernel knows of the socket in use, or knew of the last one."""
        with self._lock:
            if self._handle is not None:
                self._last_seen = tcp_info.answer_of(self._handle)
            return tcp_info.parsed(self._last_seen)

    def sent(self) -> None:
        """Begin to wait for the answer: the request has left."""
        self.was_sent = True
        self.sent_at = time.monotonic()
        self.deadline = min(self.sent_at + self.answer, self.end)

    def hold_back(self, seconds: float) -> None:
        """Begin to wait for a server that may want the body of the request, or not."""
        self.deadline = min(time.monotonic() + seconds, self.end)

    def send_body(self) -> None:
        """Go on with the request."""
        self.was_sent, self.deadline = False, self.end

    def remaining(self) -> float:
        """Return the seconds the next step may take, or raise TimeoutError."""
        left = self.deadline - time.monotonic()
        if self.stopped or left <= 0:
            raise TimeoutError
        return left

    def stop(self) -> None:
        """End the wait at once; called from another thread."""
        self.stopped = True
        with self._lock, suppress(OSError):  # it may not be connected, or not any more
            if self._handle is not None:
                self._handle.shutdown(socket.SHUT_RDWR)

    def overdue(self, end: End, place: str) -> MoverError:
        """Say what it means that the time is up."""
        if not self.was_sent:
            took = time.monotonic() - self.began
            why = "the connection or the request was not accepted in time (host down or firewall?)"
            if self.is_shortened and took < TOO_SHORT_SECONDS:
                left = f"{round(took, 2):g} s"
                why = f"only {left} of the test's time limit remained, which was not enough"
            return MoverError(end.where, f"{place}: {why}")
        waited = min(self.answer, self.end - self.sent_at)
        return Late(end.where, f"{place}: no answer within {round(waited, 1):g} s")


CURRENT_WAIT: ContextVar[Wait] = ContextVar("wait")


class _PatientSocket(io.RawIOBase):
    """The readable side of a socket, with the time that is left set before each read."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, wait: Wait) -> None:
        self._raw, self._sock, self._wait = raw, sock, wait

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int | None:
        self._sock.settimeout(self._wait.remaining())
        return self._sock.recv_into(buffer)  # the raw side reads no more after one time-out

    def close(self) -> None:
        with suppress(OSError):  # closed already; else it goes back to the pool
            self._sock.settimeout(self._wait.answer)
        self._wait.release()
        self._raw.close()
        super().close()


class _PatientResponse(http.client.HTTPResponse):
    """An answer whose every byte, headers included, is read under the exchange's Wait."""

    is_last = False
    """Whether its request said that no other follows on this connection (RFC 9112, 9.6)."""

    def __init__(
        self,
        sock: socket.socket,
        debuglevel: int = 0,
        method: str | None = None,
        url: str | None = None,
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        wait = CURRENT_WAIT.get()
        wait.sent()
        patient = _PatientSocket(self.fp.detach(), sock, wait)
        self.fp: io.BufferedReader = io.BufferedReader(patient, ANSWER_BUFFER_BYTES)

    def begin(self) -> None:
        super().begin()
        # XRootD 5.5.3 promises to keep the connection of a DELETE that found nothing, and
        # hangs up: whoever came next would be told that the server broke it.
        # And a server that was told "Connection: close" need not say so itself: it hangs up at
        # once, or, on a busy machine, after the next request was sent.
        self.will_close = self.will_close or self.is_last or self.status >= FIRST_REFUSAL


class _HeldResponse(_PatientResponse):
    """The answer to a request whose body is held back until the server says to go on."""

    _first_line: tuple[str, int, str] | None = None

    def has_come(self) -> bool:
        """Wait for the server to say something; say whether it takes no body any more."""
        try:
            self.fp.peek(1)  # of nothing that came a byte is lost
        except TimeoutError:
            return False
        CURRENT_WAIT.get().sent()
        line = self._read_status()
        if line[1] == http.client.CONTINUE:
            http.client.parse_headers(self.fp)
            return False
        self._first_line = line
        return True

    def _read_status(self) -> tuple[str, int, str]:
        line, self._first_line = self._first_line, None
        return line or super()._read_status()  # type: ignore[misc] # typeshed leaves it out

    def begin(self) -> None:
        is_early = self._first_line is not None
        super().begin()
        self.will_close = self.will_close or is_early  # the body that was announced is owed


class _Patient(HTTPConnection):
    """A connection that is made, and written to, under the exchange's Wait."""

    _expects = _closes = False
    _held: _HeldResponse | None = None

    def response_class(  # type: ignore[override] # a class to its base, which calls it the same
        self, sock: socket.socket, debuglevel: int = 0, method: str | None = None
    ) -> http.client.HTTPResponse:
        held, self._held = self._held, None
        response = held or _PatientResponse(sock, debuglevel, method)
        response.is_last = self._closes
        CURRENT_WAIT.get().sent()
        return response

    def _new_conn(self) -> socket.socket:
        address, wait = (self._dns_host, self.port or self.default_port), CURRENT_WAIT.get()
        options = self.socket_options or []
        try:
            sock = connect(*address, float(self.timeout or 0), options, wait)
        except socket.gaierror as error:
            if error.errno in UNKNOWN_NAME:
                raise NameResolutionError(self.host, self, error) from error
            raise NewConnectionError(self, f"host name lookup failed: {error}") from error
        except OSError as error:
            raise NewConnectionError(self, f"connection failed: {error}") from error
        try:
            wait.route.meet(sock)
        except (ForbiddenPeer, OSError):
            sock.close()
            raise
        return sock

    def putrequest(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as its base has
        wait = CURRENT_WAIT.get()
        wait.is_body_refused = False
        if self.sock is not None:
            wait.hold(self.sock)
            wait.route.meet(self.sock)  # it may have been kept from another exchange
        self._expects, self._closes, self._held = False, False, None
        super().putrequest(*arguments, **named)

    def putheader(self, header: str | bytes, *values: Any) -> None:  # noqa: ANN401 - as its base
        self._expects = self._expects or header == "Expect"
        self._closes = self._closes or (header, *values) == ("Connection", "close")
        super().putheader(header, *values)  # type: ignore[arg-type] # narrower in typeshed's stub

    def endheaders(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as its base has
        """Send the headers; one of ``Expect`` has the body wait for what the server says to it.

        Who redirects or refuses an upload says so now and takes no body. It would be sent twice,
        or the answer be lost as the server closes the connection. Doors of dCache redirect only
        those who wait.
        """
        super().endheaders(*arguments, **named)
        if self._expects and self.sock is not None:
            self._held = _HeldResponse(self.sock, method="PUT")
            wait = CURRENT_WAIT.get()
            wait.hold_back(CONTINUE_SECONDS)
            wait.is_body_refused = self._held.has_come()
            wait.send_body()

    def send(self, data: Any) -> None:  # noqa: ANN401 - as its base has; bytes in all we do
        """Send in pieces each of which leaves in time, to a server that takes few at a time."""
        if self.sock is None:
            self.connect()
        wait, whole, each = CURRENT_WAIT.get(), memoryview(data), float(self.timeout or 0)
        for start in range(0, len(whole), PIECE_BYTES):
            self.sock.settimeout(min(each, wait.remaining()))
            try:
                super().send(whole[start : start + PIECE_BYTES])
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
                # Redirected or refused before the body was read: urllib3 knows this error as one
                # after which an answer may be read, and those of TLS it does not.
                raise BrokenPipeError(errno.EPIPE, "broken pipe") from error


class _PatientHTTPS(_Patient, HTTPSConnection):
    """The same over TLS."""


def connect(
    host: str, port: int, seconds: float, options: Iterable[Any], wait: Wait
) -> socket.socket:
    """Return a socket connected to any address of a host: ``seconds`` for all of them.

    Raises ForbiddenPeer if it has none that may be connected to.
    """
    end = min(time.monotonic() + seconds, wait.end)
    addresses = wait.route.permitted(resolve(host, port, end, wait))
    failure: OSError = TimeoutError()
    for turn, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        try:
            for option in options:
                sock.setsockopt(*option)
            share = (end - time.monotonic()) / (len(addresses) - turn)
            sock.settimeout(max(share, SHORTEST_SECONDS))
            wait.hold(sock)
            sock.connect(address)
        except OSError as error:
            sock.close()
            failure = error
        else:
            sock.settimeout(max(end - time.monotonic(), SHORTEST_SECONDS))  # to shake hands
            return sock
        if wait.stopped:
            break
    raise failure


def resolve(host: str, port: int, end: float, wait: Wait) -> Addresses:
    """Look a host name up, until then at the latest; raise TimeoutError if it takes longer.

    The system's own look-up knows no limit and cannot be stopped: a thread does it, which
    outlives a name server that is silent by some 30 s.
    """
    answers: SimpleQueue[Addresses | Exception] = SimpleQueue()

    def look_up() -> None:
        family = allowed_gai_family()
        try:
            answers.put(socket.getaddrinfo(host, port, family, socket.SOCK_STREAM))
        except (OSError, ValueError) as error:
            answers.put(error)

    threading.Thread(target=look_up, daemon=True, name="look-up").start()
    while True:
        left = end - time.monotonic()
        if wait.stopped or left <= 0:
            raise TimeoutError
        with suppress(Empty):
            answer = answers.get(timeout=min(left, LOOK_UP_SLICE_SECONDS))
            if isinstance(answer, Exception):
                raise answer
            return answer


class PatientHTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Patient


class PatientHTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _PatientHTTPS
