"""Read several things as of one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from psycopg import IsolationLevel


@contextmanager
def snapshot() -> Iterator[None]:
    """Show what stands in the database as of the first statement within; writing is an error.

    Inside a transaction that has begun already, it is that one's view that counts.
    """
    if connection.in_atomic_block:
        yield
        return
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
