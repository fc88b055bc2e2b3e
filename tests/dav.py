"""A small WebDAV server in this process: files in memory, and what a test wants it to do wrong."""

from __future__ import annotations

import ssl
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.storage.serving import AnyMethod

Reply = tuple[int, Mapping[str, str], bytes]
Way = Callable[["Dav", str], Reply | None]
"""Given the server and a path, what it answers instead of the right thing; None for that."""
METHODS = "OPTIONS, HEAD, GET, PUT, MOVE, DELETE, MKCOL, PROPFIND, COPY"


class Dav:
    """What it holds, what it was asked, and by method what it does otherwise."""

    def __init__(self, ways: Mapping[str, Way], certificate: ssl.SSLContext | None) -> None:
        self.ways, self.files, self.directories = ways, dict[str, bytes](), {"/base"}
        self.requests: list[tuple[str, str]] = []
        self.tokens: set[str] = set()
        self.bytes_moved = 0
        self.date = ""
        """What all its answers have as Date, instead of the time."""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.scheme = "https" if certificate else "http"
        if certificate:
            self.server.socket = certificate.wrap_socket(self.server.socket, server_side=True)

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def base_url(self) -> str:
        host = "localhost" if self.scheme == "https" else "127.0.0.1"
        return f"{self.scheme}://{host}:{self.port}/base"

    def answer(self, method: str, path: str, body: bytes, target: str) -> Reply:
        self.requests.append((method, path))
        way = self.ways.get(method)
        if way and (reply := way(self, path)):
            return reply
        rightly: dict[str, Callable[[], Reply]] = {
            "OPTIONS": lambda: (200, {"Allow": METHODS}, b""),
            "HEAD": lambda: self._head(path),
            "GET": lambda: (200, {}, self.files[path]) if path in self.files else (404, {}, b""),
            "PUT": lambda: self._put(path, body),
            "MOVE": lambda: self._move(path, target),
            "DELETE": lambda: (204 if self.files.pop(path, None) is not None else 404, {}, b""),
            "MKCOL": lambda: self._make(path),
            "PROPFIND": lambda: (
                207 if path in self.files or path in self.directories else 404,
                {},
                b"",
            ),
        }
        return rightly[method]()

    def _head(self, path: str) -> Reply:
        if path in self.files:
            content = self.files[path]
            digest = f"adler32={zlib.adler32(content):08x}"
            return 200, {"Digest": digest, "Content-Length": str(len(content))}, b""
        return (200 if path in self.directories else 404), {"Content-Length": "0"}, b""

    def _put(self, path: str, body: bytes) -> Reply:
        if path.rpartition("/")[0] not in self.directories:
            return 409, {}, b""
        self.files[path] = body
        return 201, {}, b""

    def _move(self, path: str, target: str) -> Reply:
        self.files[urlsplit(target).path] = self.files.pop(path)
        return 201, {}, b""

    def _make(self, path: str) -> Reply:
        is_new = path not in self.directories
        self.directories.add(path)
        return (201 if is_new else 405), {}, b""


def handler_of(dav: Dav) -> type[AnyMethod]:
    class Handler(AnyMethod):
        protocol_version = "HTTP/1.1"

        def serve(self) -> None:
            dav.tokens.add(self.headers.get("Authorization", ""))
            body, target = self.body(), self.headers.get("Destination", "")
            path = urlsplit(self.path).path
            status, headers, content = dav.answer(self.command, path, body, target)
            dav.bytes_moved += len(body) + len(content)
            self.answer(status, headers, content)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return dav.date or super().date_time_string(timestamp)

    return Handler


@contextmanager
def serving(certificate: ssl.SSLContext | None = None, **ways: Way) -> Iterator[Dav]:
    """Let a server run that does what ``ways`` say by method, and all else rightly."""
    dav = Dav(ways, certificate)
    thread = threading.Thread(target=dav.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield dav
    finally:
        dav.server.shutdown()
        dav.server.server_close()
        thread.join()


def says(status: int, content: bytes = b"", **headers: str) -> Way:
    """Return what answers always so."""
    return lambda dav, path: (status, headers, content)
