"""A worker that was told to stop ends within SONAR_STOP_SECONDS, whatever storage does."""

from __future__ import annotations

import logging
import os
import threading
import time

from django.conf import settings

from sonar.database.retry import DATABASE_AWAY, one_line, release_connection
from sonar.work import probes

log = logging.getLogger(__name__)

WHY_LEFT = "its worker was told to stop, and the run did not end in time"


class LastResort:
    """Ends a process that was told to stop and waits for what does not end."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=self._end, name="last resort", daemon=True)
        self._seconds = 0.0

    def begin(self, seconds: float) -> None:
        """Let this process end by itself for so many seconds. Only the first call counts."""
        if self._thread.ident is None:
            self._seconds = seconds
            self._thread.start()

    def _end(self) -> None:
        time.sleep(self._seconds)
        last_words = threading.Thread(target=hand_back_all, daemon=True)
        last_words.start()
        last_words.join(settings.LAST_WORDS_SECONDS)
        log.warning("ended by itself, %g s after it was told to stop", self._seconds)
        # Threads that wait for storage would keep the process for as long as storage likes.
        os._exit(0)


def hand_back_all() -> None:
    """Hand back every probe that still runs in this process; `clean` deletes its files."""
    left = probes.running.probes()
    try:
        handed = sum(probes.abandon(probe, WHY_LEFT) for probe in left)
        log.warning("%d tests did not stop in time: they are queued again", handed)
    except DATABASE_AWAY as error:
        log.warning("tests that did not stop in time stay as they are: %s", one_line(error))
    finally:
        release_connection()
