"""One measurement: prepare the source, move, verify, and leave nothing behind.

Nothing is tried twice: a retried test is a different measurement. On success this costs four
requests (look at the source, move, look at the destination, delete).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from sonar.movers.base import (
    End,
    FileInfo,
    Files,
    Mover,
    MoverError,
    Order,
    Receipt,
    Sample,
    Watch,
    Where,
)

LOOK_AGAIN_SECONDS = (1.0, 1.5)
"""After a failure: XRootD notes a broken connection within 1-2 s, and may create until then."""
LOCK_SLICE_SECONDS = 0.2


@dataclass(frozen=True)
class Outcome:
    """What became of one order: a receipt or an error, and what was left behind."""

    receipt: Receipt | None
    error: MoverError | None
    leftover: MoverError | None
    """Why the destination file could not be deleted; None if nothing is left."""
    elapsed_seconds: float
    """From the start of the move to its end, good or bad; 0 if it never began."""
    prepare_seconds: float | None = None
    """Until the move began; None if it never did."""
    samples: tuple[Sample, ...] = ()
    moved_bytes: int | None = None
    """What is known to have arrived, good or bad; None where nobody can tell."""
    verified: bool | None = None
    """Whether the checksum of what arrived is that of the source; None if nothing arrived."""
    verified_note: str = ""
    """Why it is not verified."""


class _Uploads:
    """One lock per source file while anyone wants it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, _Lock] = WeakValueDictionary()
        self._guard = threading.Lock()

    @contextmanager
    def turn(self, url: str, watch: Watch) -> Iterator[None]:
        """Wait for this thread's turn at the file; a stop ends the wait."""
        with self._guard:
            lock = self._locks.setdefault(url, _Lock())
        while not lock.lock.acquire(timeout=LOCK_SLICE_SECONDS):
            watch.check()
        try:
            yield
        finally:
            lock.lock.release()


class _Lock:
    def __init__(self) -> None:
        self.lock = threading.Lock()


_uploads = _Uploads()


def measure(mover: Mover, order: Order, watch: Watch) -> Outcome:
    """Carry out one order to its end; every MoverError is in the outcome, none is raised."""
    try:
        watch.check()
        expected = prepare(mover.files, order, watch)
        watch.check()
    except MoverError as error:
        return Outcome(None, error, None, 0.0)
    clock = _Clock()
    try:
        receipt = clock.time(mover, order, watch)
        verify(mover.files, order, expected)
    except MoverError as error:
        leftover = remove(mover.files, order, LOOK_AGAIN_SECONDS)
        return Outcome(None, error, leftover, clock.seconds)
    except BaseException:
        remove(mover.files, order, LOOK_AGAIN_SECONDS)
        raise
    leftover = remove(mover.files, order)
    return Outcome(receipt, None, leftover, clock.seconds, samples=receipt.samples)


class _Clock:
    """How long the move took, whether it succeeded or not."""

    seconds = 0.0

    def time(self, mover: Mover, order: Order, watch: Watch) -> Receipt:
        began = time.monotonic()
        try:
            return mover.move(order, watch)
        finally:
            self.seconds = time.monotonic() - began


def prepare(files: Files, order: Order, watch: Watch) -> str:
    """See that the source file is there; return its checksum, empty if nobody knows it."""
    info = files.stat(order.source, order)
    if not _usable(info, order):
        with _uploads.turn(order.source.url, watch):
            info = files.stat(order.source, order)  # another thread may have put it meanwhile
            if not _usable(info, order):
                watch.check()
                files.put(order, watch)
                return order.adler32
    return require_content(info, order)


def _usable(info: FileInfo | None, order: Order) -> bool:
    return info is not None and info.bytes == order.bytes


def require_content(info: FileInfo | None, order: Order) -> str:
    """Return the checksum to expect; raise MoverError if the source is not the test file."""
    offered = info.adler32 if info else ""
    if order.adler32 and offered and offered != order.adler32:
        message = (
            f"{host_and_path(order.source)}: adler32 {offered} is not that of the test file, "
            f"{order.adler32}: delete it, the next test puts it anew"
        )
        raise MoverError(Where.SOURCE, message, permanent=True)
    return order.adler32 or offered


def verify(files: Files, order: Order, expected: str) -> None:
    """Raise MoverError unless what arrived is what was sent."""
    info = files.stat(order.destination, order)
    place = host_and_path(order.destination)
    if info is None:
        raise MoverError(Where.TRANSFER, f"{place}: reported as done, but it is not there")
    if info.bytes != order.bytes:
        message = f"{place}: {info.bytes} bytes arrived of {order.bytes}"
        raise MoverError(Where.TRANSFER, message)
    if expected and info.adler32 and info.adler32 != expected:
        message = f"{place}: adler32 {info.adler32} arrived, {expected} was sent"
        raise MoverError(Where.TRANSFER, message)


def remove(files: Files, order: Order, looks: tuple[float, ...] = ()) -> MoverError | None:
    """Delete the destination file; return why that failed, None if it is gone.

    ``looks`` are pauses in seconds, after each of which it must still be gone.
    """
    try:
        files.delete(order.destination, order)
        for pause in looks:
            time.sleep(pause)
            if files.stat(order.destination, order) is not None:
                files.delete(order.destination, order)
    except MoverError as error:
        return error
    return None


def host_and_path(end: End) -> str:
    """Return where a file is, for people: never user information or a query."""
    address = end.url.partition("?")[0]
    return address.partition("://")[2].rpartition("@")[2]
