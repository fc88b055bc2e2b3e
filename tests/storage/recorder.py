"""A storage server that notes which token came with which request, and from whom; TLS, loopback."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import urllib3

from sonar.movers.content import TestFile
from tests.storage.serving import AnyMethod
from tests.storage.xrootd import Authority

BASE = "/base"


@dataclass(frozen=True)
class Heard:
    """One request as it reached a server."""

    sender: str
    receiver: str
    method: str
    tokens: frozenset[str]


Answer = tuple[int, dict[str, str]]
Trick = Callable[[str, str], Answer | None]
"""What to answer to a method and path instead of behaving well; None for nothing."""


@dataclass
class Diary:
    """Everything that was heard, by all servers of a test."""

    tokens: dict[str, str]
    """What each token is called."""
    entries: list[Heard] = field(default_factory=list)

    def note(self, sender: str, receiver: str, method: str, said: str) -> None:
        """Note a request; every token in its first line or headers counts, in whatever form."""
        tokens = frozenset(name for token, name in self.tokens.items() if token in said)
        self.entries.append(Heard(sender, receiver, method, tokens))


class Recorder:
    """Keeps the sizes of files, carries COPY out with what it was lent, and notes all of it."""

    def __init__(self, name: str, diary: Diary, authority: Authority, host: str) -> None:
        self.name, self.diary, self.host = name, diary, host
        self.files: dict[str, int] = {}
        self.trick: Trick = lambda method, path: None
        self.bundle = str(authority.bundle)
        recorder = self

        class Handler(_Handler):
            server_of = recorder

        self._server = ThreadingHTTPServer((host, 0), Handler)
        self._server.daemon_threads = True
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.ca.issue_cert(host).configure_cert(context)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self._server.server_port}"

    def reset(self) -> None:
        """Behave well from now on, and forget every file."""
        self.files.clear()
        self.trick = lambda method, path: None

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def carry_out(self, path: str, headers: dict[str, str]) -> str:
        """Make the transfer of a COPY with the token that was lent; return the verdict."""
        lent = headers.get("transferheaderauthorization", "")
        method = "GET" if "source" in headers else "PUT"
        url = headers.get("source") or headers["destination"]
        self.diary.note(self.name, "A", method, lent)
        body = contents(self.files.get(path, 0)) if method == "PUT" else None
        with urllib3.PoolManager(ca_certs=self.bundle) as pool:
            given = {"Authorization": lent} if lent else {}
            answer = pool.request(method, url, headers=given, body=body, redirect=False)
        if answer.status >= 300:
            return f"failure: Remote side failed with status code {answer.status}"
        if method == "GET":
            self.files[path] = len(answer.data)
        return "success: Created"


def contents(size: int) -> bytes:
    return b"".join(iter(TestFile(size).read, b""))


class _Handler(AnyMethod):
    protocol_version = "HTTP/1.1"
    server_of: Recorder

    def serve(self) -> None:
        recorder, path = self.server_of, urlsplit(self.path).path
        sender = "Sonar" if "urllib3" in self.headers.get("User-Agent", "") else "A"
        recorder.diary.note(sender, recorder.name, self.command, f"{self.path} {self.headers}")
        if answer := recorder.trick(self.command, path):
            self.close_connection = True
            self.answer(*answer)
            return
        size = int(self.headers.get("Content-Length", "0"))
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        taken = len(self.rfile.read(size))
        self.behave(path, taken)

    def handle_expect_100(self) -> bool:
        return True

    def behave(self, path: str, taken: int) -> None:
        files = self.server_of.files
        if self.command in {"HEAD", "GET"}:
            self.look(path)
        elif self.command == "PUT":
            files[path] = taken
            self.answer(201)
        elif self.command == "MOVE":
            files[urlsplit(self.headers["Destination"]).path] = files.pop(path)
            self.answer(201)
        elif self.command == "DELETE":
            self.answer(404 if files.pop(path, None) is None else 204)
        elif self.command == "COPY":
            headers = {name.lower(): value for name, value in self.headers.items()}
            verdict = self.server_of.carry_out(path, headers)
            self.answer(201, {}, verdict.encode())
        else:
            self.answer(405)

    def look(self, path: str) -> None:
        size = 0 if path == BASE else self.server_of.files.get(path)
        if size is None:
            self.answer(404)
            return
        self.answer(200, {"Content-Length": str(size)}, contents(size))

    def answer(self, status: int, headers: dict[str, str] | None = None, *rest: Any) -> None:
        """Say that the connection ends where it does: who kept it would ask on it again."""
        closing = {"Connection": "close"} if self.close_connection else {}
        super().answer(status, closing | (headers or {}), *rest)


@contextmanager
def recording(
    name: str, diary: Diary, authority: Authority, host: str = "127.0.0.1"
) -> Iterator[Recorder]:
    recorder = Recorder(name, diary, authority, host)
    try:
        yield recorder
    finally:
        recorder.close()


def between(text: str, begin: str, end: str) -> tuple[str, str, str]:
    """Return what stands before, between and after two markers of a text."""
    before, found, rest = text.partition(begin)
    middle, found_too, after = rest.partition(end)
    assert found, f"{begin} is missing"
    assert found_too, f"{end} is missing"
    return before + begin, middle, end + after
