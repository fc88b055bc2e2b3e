"""Deadlines that hold: every single read of an answer asks how long it may still take.

A socket timeout alone begins anew with every byte: a server that trickles outlasts it for ever.
Here a ``Wait`` is asked before each read, headers included, and another thread may end it.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from sonar.movers.base import End, MoverError

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


class Wait:
    """How long one exchange may take; asked before every read of its socket."""

    def __init__(self, answer: float, total: float) -> None:
        self.answer = answer
        self.sent_at = time.monotonic()
        self.end = self.sent_at + total
        self.deadline = self.end
        self.stopped = False
        self._socket: socket.socket | None = None

    def sent(self, sock: socket.socket) -> None:
        """Begin to wait for the answer: the request has left."""
        self._socket = sock
        self.sent_at = time.monotonic()
        self.deadline = min(self.sent_at + self.answer, self.end)

    @property
    def was_sent(self) -> bool:
        """Whether the whole request has left."""
        return self._socket is not None

    def remaining(self) -> float:
        """Return the seconds the next read may take, or raise TimeoutError."""
        left = self.deadline - time.monotonic()
        if self.stopped or left <= 0:
            raise TimeoutError
        return left

    def stop(self) -> None:
        """End the wait at once; called from another thread."""
        self.stopped = True
        if self._socket is not None:
            with suppress(OSError):  # SSLSocket.shutdown would take the TLS from under the reader
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def overdue(self, end: End, place: str) -> MoverError:
        """Say what it means that the time is up."""
        if not self.was_sent:
            why = "not connected, or the request not taken, in time (host down, or a firewall)"
            return MoverError(end.where, f"{place}: {why}")
        return MoverError(end.where, f"{place}: no answer within {self.answer:g} s")


CURRENT_WAIT: ContextVar[Wait] = ContextVar("wait")


class _PatientSocket(io.RawIOBase):
    """The readable side of a socket, with the time that is left set before each read."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, wait: Wait) -> None:
        self._raw, self._sock, self._wait = raw, sock, wait

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int | None:
        self._sock.settimeout(self._wait.remaining())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        with suppress(OSError):  # closed already; else it goes back to the pool
            self._sock.settimeout(self._wait.answer)
        self._raw.close()
        super().close()


class _PatientResponse(http.client.HTTPResponse):
    """An answer whose every byte, headers included, is read under the exchange's Wait."""

    def __init__(
        self,
        sock: socket.socket,
        debuglevel: int = 0,
        method: str | None = None,
        url: str | None = None,
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        wait = CURRENT_WAIT.get()
        wait.sent(sock)
        self.fp: io.BufferedReader = io.BufferedReader(_PatientSocket(self.fp.detach(), sock, wait))


class _HTTPConnection(HTTPConnection):
    response_class = _PatientResponse


class _HTTPSConnection(HTTPSConnection):
    response_class = _PatientResponse


class PatientHTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HTTPConnection


class PatientHTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HTTPSConnection
