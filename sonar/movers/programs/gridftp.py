"""GridFTP by globus-url-copy: the source sends to the destination, with streams and a TCP buffer.

The files of an endpoint are asked for over plain FTP, as a server without GSI offers them.

It prints the bytes that have moved about every five seconds, and at the end; its rates count
mebibytes as "MB" and are not read. A short transfer has no line.
"""

import ftplib
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from sonar.movers import tcp_info
from sonar.movers.base import End, FileInfo, Late, MoverError, NoChecksum, Order, Receipt
from sonar.movers.content import read_adler32
from sonar.movers.failures import judge
from sonar.movers.file_address import (
    PORTS,
    at_path,
    directories_below_base,
    parsed,
    path_of,
    place_of,
    require_inside,
)
from sonar.movers.messages import one_line
from sonar.movers.programs.copying import copy
from sonar.movers.programs.tool import Command, Ended
from sonar.movers.uploads import NO_RENAME, WatchedFile, put_aside, put_in_place
from sonar.movers.watch import Seen, Watch, current

PROGRESS = re.compile(
    r"\s*([0-9]{1,18}) bytes\s+[0-9.]+ [KMG]?B/sec avg\s+[0-9.]+ [KMG]?B/sec inst"
)
# What it says of every transfer.
ANNOUNCED = re.compile(
    r"^(?:Source|Dest):.*$|^[^\S\n]+\S+[^\S\n]+->[^\S\n]+\S+[^\S\n]*$", re.MULTILINE
)


class GridFtp:
    """globus-url-copy between two servers."""

    def __init__(self) -> None:
        self.files = Ftp()

    def move(self, order: Order, watch: Watch) -> Receipt:
        # The kernels of the servers may give smaller buffers, and only their own logs say so.
        watch.seen = Seen(streams_used=order.streams)
        command = Command(arguments(order))
        ended = copy(self.files, command, order, watch, read=moved_bytes, failure=failed)
        return Receipt(order.bytes, ended.seconds, "globus-url-copy succeeded")


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
    return judge(text, order).error(f"globus-url-copy: {ended.complaint(text)}")


SHORTEST_SECONDS = 0.1
BLOCK_BYTES = 1 << 18
ABSENT = re.compile(r"no such file|not found|does not exist", re.IGNORECASE)
NOT_OFFERED = ("500", "501", "502", "504")
BARE = re.compile(r"(?:0x)?[0-9a-f]{1,8}(?!\S)", re.IGNORECASE)


class Ftp:
    """Files over FTP, by a connection for each question; as anonymous."""

    def stat(self, end: End, order: Order) -> FileInfo | None:
        with connected(end, order) as ftp:
            try:
                reply = ftp.sendcmd(f"SIZE {path_of(end, end.url)}")
            except ftplib.error_perm as error:
                if ABSENT.search(str(error)):
                    return None
                raise
            version = modified(ftp, path_of(end, end.url))
        return FileInfo(size_of(reply, end), version)

    def checksum(self, end: End, order: Order, seconds: float) -> str:
        with connected(end, order, seconds) as ftp:
            try:
                reply = ftp.sendcmd(f"CKSM ADLER32 0 -1 {path_of(end, end.url)}")
            except ftplib.error_perm as error:
                if str(error).startswith(NOT_OFFERED) and not ABSENT.search(str(error)):
                    why = one_line(str(error))
                    raise NoChecksum(
                        end.where, f"the server refused the request for an adler32 checksum ({why})"
                    ) from error
                raise
        said = reply[3:].strip()
        # The checksum alone is the usual answer.
        return read_adler32(f"adler32 {said}" if BARE.match(said) else said, end)

    def put(self, order: Order, watch: Watch) -> None:
        """Make the source file appear, whole or not at all: put aside, then moved into place."""
        end = order.source
        require_inside(end)
        with put_aside(self.delete, order, watch) as part:
            with connected(end, order) as ftp:
                require_base(ftp, end)
                make_directories(ftp, end)
                send(ftp, part, order, watch)
                try:
                    ftp.rename(path_of(part, part.url), path_of(end, end.url))
                except ftplib.error_perm as error:
                    if not str(error).startswith(NOT_OFFERED) and not NO_RENAME.search(str(error)):
                        raise
                else:
                    return
            self.delete(part, order)
        put_in_place(self, upload, order, watch)

    def delete(self, end: End, order: Order) -> None:
        require_inside(end)
        with connected(end, order) as ftp:
            try:
                ftp.delete(path_of(end, end.url))
            except ftplib.error_perm as error:
                if not ABSENT.search(str(error)):
                    raise

    def make_directories(self, end: End, order: Order) -> None:
        """Make what is missing between the base and the file; others may be making it too."""
        require_inside(end)
        with connected(end, order) as ftp:
            require_base(ftp, end)
            make_directories(ftp, end)


def upload(end: End, order: Order, watch: Watch) -> None:
    """Send the source file to this place by a connection of its own."""
    with connected(end, order) as ftp:
        send(ftp, end, order, watch)


def send(ftp: ftplib.FTP, end: End, order: Order, watch: Watch) -> None:
    """Send a file as ``storbinary`` does, and look at its connection when the server has it."""
    content = WatchedFile(order.bytes, watch)
    with ftp.transfercmd(f"STOR {path_of(end, end.url)}") as data:
        try:
            while chunk := content.read(BLOCK_BYTES):
                data.sendall(chunk)
            data.shutdown(socket.SHUT_WR)
            if ftp.sock is not None:  # the server may read the file for a checksum first
                span = current()
                patience = max(order.limits.answer, order.limits.checksum)
                left = min(patience, span.left) if span else patience
                ftp.sock.settimeout(max(left, SHORTEST_SECONDS))
            ftp.voidresp()
        finally:
            content.sent_by(tcp_info.of(data))


def require_base(ftp: ftplib.FTP, end: End) -> None:
    """Raise MoverError unless the base directory is there."""
    base = at_path(end, path_of(end, end.base_url))
    if not is_directory(ftp, path_of(base, base.url)):
        message = f"{place_of(base)}: the base directory is missing; Sonar does not create it"
        raise MoverError(end.where, message, permanent=True)


def make_directories(ftp: ftplib.FTP, end: End) -> None:
    for path in directories_below_base(end):
        try:
            ftp.mkd(path)
        except ftplib.error_perm:  # each kind of server says in its own words that it exists
            if not is_directory(ftp, path):
                raise


def size_of(reply: str, end: End) -> int:
    match = re.fullmatch(r"213 +([0-9]{1,18}) *", reply)
    if match is None:
        raise MoverError(
            end.where, f"SIZE {place_of(end)}: the server does not report the file size"
        )
    return int(match[1])


def is_directory(ftp: ftplib.FTP, path: str) -> bool:
    """Say whether there is a directory, which then is the current one."""
    try:
        ftp.cwd(path)
    except ftplib.error_perm as error:
        if ABSENT.search(str(error)):
            return False
        raise
    return True


def modified(ftp: ftplib.FTP, path: str) -> str:
    """Return when a file was changed, as the server says it; empty where it does not."""
    try:
        return ftp.sendcmd(f"MDTM {path}")
    except ftplib.error_perm:
        return ""


@contextmanager
def connected(end: End, order: Order, seconds: float | None = None) -> Iterator[ftplib.FTP]:
    """Log in as anonymous; what the server refuses, and silence, are raised as MoverError.

    Each answer may take ``limits.answer``, or so many ``seconds``, and never longer than what is
    left of the step; a stop of the step's watch ends it at once.
    """
    # Anonymous, and what it carries says nothing: no credential is ever given to it.
    span, ftp, address = current(), ftplib.FTP(), parsed(end, end.url)  # noqa: S321
    watch = span.watch if span else Watch()
    left = span.left if span else float("inf")
    watch.check()
    try:
        with watch.on_stop(lambda: hang_up(ftp)):
            host, port = str(address.host).strip("[]"), address.port or PORTS["ftp"]
            ftp.connect(host, port, max(min(order.limits.connect, left), SHORTEST_SECONDS))
            patience = seconds or order.limits.answer
            # Of data connections too.
            ftp.timeout = max(min(patience, left), SHORTEST_SECONDS)
            if ftp.sock is not None:
                ftp.sock.settimeout(ftp.timeout)
            ftp.login()
            ftp.voidcmd("TYPE I")
            yield ftp
    except (OSError, EOFError, UnicodeError, ftplib.Error) as error:
        watch.check()
        raise failure(end, error) from error
    finally:
        ftp.close()


def hang_up(ftp: ftplib.FTP) -> None:
    """Let a thread that waits for this connection go on, with an error."""
    if ftp.sock is not None:
        with suppress(OSError):
            ftp.sock.shutdown(socket.SHUT_RDWR)


def failure(end: End, error: Exception) -> MoverError:
    """Return what a server refused, or that it did not answer, as the end's error."""
    place = place_of(end)
    if isinstance(error, TimeoutError):
        return Late(end.where, f"{place}: no answer in time")
    text = one_line(str(error)) or "the connection was closed"
    return replace(judge(text), where=end.where).error(f"{place}: {text}")
