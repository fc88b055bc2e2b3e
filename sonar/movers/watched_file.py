"""A test file on its way to a server, which a stop ends."""

from __future__ import annotations

from sonar.movers.base import Watch
from sonar.movers.content import TestFile


class WatchedFile(TestFile):
    """A test file that is read no further once the caller has asked for the end."""

    def __init__(self, size_bytes: int, watch: Watch) -> None:
        super().__init__(size_bytes)
        self._watch = watch

    def read(self, size: int = -1) -> bytes:
        self._watch.check()
        return super().read(size)
