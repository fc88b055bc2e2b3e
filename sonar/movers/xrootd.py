"""root:// third-party copy by xrdcp: the destination fetches the file from the source.

xrdcp looks only every 2.5 s whether the copy is done, and shows its progress then: to a terminal
only, in binary multiples whatever it calls them. When it was told so is in the log of its library.
"""

from __future__ import annotations

import re
import time

from sonar.movers import tool
from sonar.movers.base import MoverError, Order, Receipt, Seen, Watch, Where
from sonar.movers.file_address import path_of, require_inside
from sonar.movers.messages import one_line
from sonar.movers.tool import Command, Ended
from sonar.movers.xrootd_files import PERMANENT, VARIABLES, XrootdFiles, root_url

LOGGED = VARIABLES | {"XRD_LOGLEVEL": "Dump", "XRD_LOGMASK": "XRootDMsg"}
LOG_LINE = re.compile(r"^\[[0-9]{4}-[0-9]{2}-[0-9]{2} .*$", re.MULTILINE)
SYNCED = re.compile(r"\[XRootD *\] .* Got a kXR_ok response to request kXR_sync\b")
AMOUNT = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"
PROGRESS = re.compile(rf"\[({AMOUNT})([kMGTP]?)B/{AMOUNT}[kMGTP]?B\]\[\s*[0-9]+%\]")
MULTIPLES = {letter: 1024**power for power, letter in enumerate(("", "k", "M", "G", "T", "P"))}
ERROR = re.compile(r"\[(?:ERROR|FATAL)\]\s*(.*)")
NAMED = re.compile(r"(?<=\s)(/\S*?)(?=[;,:]?(?:\s|$))")
MOST_STREAMS = 15
VERSION = re.compile(r"\bv([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})")
# Before, it asks the destination for one stream more than it was told.
EXACT_STREAMS = (5, 6, 7)


class Xrootd:
    """xrdcp --tpc only between two servers."""

    def __init__(self) -> None:
        self.files = XrootdFiles()
        self._version: tuple[int, ...] = ()

    def move(self, order: Order, watch: Watch) -> Receipt:
        """Make one transfer happen, or raise MoverError."""
        require_inside(order.destination)
        more = self._streams(order)
        self.files.make_directories(order.destination, order)
        watch.seen = Seen(streams_used=1 if order.streams == 1 else None)
        syncs = Syncs()

        def read(line: str) -> int | None:
            syncs.read(line)
            return moved_bytes(line, order.bytes)

        command = Command(arguments(order, more), LOGGED, on_terminal=True)
        ended = tool.move(command, order, watch, read)
        if ended.code:
            raise self._failed(order, ended)
        watch.seen.transfer_seconds = syncs.between
        if syncs.answered is None:
            return Receipt(order.bytes, ended.seconds, "xrdcp ended well, within 2.5 s of the copy")
        return Receipt(order.bytes, syncs.answered - ended.began, "xrdcp ended well")

    def _streams(self, order: Order) -> tuple[str, ...]:
        """Return what makes the destination fetch by so many streams, or raise MoverError."""
        if order.streams == 1:
            return ()
        if order.streams > MOST_STREAMS:
            message = f"xrdcp copies by at most {MOST_STREAMS} streams, not {order.streams}"
            raise MoverError(Where.CONTROL, message, permanent=True)
        if not self._version:
            asked = Command(("xrdcp", "--version"), VARIABLES)
            self._version = version_of(tool.ask(asked, order.destination, order).text)
        return ("--streams", str(order.streams - (self._version < EXACT_STREAMS)))

    def _failed(self, order: Order, ended: Ended) -> MoverError:
        """Return what its words say, and which end they are about: that is asked, if need be."""
        text = words_of(ended.text)
        why = f"xrdcp: {one_line(text) or f'ended with {ended.code}, without a word'}"
        permanent = bool(PERMANENT.search(text))
        if (where := blamed(order, text)) is not None:
            return MoverError(where, why, permanent=permanent)
        for end in (order.source, order.destination):
            try:
                self.files.require_base(end, order)
            except MoverError as error:
                return MoverError(end.where, f"{why}; {error}", permanent=error.permanent)
        if self.files.stat(order.source, order) is None:
            return MoverError(Where.SOURCE, why, permanent=True)
        return MoverError(Where.TRANSFER, why, permanent=permanent)


class Syncs:
    """When the destination answered: that it is ready to copy, and then that it has copied."""

    def __init__(self) -> None:
        self._at: list[float] = []

    def read(self, line: str) -> None:
        """Note the moment, if the library logs such an answer."""
        if SYNCED.search(line):
            self._at.append(time.monotonic())

    @property
    def answered(self) -> float | None:
        """Return when it had copied, on the monotonic clock; None if that was not heard."""
        return self._at[-1] if len(self._at) > 1 else None

    @property
    def between(self) -> float | None:
        """Return for how many seconds it copied; None if that was not heard."""
        return self._at[-1] - self._at[-2] if len(self._at) > 1 else None


def words_of(text: str) -> str:
    """Return what the program says of an error, without the log of its library."""
    own = LOG_LINE.sub("", text)
    found = ERROR.search(own)
    return found[1] if found else own


def blamed(order: Order, text: str) -> Where | None:
    """Return the end whose file an error names; None where it names neither."""
    for end in (order.source, order.destination):
        if path_of(end, end.url) in NAMED.findall(text):
            return end.where
    return None


def arguments(order: Order, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    overwrite = ("--force",) if order.overwrite else ()
    ends = (root_url(order.source), root_url(order.destination))
    return ("xrdcp", "--tpc", "only", *overwrite, *more, *ends)


def version_of(text: str) -> tuple[int, ...]:
    """Return the version of xrdcp, as it says it; that of the newest ones if it does not."""
    match = VERSION.search(text)
    return tuple(map(int, match.groups())) if match else EXACT_STREAMS


def moved_bytes(line: str, whole: int) -> int | None:
    """Return how many bytes had moved, of a line that says it: three or four digits of them."""
    match = PROGRESS.search(line)
    return min(round(float(match[1]) * MULTIPLES[match[2]]), whole) if match else None
