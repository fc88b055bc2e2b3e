"""Whether what arrived is what was sent: asked for with patience, as servers read files for it.

XRootD 5.5.3 works out ``xrootd.chksum max`` (4) checksums at a time and lets eight more wait;
whom it has no room for it makes wait for 30 s without a word. It forgets who hangs up, so an
answer is waited for long; only then it is asked again. Nothing of this is part of a rate.
"""

import threading
import time
from dataclasses import dataclass

from cachetools import LRUCache

from sonar.movers.base import End, FileInfo, Late, MoverError, NotReady, Order, Stopped, Where
from sonar.movers.messages import host_and_path
from sonar.movers.mover import Files
from sonar.movers.watch import Watch, within

FIRST_ASK = 0.2
"""Of the whole patience; each later ask may take twice as long."""
ALIVE_SECONDS = 5.0
"""A server that is at work on a checksum still answers to a plain look."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
SOURCES_KEPT = 10_000


@dataclass(frozen=True)
class Verification:
    """Whether a checksum was as expected; if that is not known, why."""

    verified: bool
    note: str = ""


class WrongContent(MoverError):
    """What arrived is not what was sent, or what was sent is not the test file."""


class Inquiry:
    """The checksums of one order: all asks together have ``limits.checksum`` seconds."""

    def __init__(self, files: Files, order: Order, watch: Watch) -> None:
        self._files, self._order, self._watch = files, order, watch
        self._end = time.monotonic() + order.limits.checksum

    @property
    def _left(self) -> float:
        return self._end - time.monotonic()

    def of(self, end: End) -> tuple[str, str]:
        """Return a file's checksum, or an empty string and why it is not known."""
        try:
            checksum = self._ask_again_and_again(end)
        except Stopped:
            return "", "stopped before the checksum was ready"
        except MoverError as error:
            return "", str(error)
        return checksum, "" if checksum else "the server offers no adler32"

    def _ask_again_and_again(self, end: End) -> str:
        patience = self._order.limits.checksum
        ask, pause = patience * FIRST_ASK, FIRST_PAUSE
        while (left := self._left) > 0:
            try:
                return self._ask(end, min(ask, left))
            except Late:
                self._require_alive(end)
            except NotReady:
                self._watch.pause(min(pause, self._left))
                pause = min(2 * pause, LONGEST_PAUSE)
            ask *= 2
        raise MoverError(end.where, f"the checksum was not ready after {patience:g} s")

    def _ask(self, end: End, seconds: float) -> str:
        with within(self._watch, seconds):
            return self._files.checksum(end, self._order, seconds)

    def _require_alive(self, end: End) -> None:
        with within(self._watch, min(ALIVE_SECONDS, self._order.limits.answer)):
            self._files.stat(end, self._order)


def verify(files: Files, order: Order, watch: Watch, source: FileInfo | None) -> Verification:
    """Compare the checksums of what was sent and what arrived; raise WrongContent if they differ.

    ``source`` is what its server said of the source file, None if it was uploaded just now.
    """
    inquiry = Inquiry(files, order, watch)
    arrived, why = inquiry.of(order.destination)
    if not arrived:
        if order.adler32 and source:
            _check_source_once(inquiry, order, source)
        return Verification(False, why)
    expected = order.adler32
    if not expected:
        expected, why = inquiry.of(order.source)
        if not expected:
            return Verification(False, f"of the source: {why}")
    if arrived != expected:
        _require_source(inquiry, order)
        place = host_and_path(order.destination)
        message = f"{place}: adler32 {arrived} arrived, {expected} was sent"
        raise WrongContent(Where.TRANSFER, message)
    return Verification(True)


def _require_source(inquiry: Inquiry, order: Order) -> bool:
    """Return whether the source file is known to be the test file; raise if it is another."""
    offered, _ = inquiry.of(order.source)
    if order.adler32 and offered and offered != order.adler32:
        message = (
            f"{host_and_path(order.source)}: adler32 {offered} is not that of the test file, "
            f"{order.adler32}: delete it, and the next test uploads it again"
        )
        raise WrongContent(Where.SOURCE, message, permanent=True)
    return bool(offered)


_known_sources: LRUCache[tuple[str, FileInfo], None] = LRUCache(SOURCES_KEPT)
_guard = threading.Lock()


def _check_source_once(inquiry: Inquiry, order: Order, source: FileInfo) -> None:
    """Look into the source file where the destination cannot tell: once, as it is now."""
    key = (order.source.url, source)
    with _guard:
        is_known = key in _known_sources
    if is_known or not _require_source(inquiry, order):
        return
    with _guard:
        _known_sources[key] = None
