"""A mover for tests and demonstrations: nothing moves, the same order gives the same rate."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

from sonar.movers.base import End, FileInfo, MoverError, Order, Receipt, Sample, Watch, Where
from sonar.movers.content import adler32

STEPS = 4
SLOWEST, FASTEST = 2e6, 500e6  # bytes per second; real links lie between


class FakeFiles:
    """Files in memory, by URL; shared by threads."""

    def __init__(self) -> None:
        self.held: dict[str, FileInfo] = {}
        self._lock = threading.Lock()

    def stat(self, end: End, order: Order) -> FileInfo | None:
        """Describe the file, or return None if there is none."""
        with self._lock:
            return self.held.get(end.url)

    def put(self, order: Order, watch: Watch) -> None:
        """Make the source file of ``order.bytes`` bytes appear."""
        checksum = order.adler32 or adler32(order.bytes)
        with self._lock:
            self.held[order.source.url] = FileInfo(order.bytes, checksum)

    def delete(self, end: End, order: Order) -> None:
        """Delete the file; that it is not there is fine."""
        with self._lock:
            self.held.pop(end.url, None)

    def copy(self, order: Order) -> None:
        """Let the destination hold what the source holds."""
        with self._lock:
            info = self.held.get(order.source.url)
            if info is None:
                message = f"{order.source.url}: no such file"
                raise MoverError(Where.SOURCE, message, permanent=True)
            self.held[order.destination.url] = info


class FakeMover:
    """Fails for the hosts it is told, else succeeds.

    ``failures`` gives the error to raise by host name, of either end. ``seconds`` is how long
    a move takes on the clock; what the receipt says does not depend on it.
    """

    name = "fake"
    schemes = frozenset({"fake"})

    def __init__(
        self, failures: Mapping[str, MoverError] | None = None, seconds: float = 0.0
    ) -> None:
        self.files = FakeFiles()
        self._failures = dict(failures or {})
        self._seconds = seconds

    def move(self, order: Order, watch: Watch) -> Receipt:
        """Make one transfer happen, or raise MoverError."""
        seconds = order.bytes / rate(order)
        parts = [step / STEPS for step in range(1, STEPS + 1)]
        samples = tuple(Sample(seconds * part, int(order.bytes * part)) for part in parts)
        self._pass_time(samples, watch)
        self._fail_where_told(order)
        self.files.copy(order)
        return Receipt(order.bytes, seconds, samples=samples, ip_version=6)

    def _pass_time(self, samples: tuple[Sample, ...], watch: Watch) -> None:
        stopped = threading.Event()
        with watch.on_stop(stopped.set):
            for sample in samples:
                stopped.wait(self._seconds / STEPS)
                watch.check()
                watch.report(sample.bytes)

    def _fail_where_told(self, order: Order) -> None:
        for end in (order.source, order.destination):
            if error := self._failures.get(urlsplit(end.url).hostname or ""):
                raise MoverError(error.where, str(error), permanent=error.permanent)


def rate(order: Order) -> float:
    """Return the bytes per second of this link and size: always the same, between the bounds."""
    link = (urlsplit(order.source.url).netloc, urlsplit(order.destination.url).netloc)
    key = f"{link[0]} {link[1]} {order.bytes}".encode()
    part = int.from_bytes(hashlib.sha256(key).digest()[:8]) / 2**64
    return float(SLOWEST * (FASTEST / SLOWEST) ** part)
