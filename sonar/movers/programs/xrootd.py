"""root:// third-party copy by xrdcp: the destination fetches the file from the source.

xrdcp looks only every 2.5 s whether the copy is done, and shows its progress then: to a terminal
only, in binary multiples whatever it calls them. When it was told so is in the log of its library.
"""

import re

from sonar.movers.base import MoverError, Order, Receipt, Where
from sonar.movers.programs import tool
from sonar.movers.programs.copying import copy, named_end
from sonar.movers.programs.tool import Command, Ended
from sonar.movers.programs.xrootd_files import (
    LOG_LINE,
    LOGGED,
    PERMANENT,
    VARIABLES,
    XrootdFiles,
    XrootdLog,
    root_url,
)
from sonar.movers.watch import Seen, Watch

AMOUNT = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"
PROGRESS = re.compile(rf"\[({AMOUNT})([kMGTP]?)B/{AMOUNT}[kMGTP]?B\]\[\s*[0-9]+%\]")
MULTIPLES = {letter: 1024**power for power, letter in enumerate(("", "k", "M", "G", "T", "P"))}
ERROR = re.compile(r"\[(?:ERROR|FATAL)\]\s*(.*)")
VERSION = re.compile(r"\bv([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})")
# Before, it asks the destination for one stream more than it was told.
EXACT_STREAMS = (5, 6, 7)


class Xrootd:
    """xrdcp --tpc only between two servers."""

    def __init__(self) -> None:
        self.files = XrootdFiles()
        self._version: tuple[int, ...] = ()

    def move(self, order: Order, watch: Watch) -> Receipt:
        more = self._streams(order)
        watch.seen = Seen(streams_used=1 if order.streams == 1 else None, scitag=order.scitag)
        log = XrootdLog()

        def read(line: str) -> int | None:
            log.read(line)
            watch.seen.data_server = log.data_server
            return moved_bytes(line, order.bytes)

        command = Command(arguments(order, more), LOGGED, on_terminal=True)
        ended = copy(self.files, command, order, watch, read=read, failure=failed)
        watch.seen.transfer_seconds = log.between
        if log.answered is None:
            return Receipt(order.bytes, ended.seconds, "xrdcp ended well, within 2.5 s of the copy")
        return Receipt(order.bytes, log.answered - ended.began, "xrdcp ended well")

    def _streams(self, order: Order) -> tuple[str, ...]:
        """Return what makes the destination fetch by so many streams."""
        if order.streams == 1:
            return ()
        if not self._version:
            command = Command(("xrdcp", "--version"), VARIABLES)
            self._version = version_of(tool.ask(command, order.destination, order).text)
        return ("--streams", str(order.streams - (self._version < EXACT_STREAMS)))


def failed(order: Order, ended: Ended) -> MoverError:
    """Return what its words say, and of which end if they name its file."""
    own = LOG_LINE.sub("", ended.text)
    match = ERROR.search(own)
    text = match[1] if match else own
    where = named_end(order, text) or Where.TRANSFER
    why = f"xrdcp: {ended.complaint(text)}"
    return MoverError(where, why, permanent=bool(PERMANENT.search(text)))


def arguments(order: Order, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    overwrite = ("--force",) if order.overwrite else ()
    flow = f"?scitag.flow={order.scitag}" if order.scitag else ""
    ends = (root_url(end) + flow for end in (order.source, order.destination))
    return ("xrdcp", "--tpc", "only", *overwrite, *more, *ends)


def version_of(text: str) -> tuple[int, ...]:
    """Return the version of xrdcp, as it says it; that of the newest ones if it does not."""
    match = VERSION.search(text)
    return tuple(map(int, match.groups())) if match else EXACT_STREAMS


def moved_bytes(line: str, whole: int) -> int | None:
    """Return how many bytes had moved, of a line that says it: three or four digits of them."""
    match = PROGRESS.search(line)
    return min(round(float(match[1]) * MULTIPLES[match[2]]), whole) if match else None
