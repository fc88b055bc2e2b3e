"""GridFTP by globus-url-copy: the source sends to the destination, with streams and a TCP buffer.

It prints the bytes that have moved about every five seconds, and at the end; its rates count
mebibytes as "MB" and are not read. A short transfer has no line.
"""

from __future__ import annotations

import re

from sonar.movers import tool
from sonar.movers.base import MoverError, Order, Receipt, Seen, Watch, Where
from sonar.movers.file_address import parsed, require_inside
from sonar.movers.ftp_files import Ftp
from sonar.movers.messages import one_line
from sonar.movers.tool import Command, Ended

PROGRESS = re.compile(
    r"\s*([0-9]{1,18}) bytes\s+[0-9.]+ [KMG]?B/sec avg\s+[0-9.]+ [KMG]?B/sec inst"
)
CONNECT = re.compile(r"Unable to connect to (\S+)")
OPENED = re.compile(r"Unable to open file (\S+)")
PERMANENT = re.compile(r"No such file|Permission denied|not permitted|Login incorrect", re.I)


class GridFtp:
    """globus-url-copy between two servers."""

    def __init__(self) -> None:
        self.files = Ftp()

    def move(self, order: Order, watch: Watch) -> Receipt:
        """Make one transfer happen, or raise MoverError."""
        require_inside(order.destination)
        self.files.make_directories(order.destination, order)
        # The kernels of the servers may give smaller buffers, and only their own logs say so.
        watch.seen = Seen(streams_used=order.streams)
        ended = tool.move(Command(arguments(order)), order, watch, moved_bytes)
        if ended.code:
            raise failed(order, ended)
        return Receipt(order.bytes, ended.seconds, "globus-url-copy ended well")


def arguments(order: Order) -> tuple[str, ...]:
    buffer = ("-tcp-bs", str(order.tcp_buffer_bytes)) if order.tcp_buffer_bytes else ()
    ends = (parsed(end, end.url).url for end in (order.source, order.destination))
    return ("globus-url-copy", "-vb", "-p", str(order.streams), *buffer, *ends)


def moved_bytes(line: str) -> int | None:
    """Return how many bytes had moved, of a line that says it."""
    match = PROGRESS.match(line)
    return int(match[1]) if match else None


def failed(order: Order, ended: Ended) -> MoverError:
    """Return what its words say: which end, and whether it will last."""
    text = ended.text.partition("error:")[2] or ended.text
    where = blamed(order, text)
    why = one_line(text) or f"ended with {ended.code}, without a word"
    return MoverError(where, f"globus-url-copy: {why}", permanent=bool(PERMANENT.search(text)))


def blamed(order: Order, text: str) -> Where:
    """Return the end that an error names; the way between them where it names none."""
    for end in (order.source, order.destination):
        address = parsed(end, end.url)
        refused, opened = CONNECT.search(text), OPENED.search(text)
        if refused and refused[1].rstrip(".") == f"{address.host}:{address.port or 21}":
            return end.where
        if opened and (address.path or "").endswith(opened[1].lstrip("/")):
            return end.where
    return Where.TRANSFER
