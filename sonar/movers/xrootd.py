"""root:// third-party copy by xrdcp: the destination fetches the file from the source.

xrdcp shows its progress to a terminal only, in binary multiples whatever it calls them. Each run
costs some 2.5 s beside the bytes: rates of small files are not those of another mover.
"""

from __future__ import annotations

import re

from sonar.movers import tool
from sonar.movers.base import MoverError, Order, Receipt, Seen, Watch, Where
from sonar.movers.file_address import require_inside
from sonar.movers.messages import one_line
from sonar.movers.tool import Command, Ended
from sonar.movers.xrootd_files import PERMANENT, VARIABLES, XrootdFiles, root_url

AMOUNT = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"
PROGRESS = re.compile(rf"\[({AMOUNT})([kMGTP]?)B/{AMOUNT}[kMGTP]?B\]\[\s*[0-9]+%\]")
MULTIPLES = {letter: 1024**power for power, letter in enumerate(("", "k", "M", "G", "T", "P"))}
ERROR = re.compile(r"\[(?:ERROR|FATAL)\]\s*(.*)")
REFUSED = 51
"""Its exit code where a server cannot be reached."""


class Xrootd:
    """xrdcp --tpc only between two servers."""

    def __init__(self) -> None:
        self.files = XrootdFiles()

    def move(self, order: Order, watch: Watch) -> Receipt:
        """Make one transfer happen, or raise MoverError."""
        require_inside(order.destination)
        self.files.make_directories(order.destination, order)
        watch.seen = Seen(streams_used=1 if order.streams == 1 else None)
        command = Command(arguments(order), VARIABLES, on_terminal=True)
        ended = tool.move(command, order, watch, lambda line: moved_bytes(line, order.bytes))
        if ended.code:
            raise self._failed(order, ended)
        return Receipt(order.bytes, ended.seconds, "xrdcp ended well")

    def _failed(self, order: Order, ended: Ended) -> MoverError:
        """Return what its words say, and which end they are about: that is asked, once."""
        match = ERROR.search(ended.text)
        text = match[1] if match else ended.text
        why = f"xrdcp: {one_line(text) or f'ended with {ended.code}, without a word'}"
        for end in (order.source, order.destination):
            try:
                self.files.require_base(end, order)
            except MoverError as error:
                return MoverError(end.where, f"{why}; {error}", permanent=error.permanent)
        if self.files.stat(order.source, order) is None:
            return MoverError(Where.SOURCE, why, permanent=True)
        return MoverError(Where.TRANSFER, why, permanent=bool(PERMANENT.search(text)))


def arguments(order: Order) -> tuple[str, ...]:
    overwrite = ("--force",) if order.overwrite else ()
    streams = ("--streams", str(order.streams)) if order.streams > 1 else ()
    ends = (root_url(order.source), root_url(order.destination))
    return ("xrdcp", "--tpc", "only", *overwrite, *streams, *ends)


def moved_bytes(line: str, whole: int) -> int | None:
    """Return how many bytes had moved, of a line that says it: three or four digits of them."""
    match = PROGRESS.search(line)
    return min(round(float(match[1]) * MULTIPLES[match[2]]), whole) if match else None
