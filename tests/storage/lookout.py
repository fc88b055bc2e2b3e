"""Somebody who looks at the pages, and at the plan, once a second while faults come and go."""

import threading
import time
from collections import Counter
from typing import Self

import psycopg
import urllib3

from tests.storage.grid import Grid

LOOK_SECONDS = 1.0
# Without what they read, pages say in a sentence that they cannot be shown.
ANSWERS = (200, 503)
PLANNED = "SELECT max(seen_at) FROM sonar_signoflife WHERE name = 'planner'"


class Lookout(threading.Thread):
    """What the pages answered, and how old the last plan was at most, in seconds."""

    def __init__(self, grid: Grid) -> None:
        super().__init__(daemon=True)
        self.grid, self._over = grid, threading.Event()
        self.answered, self.unanswered = Counter[int](), Counter[str]()
        self.slowest = self.oldest_plan = 0.0
        self._plan, self._planned_at = None, time.monotonic()

    def run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.look_at_page()
            self.look_at_plan()

    def look_at_page(self) -> None:
        began = time.monotonic()
        try:
            self.answered[self.grid.get("/").status] += 1
        except urllib3.exceptions.HTTPError as error:
            self.unanswered[type(error).__name__] += 1
        self.slowest = max(self.slowest, time.monotonic() - began)

    def look_at_plan(self) -> None:
        """Note for how long there was no new plan, by a clock that does not jump.

        A database that is away says nothing.
        """
        try:
            ((plan,),) = self.grid.ask(PLANNED)
        except psycopg.Error:
            return
        now = time.monotonic()
        self.oldest_plan = max(self.oldest_plan, now - self._planned_at)
        if plan != self._plan:
            self._plan, self._planned_at = plan, now

    def wrong(self) -> list[str]:
        """Return what no page may answer, and how often."""
        odd = {status: n for status, n in self.answered.items() if status not in ANSWERS}
        return [f"{n} x {what}" for what, n in (*odd.items(), *self.unanswered.items())]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
