"""Heartbeats: processes report that they are alive, and scheduled tasks that they succeeded.

A process writes one row every SONAR_HEARTBEAT_SECONDS, a task one when it ends: with two workers, a
beat and the default settings that is a row each two seconds, over a connection each that is
given back at once. Who reads them counts as dead what has been silent for SILENT_AFTER signs.
"""

import atexit
import logging
import threading
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.utils import timezone

from sonar.database.retry import one_line, release_connection
from sonar.models import SignOfLife
from sonar.processes.heartbeat_file import HeartbeatFile

log = logging.getLogger(__name__)

# One sign may be late, and one lost.
SILENT_AFTER = 3
KEPT = timedelta(days=1)
AHEAD = "extract(epoch FROM %s::timestamptz - statement_timestamp())"
# Beyond that somebody is told: certificates and tokens count by the second, results by their times.
CLOCK_SECONDS = 10
# Clocks of several machines differ by some seconds, one that is wrong by more.
CLOCK_SKEW = timedelta(minutes=5)
# How long a process that ends waits for its last word.
LAST_WORD_SECONDS = 2.0


class Pulse:
    """Says of this process that it lives, as long as something in it beats.

    It speaks in a thread of its own: a database that is away or slow holds nobody up. And it
    is silent when `beat` is not called any more: a main loop that hangs is no life.
    """

    def __init__(self) -> None:
        self._sign = SignOfLife()
        self._file = HeartbeatFile(None, 0)
        self._beaten, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._speak, name="heartbeats", daemon=True)

    def start(
        self, kind: SignOfLife.Kind, name: str, every_seconds: int, queues: Iterable[str] = ()
    ) -> None:
        """Say so now, and from now on every so many seconds."""
        self._sign = SignOfLife(
            name=name, kind=kind, every_seconds=every_seconds, queues=sorted(queues)
        )
        self._file = HeartbeatFile(settings.SONAR_HEARTBEAT_FILE, SILENT_AFTER * every_seconds)
        self.beat()
        self._thread.start()
        atexit.register(self._thread.join, LAST_WORD_SECONDS)
        atexit.register(self.stop)

    def beat(self) -> None:
        self._file.beat()
        self._beaten.set()

    def stop(self) -> None:
        """Say goodbye: this process does no more work from now on. Returns at once."""
        self._stopping.set()

    def _speak(self) -> None:
        while not self._stopping.is_set():
            if self._beaten.is_set():
                self._beaten.clear()
                write(self._sign)
            self._stopping.wait(self._sign.every_seconds)
        take_back(self._sign)


def write(sign: SignOfLife) -> None:
    """Write a sign with the time of now; while the database is away there is none, quietly.

    The time is the database's, so that a process whose clock is wrong is not taken for dead; by how
    much it is wrong is written, too.
    """
    try:
        connection.ensure_connection()  # to wait for one is no fault of the clock
        sign.seen_at = Now()
        sign.clock_ahead_seconds = RawSQL(AHEAD, [timezone.now()])  # noqa: S611 - a constant
        SignOfLife.objects.bulk_create(
            [sign],
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=["kind", "seen_at", "every_seconds", "queues", "clock_ahead_seconds"],
        )
    except (DatabaseError, InterfaceError) as error:
        log.info("the heartbeat of %s was not written: %s", sign, one_line(error))
    finally:
        release_connection()


def take_back(sign: SignOfLife) -> None:
    """Remove the sign of a process that ends by itself: it is not missed."""
    try:
        SignOfLife.objects.filter(name=sign.name).delete()
    except (DatabaseError, InterfaceError) as error:
        log.info("the heartbeat of %s was not removed: %s", sign, one_line(error))
    finally:
        release_connection()


def ended_well(task: str, every_seconds: int) -> None:
    write(SignOfLife(name=task, kind=SignOfLife.Kind.TASK, every_seconds=every_seconds))


def forget(now: datetime) -> None:
    """Remove the signs of processes that have not been heard of for a day.

    When a task ended well for the last time is worth knowing for longer.
    """
    SignOfLife.objects.filter(seen_at__lt=now - KEPT).exclude(kind=SignOfLife.Kind.TASK).delete()


def living(now: datetime) -> list[str]:
    """Return the names of the workers and beats that live.

    Of columns that every Sonar with a table of signs has: the database may be older or newer.
    """
    signs = SignOfLife.objects.only("name", "kind", "seen_at", "every_seconds")
    processes = signs.exclude(kind=SignOfLife.Kind.TASK)
    return [sign.name for sign in processes if not is_silent(sign, now)]


def has_wrong_clock(sign: SignOfLife) -> bool:
    return abs(sign.clock_ahead_seconds) >= CLOCK_SECONDS


def is_silent(sign: SignOfLife, now: datetime) -> bool:
    """Say whether a sign is too old to count; a task that comes often may take its time.

    Nor does one from the future: who lives has spoken again since his clock was put right.
    """
    every = max(sign.every_seconds, settings.SONAR_HEARTBEAT_SECONDS)
    too_old = now - sign.seen_at > timedelta(seconds=SILENT_AFTER * every)
    return too_old or sign.seen_at > now + CLOCK_SKEW
