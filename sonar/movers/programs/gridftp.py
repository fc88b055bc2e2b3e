"""GridFTP by globus-url-copy: the source sends to the destination, with streams and a TCP buffer.

It prints the bytes that have moved about every five seconds, and at the end; its rates count
mebibytes as "MB" and are not read. A short transfer has no line.
"""

import re

from sonar.movers.base import MoverError, Order, Receipt, Where
from sonar.movers.file_address import parsed
from sonar.movers.programs.copying import copy, named_end
from sonar.movers.programs.ftp_files import Ftp
from sonar.movers.programs.tool import Command, Ended
from sonar.movers.watch import Seen, Watch

PROGRESS = re.compile(
    r"\s*([0-9]{1,18}) bytes\s+[0-9.]+ [KMG]?B/sec avg\s+[0-9.]+ [KMG]?B/sec inst"
)
# What it says of every transfer.
ANNOUNCED = re.compile(r"^(?:Source|Dest):.*$|^\s+\S+\s+->\s+\S+\s*$", re.MULTILINE)
CONNECT = re.compile(r"Unable to connect to (\S+)")
PERMANENT = re.compile(r"No such file|Permission denied|not permitted|Login incorrect", re.I)


class GridFtp:
    """globus-url-copy between two servers."""

    def __init__(self) -> None:
        self.files = Ftp()

    def move(self, order: Order, watch: Watch) -> Receipt:
        # The kernels of the servers may give smaller buffers, and only their own logs say so.
        watch.seen = Seen(streams_used=order.streams)
        command = Command(arguments(order))
        ended = copy(self.files, command, order, watch, read=moved_bytes, failure=failed)
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
    own = ANNOUNCED.sub("", ended.text)
    text = own.partition("error:")[2] or own
    why = f"globus-url-copy: {ended.complaint(text)}"
    return MoverError(blamed(order, text), why, permanent=bool(PERMANENT.search(text)))


def blamed(order: Order, text: str) -> Where:
    """Return the end that an error names; the way between them where it names none."""
    refused = CONNECT.search(text)
    for end in (order.source, order.destination):
        address = parsed(end, end.url)
        if refused and refused[1].rstrip(".") == f"{address.host}:{address.port or 21}":
            return end.where
    return named_end(order, text) or Where.TRANSFER
