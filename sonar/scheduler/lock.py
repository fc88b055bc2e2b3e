"""One plans at a time, or caps would be counted twice: the lock that every planner takes."""

from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

# Any number, the same for every planner.
PLANNER_LOCK = 0x50_4C_41_4E
# A tick of the planner takes a fraction of this, unless the registry has changed a lot.
LONGEST_WAIT_SECONDS = 5


class PlannerBusyError(Exception):
    """The planner holds its lock for longer than somebody should wait; later it goes."""


def is_only_planner() -> bool:
    """Take the lock until the transaction ends, if nobody holds it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [PLANNER_LOCK])
        (locked,) = cursor.fetchone() or (False,)
        return bool(locked)


def wait_for_planner() -> None:
    """Take the lock until the transaction ends; raise PlannerBusyError after some seconds."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LONGEST_WAIT_SECONDS}s'")
        try:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [PLANNER_LOCK])
        except OperationalError as error:
            if isinstance(error.__cause__, LockNotAvailable):
                message = "The planner is busy: try again in a few seconds."
                raise PlannerBusyError(message) from error
            raise
