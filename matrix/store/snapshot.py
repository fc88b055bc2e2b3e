"""Read several things as of one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import local

from django.db import connection, transaction
from psycopg import IsolationLevel

_of_thread = local()


@contextmanager
def snapshot() -> Iterator[None]:
    """Show what stands in the database as of the first statement within; writing is an error.

    Inside a transaction that has begun already, it is that one's view that counts. It costs two
    round trips, BEGIN and COMMIT, and none if nothing is read. Also a decorator.
    """
    if connection.in_atomic_block:
        yield
        return
    with ExitStack() as stack:
        stack.enter_context(_reading())
        _of_thread.open = stack
        yield


def end_snapshot() -> None:
    """End this thread's snapshot before its block does, for what goes on reading after that."""
    getattr(_of_thread, "open", ExitStack()).close()


@contextmanager
def _reading() -> Iterator[None]:
    connection.ensure_connection()
    session = connection.connection
    before = session.isolation_level, session.read_only
    # Set on the session, as psycopg sends them with BEGIN: that spares a round trip.
    session.isolation_level, session.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        with transaction.atomic():
            yield
    finally:
        if not session.closed:
            session.isolation_level, session.read_only = before
