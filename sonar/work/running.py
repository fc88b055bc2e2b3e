"""What runs in this process and ends with it: tests, checks of endpoints, deletions of files."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sonar.models import Probe
from sonar.movers.watch import Watch


class Running:
    """The watches of what runs, so that the end of this process can stop it."""

    def __init__(self) -> None:
        self._probes: dict[Watch, Probe | None] = {}
        self._lock = threading.Lock()
        self.stopping = False

    @contextmanager
    def added(self, watch: Watch, probe: Probe | None = None) -> Iterator[None]:
        """Stop what is done within as all else; at once, if that has happened already."""
        with self._lock:
            self._probes[watch] = probe
            stopping = self.stopping
        if stopping:
            watch.stop()
        try:
            yield
        finally:
            with self._lock:
                del self._probes[watch]

    def stop_all(self) -> None:
        with self._lock:
            self.stopping = True
            watches = list(self._probes)
        for watch in watches:
            watch.stop()

    def probes(self) -> list[tuple[Watch, Probe]]:
        """Return those that have not been recorded yet."""
        with self._lock:
            return [(watch, probe) for watch, probe in self._probes.items() if probe]


running = Running()
