"""A Celery application for tests that start a worker: Sonar's own, with movers that are odd.

`python -m sonar -A tests.sonar.odd_worker worker ...`; nothing else differs.
"""

import logging
import time
from dataclasses import replace

from celery.signals import worker_init
from django.db import connection

from sonar.celery import app
from sonar.movers import catalogue
from sonar.movers.base import End, FileInfo, Order, Receipt
from sonar.movers.catalogue import Program
from sonar.movers.fake import FakeFiles, FakeMover
from sonar.movers.watch import Watch

__all__ = ["app"]

log = logging.getLogger(__name__)

NOTES, NOTE_EVERY_SECONDS = 40, 0.1
NO_WAY_BACK = "moves, and hears nothing from now on"


class Deaf(FakeMover):
    """Moves for ten minutes, whoever asks it to stop: storage that takes and never answers."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        log.warning(NO_WAY_BACK)
        time.sleep(600)
        return super().move(order, watch)


class Greedy(Deaf):
    """Holds a connection to the database as well."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        connection.ensure_connection()
        return super().move(order, watch)


class Slow(FakeMover):
    """Moves for ten minutes, unless somebody asks it to stop."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        watch.pause(600)
        return super().move(order, watch)


class Talkative(FakeMover):
    """Tells of progress again and again."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        for number in range(NOTES):
            watch.report(number, number * NOTE_EVERY_SECONDS)
            time.sleep(NOTE_EVERY_SECONDS)
        return super().move(order, watch)


class BrokenFiles(FakeFiles):
    """Raises what no mover should, with a token as libraries quote them."""

    def stat(self, end: End, order: Order) -> FileInfo | None:
        raise ValueError("Invalid header value b'Bearer sesame-of-another-site'")


class Broken(FakeMover):
    def __init__(self) -> None:
        super().__init__()
        self.files = BrokenFiles()


FAKE = catalogue.describe("fake")
ODD = (
    replace(FAKE, name="deaf", path=f"{__name__}:Deaf"),
    replace(FAKE, name="greedy", path=f"{__name__}:Greedy"),
    replace(FAKE, name="slow", path=f"{__name__}:Slow"),
    replace(FAKE, name="talkative", path=f"{__name__}:Talkative"),
    replace(FAKE, name="broken", path=f"{__name__}:Broken"),
    replace(FAKE, name="handless", needs=(Program("no-such-program", "no-such-package"),)),
)


@worker_init.connect
def describe_odd_movers(**_: object) -> None:
    """Only in a worker: the process of the tests has its own catalogue."""
    catalogue.MOVERS += ODD
