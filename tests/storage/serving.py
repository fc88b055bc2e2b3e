"""What HTTP servers of tests share: every method in one place, whole answers, and no log."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class AnyMethod(BaseHTTPRequestHandler):
    """Answers every method by ``serve``."""

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        setattr(self, f"do_{self.command}", self.serve)
        return True

    def serve(self) -> None:
        raise NotImplementedError

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def answer(
        self,
        status: int,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        phrase: str | None = None,
    ) -> None:
        self.send_response(status, phrase)
        for name, value in ({"Content-Length": str(len(content))} | dict(headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[ThreadingHTTPServer]:
    """Serve on a loopback port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()
