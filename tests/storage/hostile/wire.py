"""One connection of a client, down to its bytes: what is heard, said, held back and torn."""

import asyncio
import itertools
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

MAX_HEAD_BYTES = 32 * 1024
PIECE_BYTES = 64 * 1024
LOOK_SECONDS = 0.5
FLOOD_PAUSE_SECONDS = 1 / 64
"""A flood has no end, but 4 MB/s: it is to drown a worker, not the machine that tests it."""
LONGEST_SECONDS = 900.0
"""What waits for ever here waits this long: the server, too, is bounded."""
CLOSING = {7, 8}
"""States of TCP on Linux (CLOSE, CLOSE_WAIT): the other side has hung up."""


@dataclass(frozen=True)
class Head:
    """The first lines of a request."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def length(self) -> int:
        text = self.headers.get("content-length", "0")
        return int(text) if text.isdecimal() else 0

    @property
    def is_of_incoming(self) -> bool:
        """Whether it is about the file of a test, and not about a source or a directory."""
        return "/incoming/" in self.path


class Peer:
    """A client's connection. Memory: one piece and one head, whatever the client sends."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._loop = sock, asyncio.get_running_loop()
        self._heard = b""

    async def head(self) -> Head | None:
        """Read up to the empty line; None if the client went before."""
        while b"\r\n\r\n" not in self._heard:
            piece = await self._loop.sock_recv(self._sock, PIECE_BYTES)
            if not piece or len(self._heard) > MAX_HEAD_BYTES:
                return None
            self._heard += piece
        text, _, self._heard = self._heard.partition(b"\r\n\r\n")
        first, *lines = text.decode("latin-1").split("\r\n")
        method, target, _ = [*first.split(" "), "", ""][:3]
        pairs = (line.partition(":") for line in lines)
        return Head(method, target, {name.lower(): value.strip() for name, _, value in pairs})

    async def body(self, head: Head) -> AsyncIterator[bytes]:
        """Yield the body of a request piece by piece; it ends early if the client goes."""
        if head.headers.get("expect", "").lower() == "100-continue":
            await self.send("HTTP/1.1 100 Continue\r\n\r\n")
        left = head.length
        while left:
            piece = self._heard or await self._loop.sock_recv(self._sock, PIECE_BYTES)
            if not piece:
                return
            taken, self._heard = piece[:left], piece[left:]
            left -= len(taken)
            yield taken

    async def send(self, data: bytes | str) -> None:
        encoded = data.encode() if isinstance(data, str) else data
        await self._loop.sock_sendall(self._sock, encoded)

    async def answer(self, status: int, text: str = "", **headers: str) -> None:
        """Give an ordinary, whole answer."""
        names = {"Content-Length": str(len(text.encode()))}
        names |= {name.replace("_", "-"): value for name, value in headers.items()}
        await self.send(head_of(status, **names) + text)

    async def flood(self, piece: Callable[[int], bytes]) -> None:
        """Send one piece after the other until the client goes."""
        for number in itertools.count():
            await self.send(piece(number))
            await asyncio.sleep(FLOOD_PAUSE_SECONDS)

    async def drip(self, data: bytes, pause: float = 1.0) -> None:
        """Send a byte now and then, from the beginning again after the last."""
        for byte in itertools.cycle(data):
            await self.send(bytes([byte]))
            await asyncio.sleep(pause)

    async def repeat(self, text: str, pause: float) -> None:
        """Say the same again and again."""
        while True:
            await self.send(text)
            await asyncio.sleep(pause)

    async def hang(self) -> None:
        """Say nothing and read nothing until the client goes."""
        async with asyncio.timeout(LONGEST_SECONDS):
            while self._state() not in CLOSING:
                await asyncio.sleep(LOOK_SECONDS)

    def _state(self) -> int:
        return self._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]

    def reset(self) -> None:
        """Tear the connection: the client reads an error instead of an end."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        with suppress(OSError):
            self._sock.close()


def head_of(status: int, **headers: str) -> str:
    """Return the head of an answer; headers by name."""
    phrase = HTTPStatus(status).phrase if status in iter(HTTPStatus) else "Odd"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {it}" for name, it in headers.items())]
    return "\r\n".join([*lines, "", ""])


def chunk(data: str) -> str:
    """Return a chunk of a body whose length nobody knows beforehand."""
    return f"{len(data.encode()):x}\r\n{data}\r\n"


LAST_CHUNK = "0\r\n\r\n"


def marker(moved: object, stripe: int = 0) -> str:
    """Return a performance marker as XRootD writes it."""
    lines = ["Perf Marker", f"Stripe Index: {stripe}", f"Stripe Bytes Transferred: {moved}", "End"]
    return "".join(f"{line}\n" for line in lines)
