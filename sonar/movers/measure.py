"""One measurement: prepare the source, move, verify, and leave nothing behind.

Nothing is tried twice: a retried test is a different measurement. On success this costs five
requests (look at the source, move, look at the destination, ask for its checksum, delete), four
where a server tells the checksum with the length.
Each step has its time, ``Limits.longest`` in all, and ends at once when the caller says so.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from weakref import WeakValueDictionary

from cachetools import LRUCache

from sonar.movers.base import (
    STOP_SECONDS,
    End,
    FileInfo,
    Late,
    MoverError,
    NotReady,
    Order,
    Receipt,
    Stopped,
    Where,
)
from sonar.movers.messages import host_and_path
from sonar.movers.mover import Files, Mover, TellsOfArrival
from sonar.movers.watch import Seen, Upload, Watch, as_failures, within

LOOK_AGAIN_SECONDS = (1.0, 1.5)
"""After a failure: XRootD notes a broken connection within 1-2 s, and may create until then."""
LOCK_SLICE_SECONDS = 0.2


@dataclass(frozen=True)
class Outcome:
    """What became of one order: a receipt or an error, and what was left behind."""

    receipt: Receipt | None
    error: MoverError | None
    leftover: MoverError | None
    """Why the destination file is, or may be, still there; None if nothing is left."""
    elapsed_seconds: float
    """From the start of the move to its end, good or bad; 0 if it never began."""
    prepare_seconds: float | None = None
    """Until the move began, or until it was clear that it would not."""
    seen: Seen = field(default_factory=Seen)
    """Observations during the move, successful or not."""
    verified: bool | None = None
    """Whether the checksum of what arrived is that of the source; None if nothing arrived."""
    verified_note: str = ""
    """Why it is not verified."""
    left_aside: MoverError | None = None
    """Why a half-uploaded source file is, or may be, still there."""
    upload: Upload | None = None
    """How the source file was uploaded for it; None if it was there, or no byte was accepted."""


_upload_locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
"""One per source file while anyone wants it."""
_guard = threading.Lock()


@contextmanager
def upload_turn(order: Order, watch: Watch, seconds: float) -> Iterator[None]:
    """Wait this long at most for this thread's turn at the source file; a stop ends it."""
    with _guard:
        lock = _upload_locks.setdefault(order.source.url, threading.Lock())
    end = time.monotonic() + seconds
    while not lock.acquire(timeout=LOCK_SLICE_SECONDS):
        watch.check()
        if time.monotonic() >= end:
            place = host_and_path(order.source)
            message = f"{place}: other tests did not finish uploading this file in {seconds:.3g} s"
            raise MoverError(Where.SOURCE, message)
    try:
        yield
    finally:
        lock.release()


class _Clock:
    """How long a step took, whether it succeeded or not."""

    seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.seconds += time.monotonic() - self._began


def measure(mover: Mover, order: Order, watch: Watch) -> Outcome:
    """Carry out one order to its end; whatever goes wrong is in the outcome, and not raised."""
    outcome = _measured(mover, order, watch)
    return replace(outcome, upload=watch.upload)


def _measured(mover: Mover, order: Order, watch: Watch) -> Outcome:
    watch.seen = Seen()
    preparing, moving, looking, checking = _Clock(), _Clock(), _Clock(), _Clock()
    place = host_and_path(order.destination)
    try:
        watch.check()
        with preparing, as_failures(place, watch):
            source = prepare(mover.files, order, watch)
        watch.check()
    except MoverError as error:
        aside = error.left_aside
        return Outcome(None, error, None, 0.0, preparing.seconds, left_aside=aside)
    try:
        with as_failures(place, watch):
            with moving, within(watch, order.limits.total):
                receipt = mover.move(order, watch)
            with looking:
                arrived = require_arrival(mover.files, order, receipt, watch)
            checking.seconds = looking.seconds if arrived.adler32 else 0.0
            with checking:
                verified, note = verify(mover.files, order, watch, source, arrived)
    except MoverError as error:
        leftover = clean_up(mover.files, order, watch) or _unsettled(order, error)
        wrong = False if isinstance(error, WrongContent) else None
        times = moving.seconds, preparing.seconds
        return Outcome(None, error, leftover, *times, _whole(watch, checking), wrong)
    except BaseException:
        clean_up(mover.files, order, watch)
        raise
    leftover = clean_up(mover.files, order, watch, after_success=True)
    times = moving.seconds, preparing.seconds
    return Outcome(receipt, None, leftover, *times, _whole(watch, checking), verified, note)


def _whole(watch: Watch, checking: _Clock) -> Seen:
    """Return what was seen of a move with how long it took to verify what arrived, if it was.

    Where nothing else says which server moved the bytes, it is the one to which the source's file
    was sent just before.
    """
    seen = watch.seen
    seen.checksum_seconds = checking.seconds or None
    seen.data_server = seen.data_server or watch.uploaded_to
    return seen


def prepare(files: Files, order: Order, watch: Watch) -> FileInfo | None:
    """See that the source file is there, within ``limits.total``.

    Returns it as its server describes it, None if it was uploaded just now. Its length
    decides: whoever finds another content at the destination looks at the source's, too.
    """
    with within(watch, order.limits.total) as span:
        info = files.stat(order.source, order)
        if _usable(info, order):
            return info
        with upload_turn(order, watch, span.left):
            info = files.stat(order.source, order)  # another thread may have put it meanwhile
            if _usable(info, order):
                return info
            watch.check()
            files.put(order, watch)
    return None


def _usable(info: FileInfo | None, order: Order) -> bool:
    return info is not None and info.bytes == order.bytes


def require_arrival(files: Files, order: Order, receipt: Receipt, watch: Watch) -> FileInfo:
    """Raise MoverError unless the destination file is there and as long as it should be."""
    look = files.arrived if isinstance(files, TellsOfArrival) else files.stat
    with within(watch, order.limits.connect + order.limits.answer):
        info = look(order.destination, order)
    place = host_and_path(order.destination)
    watch.seen.moved_bytes = info.bytes if info else 0
    if info is None:
        message = f"{place}: reported as done ({receipt.verdict}), but the file is missing"
        raise MoverError(Where.TRANSFER, message)
    if info.bytes != order.bytes:
        message = f"{place}: {info.bytes} of {order.bytes} bytes arrived ({receipt.verdict})"
        raise MoverError(Where.TRANSFER, message)
    return info


def clean_up(
    files: Files, order: Order, watch: Watch, *, after_success: bool = False
) -> MoverError | None:
    """Delete the destination file; return why it is, or may be, still there.

    After a stop this is one quick try.
    """
    if not watch.stopped:
        looks = () if after_success else LOOK_AGAIN_SECONDS
        try:
            with within(watch, order.limits.cleaning):
                return remove(files, order, looks, watch)
        except Stopped:
            pass  # that was the long way; the quick one is left
    with within(Watch(), STOP_SECONDS):
        error = remove(files, order)
    if error is None and not after_success:
        place = host_and_path(order.destination)
        message = f"{place}: deleted, but the server may still write the file"
        return MoverError(Where.DESTINATION, message)
    return error


def _unsettled(order: Order, error: MoverError) -> MoverError | None:
    """Return why a file that is gone has to be looked for again; None if it has not."""
    if not error.is_unsettled:
        return None
    place = host_and_path(order.destination)
    message = f"{place}: deleted, but the transfer may still write the file"
    return MoverError(Where.DESTINATION, message)


def remove(
    files: Files, order: Order, looks: tuple[float, ...] = (), watch: Watch | None = None
) -> MoverError | None:
    """Delete the destination file; return why that failed, None if it is gone.

    ``looks`` are pauses in seconds, after each of which it must still be gone. Raises Stopped
    if the watch is stopped meanwhile.
    """
    watch, place = watch or Watch(), host_and_path(order.destination)
    try:
        with as_failures(f"deleting {place}", watch):
            files.delete(order.destination, order)
            for seconds in looks:
                watch.pause(seconds)
                if files.stat(order.destination, order) is not None:
                    files.delete(order.destination, order)
    except Stopped:
        raise
    except MoverError as error:
        return error
    return None


FIRST_ASK = 0.2
"""Of the whole patience; each later ask may take twice as long."""
ALIVE_SECONDS = 5.0
"""A server that is at work on a checksum still answers to a plain look."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
SOURCES_KEPT = 10_000


class WrongContent(MoverError):
    """What arrived is not what was sent, or what was sent is not the test file."""


class Inquiry:
    """The checksums of one order, asked for with patience, as servers read files for it.

    All asks together have ``limits.checksum`` seconds. XRootD 5.5.3 works out ``xrootd.chksum max``
    (4) checksums at a time and lets eight more wait; whom it has no room for it makes wait for 30 s
    without a word. It forgets who hangs up, so an answer is waited for long; only then it is asked
    again. Nothing of this is part of a rate.
    """

    def __init__(self, files: Files, order: Order, watch: Watch) -> None:
        self._files, self._order, self._watch = files, order, watch
        self._end = time.monotonic() + order.limits.checksum

    @property
    def _left(self) -> float:
        return self._end - time.monotonic()

    def of(self, end: End) -> tuple[str, str]:
        """Return a file's checksum, or an empty string and why it is not known."""
        try:
            return self._ask_again_and_again(end), ""
        except Stopped:
            return "", "stopped before the checksum was ready"
        except MoverError as error:
            return "", str(error)

    def _ask_again_and_again(self, end: End) -> str:
        patience = self._order.limits.checksum
        ask, pause = patience * FIRST_ASK, FIRST_PAUSE
        while (left := self._left) > 0:
            try:
                seconds = min(ask, left)
                with within(self._watch, seconds):
                    return self._files.checksum(end, self._order, seconds)
            except Late:
                with within(self._watch, min(ALIVE_SECONDS, self._order.limits.answer)):
                    self._files.stat(end, self._order)
            except NotReady:
                self._watch.pause(min(pause, self._left))
                pause = min(2 * pause, LONGEST_PAUSE)
            ask *= 2
        raise MoverError(end.where, f"the checksum was not ready after {patience:g} s")


def verify(
    files: Files, order: Order, watch: Watch, source: FileInfo | None, arrival: FileInfo
) -> tuple[bool, str]:
    """Compare the checksums of what was sent and what arrived; raise WrongContent if they differ.

    Returns whether they are known to be the same, and if not, why.
    ``source`` is what its server said of the source file, None if it was uploaded just now, and
    ``arrival`` what was said of the file that arrived: who told its checksum is not asked again.
    """
    inquiry = Inquiry(files, order, watch)
    arrived, why = (arrival.adler32, "") if arrival.adler32 else inquiry.of(order.destination)
    if not arrived:
        if order.adler32 and source:
            _check_source_once(inquiry, order, source)
        return False, why
    expected = order.adler32
    if not expected:
        expected, why = inquiry.of(order.source)
        if not expected:
            return False, f"checksum of the source: {why}"
    if arrived != expected:
        _require_source(inquiry, order)
        place = host_and_path(order.destination)
        message = (
            f"{place}: checksum mismatch: the received file has adler32 {arrived}, the sent file "
            f"{expected}"
        )
        raise WrongContent(Where.TRANSFER, message)
    return True, ""


def _require_source(inquiry: Inquiry, order: Order) -> bool:
    """Return whether the source file is known to be the test file; raise if it is another."""
    offered, _ = inquiry.of(order.source)
    if order.adler32 and offered and offered != order.adler32:
        message = (
            f"{host_and_path(order.source)}: the source file has adler32 {offered} instead of the "
            f"expected {order.adler32}. Delete the source file so that the next test uploads it "
            "again"
        )
        raise WrongContent(Where.SOURCE, message, permanent=True)
    return bool(offered)


_known_sources: LRUCache[tuple[str, FileInfo], None] = LRUCache(SOURCES_KEPT)


def _check_source_once(inquiry: Inquiry, order: Order, source: FileInfo) -> None:
    """Look into the source file where the destination cannot tell: once, as it is now."""
    key = (order.source.url, source)
    with _guard:
        is_known = key in _known_sources
    if is_known or not _require_source(inquiry, order):
        return
    with _guard:
        _known_sources[key] = None
