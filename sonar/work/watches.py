"""Work of this process that its end stops, beside probes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sonar.movers.watch import Watch


class Watches:
    """The watches of what runs."""

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._lock = threading.Lock()

    @contextmanager
    def added(self, watch: Watch) -> Iterator[None]:
        with self._lock:
            self._watches.add(watch)
        try:
            yield
        finally:
            with self._lock:
                self._watches.remove(watch)

    def stop_all(self) -> None:
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.stop()


checks = Watches()
"""Those of endpoints."""
