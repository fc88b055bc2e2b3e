"""Sessions with PostgreSQL: when they were last seen, what their transactions begin with, and how
one is cut off that hears nothing.
"""

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from psycopg import Connection, generators
from psycopg.abc import PQGen
from psycopg.errors import DiskFull, error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg_pool import ConnectionPool

# What was fine so lately is asked again only if something waits to be read.
FRESH_SECONDS = 5
when_disk_full: list[Callable[[], None]] = []
"""Called when PostgreSQL has no room to write; must be quick and raise nothing."""


class Session(Connection[Any]):
    """A connection that knows when a pool last gave it out, and what a transaction begins with."""

    seen_at = float("-inf")
    limits = b""
    """SQL sent in the same message as BEGIN, which costs no round trip."""

    def wait(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - psycopg's own
        """Wait for what the server says, as psycopg does for every statement, copy and commit."""
        try:
            return super().wait(*arguments, **named)
        except DiskFull:
            for call in when_disk_full:
                call()
            raise

    def _start_query(self) -> PQGen[None]:
        """Begin a transaction if none has begun, as psycopg does, with its limits."""
        idle = self.pgconn.transaction_status == TransactionStatus.IDLE
        if not self.limits or self.autocommit or not idle:
            yield from super()._start_query()
            return
        self._check_connection_ok()
        self.pgconn.send_query(self._get_tx_start_command() + self.limits)
        for result in (yield from generators.execute(self.pgconn)):
            if result.status != ExecStatus.COMMAND_OK:
                raise error_from_result(result)


def limits_at_begin(seconds: Mapping[str, int]) -> bytes:
    """Return the SQL that follows BEGIN, of PostgreSQL's settings of these names."""
    return "".join(f"; SET LOCAL {name} = '{each}s'" for name, each in seconds.items()).encode()


def check(session: Session) -> None:
    """Raise OperationalError for a connection that has ended; ask only one that may have.

    A PostgreSQL that stops, or drops a connection, says so: then there is something to read. One
    that is cut off without a word is found out when it has not been used for some seconds.
    """
    now = time.monotonic()
    if now - session.seen_at > FRESH_SECONDS or has_something_to_say(session):
        ConnectionPool.check_connection(session)
    session.seen_at = now


def has_something_to_say(session: Session) -> bool:
    waiting = select.poll()
    waiting.register(session.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


@contextmanager
def cut_off_after(session: Connection[Any], seconds: float) -> Iterator[None]:
    """Let what waits for an answer fail after a while, whether the server can say so or not.

    A server that hangs ends no statement, and a pooler without a free connection keeps who asks
    waiting for as long as it likes.
    """
    with socket.socket(fileno=os.dup(session.fileno())) as plug:
        timer = threading.Timer(seconds, _pull, [plug])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _pull(plug: socket.socket) -> None:
    with suppress(OSError):  # it has ended meanwhile
        plug.shutdown(socket.SHUT_RDWR)
