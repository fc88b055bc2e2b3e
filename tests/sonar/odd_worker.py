"""A Celery application for tests that start a worker: Sonar's own, with movers that are odd.

`celery -A tests.sonar.odd_worker worker ...`; nothing else differs from `-A sonar.celery`.
"""

from __future__ import annotations

import time
from dataclasses import replace

from sonar import mover_catalogue
from sonar.celery import app
from sonar.movers.base import Order, Receipt, Watch
from sonar.movers.fake import FakeMover

__all__ = ["app"]

NOTES, NOTE_EVERY_SECONDS = 40, 0.1


class Deaf(FakeMover):
    """Moves for ten minutes, whoever asks it to stop: storage that takes and never answers."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        time.sleep(600)
        return super().move(order, watch)


class Talkative(FakeMover):
    """Tells of progress again and again."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        for number in range(NOTES):
            watch.report(number, number * NOTE_EVERY_SECONDS)
            time.sleep(NOTE_EVERY_SECONDS)
        return super().move(order, watch)


FAKE = mover_catalogue.describe("fake")
mover_catalogue.MOVERS += (
    replace(FAKE, name="deaf", path=f"{__name__}:Deaf"),
    replace(FAKE, name="talkative", path=f"{__name__}:Talkative"),
)
