"""A clock beside Sonar's own: when a file was on its server's disk, and when it was whole."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

LOOK_SECONDS = 0.002


class Meanwhile(threading.Thread):
    """Looks at a file on its server's disk while it arrives, and lets something happen midway."""

    def __init__(self, paths: Sequence[Path], size: int, happens: Callable[[], None]) -> None:
        """Know where the file may be: a cluster puts it on one of its disks."""
        super().__init__(daemon=True)
        self._paths, self._size, self._happens = paths, size, happens
        self._over = threading.Event()
        self.seconds = 0.0
        """From when the file was there until it was whole."""

    def run(self) -> None:
        began = self._wait_for(0)
        if began and (moving := self._wait_for(1)):
            if not self._looks(self._size):
                self._happens()
            ended = self._wait_for(self._size)
            self.seconds = (ended or moving) - began

    def _wait_for(self, size: int) -> float | None:
        while not self._over.wait(LOOK_SECONDS):
            if self._looks(size):
                return time.monotonic()
        return None

    def _looks(self, size: int) -> bool:
        return any(size_of(path) >= size for path in self._paths)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def size_of(path: Path) -> int:
    """Return how long a file is; -1 while it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1
