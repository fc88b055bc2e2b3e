"""Jumps of this machine's clock, as it is put right: monotonic clocks have none."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Lock

# Clocks that are put right slowly, as they should be, differ by less from one look to the next.
LEAST_SECONDS = 1.0


class ClockSteps:
    """Notices jumps of the time of day; each who wants to know keeps one of its own."""

    def __init__(self) -> None:
        self._ahead, self._lock = _ahead(), Lock()

    @contextmanager
    def followed(self) -> Iterator[tuple[timedelta, datetime]]:
        """Give by how much it has jumped forward since the last time, below zero: back; and now.

        Now is by the clock as it was looked at: the next jump may come at any moment. One that
        somebody fails to follow is given again, and others wait until it is followed.
        """
        with self._lock:
            ahead = _ahead()
            seconds = ahead - self._ahead
            step = timedelta(seconds=seconds if abs(seconds) >= LEAST_SECONDS else 0)
            yield step, datetime.fromtimestamp(time.monotonic() + ahead, UTC)
            self._ahead = ahead


def _ahead() -> float:
    return time.time() - time.monotonic()
