"""The streaming replica: whether it may answer readers, and how old its data is.

That follows from where the primary is in its WAL, which each process asks once a second, and counts
by the clock of the primary. `reader` says who is answered by it.
"""

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections

from sonar.database import tables
from sonar.database.base import DatabaseWrapper
from sonar.database.retry import DATABASE_AWAY, one_line

log = logging.getLogger(__name__)

READER = "reader"
TRACK_SECONDS = 1
# One thread tries a replica again that did not do, the others go on with the primary.
RETRY_SECONDS = 5

# Positions in the WAL are numbers of bytes.
OF_PRIMARY = "SELECT pg_current_wal_flush_lsn() - '0/0', clock_timestamp()"
OF_REPLICA = """SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() - '0/0',
    pg_last_xact_replay_timestamp()"""
IDENTITY = """SELECT system_identifier, current_database()::text FROM pg_control_system()"""

AWAY = "The replica is not responding."
NO_REPLICA = "DATABASE_READ_URL names a server that is not a replica."
OTHER = "DATABASE_READ_URL names a replica of a different database than DATABASE_URL."
UNKNOWN_AGE = "The age of the data on the replica is not known yet."
BEHIND = "The data on the replica is more than {} s old."


@dataclass(frozen=True)
class ReplicaState:
    """How far the replica is: a position in the WAL, and the moment its data is of.

    ``age`` is in seconds; both are None if they are not known. ``problem`` says why readers are
    answered by the primary.
    """

    position: int = 0
    as_of: datetime | None = None
    age: float | None = None
    problem: str = ""


class Sample(NamedTuple):
    """Where the primary was at a moment of its own clock, and of this process's."""

    position: int
    moment: datetime
    taken_at: float

    @property
    def now(self) -> datetime:
        """Return the time by the clock of the primary."""
        return self.moment + timedelta(seconds=time.monotonic() - self.taken_at)


class UnfitError(Exception):
    """The server answers, and may not be asked; the sentence says why."""


class Replica:
    """What this process knows of the replica. Safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.forget()

    def forget(self) -> None:
        self._sample: Sample | None = None
        self._tracked_at = self._retry_at = float("-inf")
        self._problem = UNKNOWN_AGE
        self._is_checked = False

    def look(self) -> ReplicaState:
        """Ask the replica how far it is, and once a second the primary."""
        if not self._may_ask():
            return ReplicaState(problem=self._problem)
        try:
            self._track()
            state = self._ask()
        except UnfitError as error:
            state = self._give_up(str(error))
            # Of several hosts, the next connection may find one that is a replica.
            drain()
        except DATABASE_AWAY as error:
            connections[READER].close()
            log.warning("The replica: %s", one_line(error))
            state = self._give_up(tables.POOLER if tables.NEEDS_SESSIONS in str(error) else AWAY)
        self._say(state.problem)
        return state

    def _may_ask(self) -> bool:
        """Say whether it answered last, or this thread is the one that tries it again."""
        with self._lock:
            now = time.monotonic()
            if now < self._retry_at:
                return False
            if not self._is_checked:
                self._retry_at = now + RETRY_SECONDS
            return True

    def _track(self) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._tracked_at < TRACK_SECONDS:
                return
            self._tracked_at = now
        try:
            position, moment = one_row(DEFAULT_DB_ALIAS, OF_PRIMARY)
        except DATABASE_AWAY:  # whatever needs it says so
            return
        self._sample = Sample(int(position), moment, now)

    def _ask(self) -> ReplicaState:
        is_replica, replayed, last_commit = one_row(READER, OF_REPLICA)
        if not is_replica:
            raise UnfitError(NO_REPLICA)
        if not self._is_checked:
            check()
            with self._lock:
                self._is_checked, self._retry_at = True, float("-inf")
        sample = self._sample
        if sample is None:
            return ReplicaState(problem=UNKNOWN_AGE)
        as_of = sample.moment if replayed >= sample.position else last_commit
        if as_of is None:
            return ReplicaState(problem=UNKNOWN_AGE)
        age = max((sample.now - as_of).total_seconds(), 0.0)
        most = settings.SONAR_REPLICA_SECONDS
        problem = BEHIND.format(most) if age > most else ""
        return ReplicaState(int(replayed), as_of, age, problem)

    def _give_up(self, problem: str) -> ReplicaState:
        """Leave it for some seconds; then it is looked at as if it were new."""
        with self._lock:
            self._is_checked, self._retry_at = False, time.monotonic() + RETRY_SECONDS
        return ReplicaState(problem=problem)

    def _say(self, problem: str) -> None:
        """Log what has changed."""
        if problem == self._problem:
            return
        self._problem = problem
        if problem:
            log.warning("The primary serves all readers. %s", problem)
        else:
            log.info("The replica serves readers.")


REPLICA = Replica()


def is_configured() -> bool:
    return READER in connections.settings


def state() -> ReplicaState | None:
    """Return how far the replica is; None without one."""
    return REPLICA.look() if is_configured() else None


def one_row(alias: str, statement: str) -> tuple[Any, ...]:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
        row: tuple[Any, ...] = cursor.fetchone()
        return row


def check() -> None:
    """Raise UnfitError unless the replica is one of the primary, with the tables of this code."""
    if one_row(READER, IDENTITY) != one_row(DEFAULT_DB_ALIAS, IDENTITY):
        raise UnfitError(OTHER)
    session = tables.session_of(READER)
    with connections[READER].wrap_database_errors:
        sentence = tables.problem(session)
    if sentence:
        raise UnfitError(sentence)


def drain() -> None:
    """Close all connections of this thread and the pool."""
    wrapper = connections[READER]
    wrapper.close()
    if isinstance(wrapper, DatabaseWrapper) and wrapper.pool:
        wrapper.pool.drain()
