"""What the active end of a COPY does at the passive one: it fetches a file, or sends one.

As XRootD, dCache and StoRM do: redirects are followed, and the token is shown to the first host
only. A file is sent once `100 Continue` has come, so that a redirect costs no byte.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

MAX_REDIRECTS = 20
PIECE_BYTES = 64 * 1024
BYTES_PER_SECOND = 4e6
SECONDS = 30.0


class RemoteError(Exception):
    """The other end refused (``status``), or cannot be reached (0)."""

    def __init__(self, method: str, status: int, reason: str, redirects: tuple[str, ...]) -> None:
        super().__init__(reason)
        self.method, self.status, self.reason = method, status, reason
        self.redirects = redirects


@dataclass
class Answer:
    """The head of an answer, and where its body comes from."""

    status: int
    reason: str
    headers: http.client.HTTPMessage
    stream: BinaryIO
    sock: socket.socket


@contextmanager
def asked(method: str, url: str, headers: dict[str, str], trust: str) -> Iterator[Answer]:
    """Ask, by a connection for this one request; raise OSError if that breaks."""
    address = urlsplit(url)
    plain = socket.create_connection((str(address.hostname), int(address.port or 443)), SECONDS)
    context = ssl.create_default_context(cafile=trust)
    with plain, context.wrap_socket(plain, server_hostname=address.hostname) as sock:
        target = f"{address.path}?{address.query}" if address.query else address.path
        lines = [f"{method} {target} HTTP/1.1", f"Host: {address.netloc}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        sock.sendall("\r\n".join([*lines, "", ""]).encode())
        with sock.makefile("rb") as stream:
            yield head_of(stream, sock)


def head_of(stream: BinaryIO, sock: socket.socket) -> Answer:
    first = stream.readline().decode("latin-1")
    if not first:
        raise ConnectionError("no answer")
    _, status, reason = [*first.strip().split(" ", 2), ""][:3]
    return Answer(int(status), reason, http.client.parse_headers(stream), stream, sock)


@dataclass
class Transfer:
    """One file on its way between this server and another one, in a thread of its own."""

    method: str
    url: str
    file: Path
    token: str
    trust: str
    looks_after: bool = False
    """Whether the other end is asked after what it was sent."""
    moved: int = 0
    seconds: float = 0.0
    """While bytes moved."""
    error: RemoteError | None = None
    digest: str = ""
    redirects: list[str] = field(default_factory=list)

    def start(self) -> Transfer:
        self._began, self._over = threading.Event(), threading.Event()
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def is_over(self, seconds: float) -> bool:
        """Wait so long for the end; say whether it has come."""
        return self._over.wait(seconds)

    def wait_for_first_byte(self) -> None:
        self._began.wait()

    def _run(self) -> None:
        try:
            self._move()
        except OSError as error:
            self.error = self._failure(0, str(error))
        except RemoteError as error:
            self.error = error
        finally:
            self._began.set()
            self._over.set()

    def _failure(self, status: int, reason: str) -> RemoteError:
        return RemoteError(self.method, status, reason, tuple(self.redirects))

    def _move(self) -> None:
        if self.method == "GET":
            self._follow("HEAD", self.url, self._note_digest)
            self._follow("GET", self.url, self._take)
        else:
            self._follow("PUT", self.url, self._give)
            if self.looks_after:
                self._follow("HEAD", self.url, self._note_digest)

    def _follow(self, method: str, url: str, then: Callable[[Answer], None]) -> None:
        headers = {"Authorization": self.token} if self.token else {}
        if method == "PUT":
            size = str(self.file.stat().st_size)
            headers |= {"Expect": "100-continue", "Content-Length": size}
        if method == "HEAD":
            headers["Want-Digest"] = "adler32"
        for _ in range(MAX_REDIRECTS):
            with asked(method, url, headers, self.trust) as answer:
                if answer.status not in {301, 302, 307, 308}:
                    if answer.status >= 300:
                        raise self._failure(answer.status, answer.reason)
                    then(answer)
                    return
                url = urljoin(url, answer.headers["Location"])
                self.redirects.append(url)
                headers.pop("Authorization", None)
        raise self._failure(0, "too many redirects")

    def _note_digest(self, answer: Answer) -> None:
        self.digest = answer.headers.get("Digest", "")

    def _take(self, answer: Answer) -> None:
        left = int(answer.headers["Content-Length"])
        with self._pace() as tick, self.file.open("wb") as target:
            while left and (piece := answer.stream.read(min(left, PIECE_BYTES))):
                target.write(piece)
                left -= len(piece)
                tick(len(piece))
        if left:
            raise ConnectionError(f"Transfer closed with {left} bytes remaining to read")

    def _give(self, answer: Answer) -> None:
        if answer.status != 100:
            return  # taken without its body: an empty file
        with self._pace() as tick, self.file.open("rb") as content:
            while piece := content.read(PIECE_BYTES):
                answer.sock.sendall(piece)
                tick(len(piece))
        final = head_of(answer.stream, answer.sock)
        if final.status >= 300:
            raise self._failure(final.status, final.reason)

    @contextmanager
    def _pace(self) -> Iterator[Callable[[int], None]]:
        """Count bytes, and let none go faster than they are to."""
        began = time.monotonic()
        self._began.set()

        def tick(size: int) -> None:
            self.moved += size
            time.sleep(max(0.0, began + self.moved / BYTES_PER_SECOND - time.monotonic()))

        yield tick
        self.seconds = time.monotonic() - began
