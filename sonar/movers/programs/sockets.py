"""The TCP connections of a program that runs here, as the kernel's sock_diag(7) lists them.

As `ss` does it, for the programs of our own user. It has to go through all connections of the
machine: 4 ms for a thousand.
"""

import re
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sonar.movers import tcp_info
from sonar.movers.tcp_info import TcpConnection

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
REQUEST_AND_DUMP = 0x1 | 0x300
DONE, ERROR = 3, 2
ESTABLISHED = 1 << 1
INET_DIAG_INFO = 2
# Of netlink's header, of sock_diag's request with 48 bytes of an address that is not sought, of
# its answer, and of an attribute behind that.
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBBxI48x")
INODE = struct.Struct("=68xI")
ATTRIBUTE = struct.Struct("=HH")
READ_BYTES = 1 << 18
SILENCE_SECONDS = 1.0
SOCKET = re.compile(r"socket:\[([0-9]+)\]")


def busiest(process: int) -> TcpConnection | None:
    """Return the connection by which a program has sent most so far; None for none."""
    inodes = set(sockets_of(process))
    if not inodes:
        return None
    of_program = [
        connection
        for family in (socket.AF_INET, socket.AF_INET6)
        for inode, answer in connections(family)
        if inode in inodes and (connection := tcp_info.parsed(answer))
    ]
    return max(of_program, key=lambda each: each.acknowledged_bytes or 0, default=None)


def sockets_of(process: int) -> Iterator[int]:
    """Give the numbers of the sockets that a program has open."""
    with suppress(OSError):  # it has ended, or is none of ours
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                if match := SOCKET.fullmatch(str(descriptor.readlink())):
                    yield int(match[1])


def connections(family: int) -> Iterator[tuple[int, bytes]]:
    """Give the number of each socket of this machine that is connected, with its TCP_INFO."""
    extensions = 1 << (INET_DIAG_INFO - 1)
    request = REQUEST.pack(family, socket.IPPROTO_TCP, extensions, ESTABLISHED)
    size = HEADER.size + len(request)
    header = HEADER.pack(size, SOCK_DIAG_BY_FAMILY, REQUEST_AND_DUMP, 0, 0)
    with (
        suppress(OSError),  # this kernel does not tell
        socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG) as netlink,
    ):
        netlink.settimeout(SILENCE_SECONDS)
        netlink.send(header + request)
        while True:
            for kind, message in messages(netlink.recv(READ_BYTES)):
                if kind in {DONE, ERROR}:
                    return
                yield INODE.unpack_from(message)[0], info_of(message)


def messages(datagram: bytes) -> Iterator[tuple[int, bytes]]:
    """Give the messages of one datagram of netlink, with their kinds."""
    while len(datagram) >= HEADER.size:
        size, kind, *_ = HEADER.unpack_from(datagram)
        yield kind, datagram[HEADER.size : size]
        datagram = datagram[aligned(max(size, HEADER.size)) :]


def info_of(message: bytes) -> bytes:
    """Return the TCP_INFO that comes with a connection; nothing if none does."""
    rest = message[INODE.size :]
    while len(rest) >= ATTRIBUTE.size:
        size, kind = ATTRIBUTE.unpack_from(rest)
        if kind == INET_DIAG_INFO:
            return rest[ATTRIBUTE.size : size]
        rest = rest[aligned(max(size, ATTRIBUTE.size)) :]
    return b""


def aligned(size: int) -> int:
    return size + 3 & ~3
