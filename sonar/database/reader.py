"""Who is answered by the replica: readers, where DATABASE_READ_URL names one.

Within `chosen` this thread's own connection is one with the replica, so that what reads there needs
to know nothing of it. It begins where a snapshot does (matrix/store/data_version.py); whatever
reads outside of one, and all that writes, has the primary.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import local

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from psycopg.errors import QueryCanceled

from sonar.database.replica import READER, REPLICA, ReplicaState, is_configured, one_row
from sonar.database.retry import DATABASE_AWAY

# From this age on answers say how old their data is.
SAID_SECONDS = 10
WRITTEN = "SELECT pg_current_wal_insert_lsn() - '0/0'"
NEVER = 2**63
_of_thread = local()


@dataclass
class Preference:
    """To be answered by the replica once it has all that the primary had at a position.

    ``may`` is asked before. What is decided first counts as long as it does: what was read at the
    primary is never shown with what the replica has.
    """

    after: int
    may: Callable[[], bool]
    state: ReplicaState | None = None
    is_decided: bool = False
    may_repeat: bool = False
    """Whether the primary is to be asked where the replica led to an error."""

    def decide(self) -> ReplicaState | None:
        """Return the state of the replica; None if the primary is to answer."""
        if not self.is_decided:
            self.is_decided = True
            state = REPLICA.look() if self.may() else None
            if state and not state.problem and state.position >= self.after:
                self.state, self.may_repeat = state, True
        return self.state


@contextmanager
def preferred(after: int = 0, may: Callable[[], bool] = lambda: True) -> Iterator[Preference]:
    """Let snapshots of this thread be those of the replica, where there is one that may."""
    preference = _of_thread.preference = Preference(after, may, is_decided=not is_configured())
    try:
        yield preference
    finally:
        del _of_thread.preference


def is_preferred() -> bool:
    return hasattr(_of_thread, "preference")


def stay() -> None:
    """Let the primary answer all that follows."""
    if hasattr(_of_thread, "state"):
        raise RuntimeError("data that must be read from the primary is requested from the replica")
    if preference := getattr(_of_thread, "preference", None):
        preference.is_decided, preference.state = True, None


@contextmanager
def chosen() -> Iterator[None]:
    """Read from the replica within if it is preferred and may answer, else from the primary."""
    preference: Preference | None = getattr(_of_thread, "preference", None)
    state = preference.decide() if preference else None
    if preference is None or state is None:
        yield
        return
    primary = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connections[READER]
    _of_thread.state = state
    try:
        yield
    except OperationalError as error:
        # What takes the replica too long does so with the primary.
        preference.may_repeat = not isinstance(error.__cause__, QueryCanceled)
        raise
    finally:
        connections[DEFAULT_DB_ALIAS] = primary
        del _of_thread.state


def data_as_of() -> datetime | None:
    """Return of when the data is that is read now, if it is old enough to be said."""
    state: ReplicaState | None = getattr(_of_thread, "state", None)
    return state.as_of if state and (state.age or 0) >= SAID_SECONDS else None


def position() -> int:
    """Return which position the replica must have reached to have all that is written by now."""
    try:
        return int(one_row(DEFAULT_DB_ALIAS, WRITTEN)[0])
    except DATABASE_AWAY:
        return NEVER
