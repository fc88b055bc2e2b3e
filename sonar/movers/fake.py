"""A mover for tests and demonstrations: nothing moves, the same order gives the same rate."""

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from sonar.movers.base import End, FileInfo, MoverError, Order, Receipt, Where
from sonar.movers.content import adler32, read_adler32
from sonar.movers.watch import Watch

STEPS = 4
SLOWEST, FASTEST = 2e6, 500e6  # bytes per second; real links lie between


@dataclass(frozen=True)
class FakeFile:
    """A file that has a length and a checksum, and nothing else."""

    bytes: int
    adler32: str = ""


class FakeFiles:
    """Files in memory, by URL; shared by threads."""

    def __init__(self) -> None:
        self.held: dict[str, FakeFile] = {}
        self._lock = threading.Lock()

    def stat(self, end: End, order: Order) -> FileInfo | None:
        with self._lock:
            file = self.held.get(end.url)
        return FileInfo(file.bytes, file.adler32) if file else None

    def checksum(self, end: End, order: Order, seconds: float) -> str:
        with self._lock:
            file = self.held.get(end.url)
        return read_adler32(f"adler32={file.adler32}" if file and file.adler32 else "", end)

    def put(self, order: Order, watch: Watch) -> None:
        checksum = order.adler32 or adler32(order.bytes)
        with self._lock:
            self.held[order.source.url] = FakeFile(order.bytes, checksum)

    def delete(self, end: End, order: Order) -> None:
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

    def __init__(
        self, failures: Mapping[str, MoverError] | None = None, seconds: float = 0.0
    ) -> None:
        self.files = FakeFiles()
        self._failures = dict(failures or {})
        self._seconds = seconds

    def move(self, order: Order, watch: Watch) -> Receipt:
        """Make one transfer happen, or raise MoverError; a failure comes when half is done."""
        seconds, seen = order.bytes / rate(order), watch.seen
        seen.ip_version, seen.streams_used = 6, order.streams
        seen.tcp_buffer_used_bytes, seen.scitag = order.tcp_buffer_bytes, order.scitag
        failure = self._failure_of(order)
        steps = STEPS // 2 if failure else STEPS
        for step in range(1, steps + 1):
            watch.pause(self._seconds / STEPS)
            part = step / STEPS
            watch.report(int(order.bytes * part), seconds * part)
        if failure:
            raise MoverError(failure.where, str(failure), permanent=failure.permanent)
        self.files.copy(order)
        return Receipt(order.bytes, seconds)

    def _failure_of(self, order: Order) -> MoverError | None:
        hosts = [urlsplit(end.url).hostname or "" for end in (order.source, order.destination)]
        return next((self._failures[host] for host in hosts if host in self._failures), None)


def rate(order: Order) -> float:
    """Return the bytes per second of this link and size: always the same, between the bounds."""
    link = (urlsplit(order.source.url).netloc, urlsplit(order.destination.url).netloc)
    key = f"{link[0]} {link[1]} {order.bytes}".encode()
    part = int.from_bytes(hashlib.sha256(key).digest()[:8]) / 2**64
    return float(SLOWEST * (FASTEST / SLOWEST) ** part)
