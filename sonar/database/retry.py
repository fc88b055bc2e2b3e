"""While the database is away: what a worker has to write waits until it is back."""

import logging
import time
from collections.abc import Callable
from datetime import datetime

from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

log = logging.getLogger(__name__)

# What a query raises while the database restarts or cannot be reached.
DATABASE_AWAY = (OperationalError, InterfaceError)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 10.0


def patiently(step: Callable[[], object], deadline: datetime | None, name: str) -> bool:
    """Take a step that needs the database, again and again until a deadline; None: only once.

    Returns whether it was taken. It may have been although it failed (a COMMIT was done and
    only the answer lost), so a step must do no harm the second time.
    """
    pause = FIRST_PAUSE_SECONDS
    left = (deadline - timezone.now()).total_seconds() if deadline else 0.0
    until = time.monotonic() + left
    while why := _why_not(step):
        if time.monotonic() + pause > until:
            return False
        if pause == FIRST_PAUSE_SECONDS:
            log.warning("%s is waiting for the database: %s", name, why)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
    return True


def _why_not(step: Callable[[], object]) -> str:
    """Take a step; return why the database did not let us, empty if it did."""
    try:
        step()
    except DATABASE_AWAY as error:
        release_connection()
        return one_line(error)
    return ""


def one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def release_connection() -> None:
    """Give this thread's connection back, unless a transaction of the caller needs it."""
    if not connection.in_atomic_block:
        connection.close()
