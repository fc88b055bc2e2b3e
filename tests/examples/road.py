"""A way to a server on which things happen: answers that are lost, cut, late or refused."""

from __future__ import annotations

from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import requests

PASSED_ON = ("Authorization", "Content-Type", "If-None-Match", "User-Agent", "Accept")


class Road:
    """Passes requests on; each of ``events`` befalls one of them.

    A status is answered at once (`429 1` with Retry-After: 1), `lost` closes the connection
    after the server has answered, `cut` in the middle of its answer, `html` answers a page.
    """

    def __init__(self, url: str) -> None:
        self.events: deque[str] = deque()
        self.seen: list[requests.Response | None] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        road = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                road.pass_on(self, url)

            do_POST = do_GET  # noqa: N815 - as the library calls it

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Road:
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def statuses(self) -> list[int]:
        return [one.status_code for one in self.seen if one is not None]

    def pass_on(self, handler: BaseHTTPRequestHandler, url: str) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.asked.append((handler.command, handler.path, dict(handler.headers)))
        event = self.events.popleft() if self.events else ""
        if event[:1].isdigit() or event == "html":
            answer_at_once(handler, event)
            return
        headers = {name: handler.headers[name] for name in PASSED_ON if name in handler.headers}
        answer = requests.request(
            handler.command, url + handler.path, data=body, headers=headers, timeout=120
        )
        self.seen.append(answer)
        if event == "lost":
            handler.close_connection = True
            return
        send(handler, answer, cut=event == "cut")


def answer_at_once(handler: BaseHTTPRequestHandler, event: str) -> None:
    status, _, wait = event.partition(" ")
    handler.send_response(200 if event == "html" else int(status))
    body = b"<html>hello</html>" if event == "html" else b'{"detail": "Not now.", "errors": {}}'
    headers: dict[str, Any] = {"Content-Length": len(body)}
    headers["Content-Type"] = "text/html" if event == "html" else "application/json"
    headers |= {"Retry-After": wait} if wait else {}
    for name, value in headers.items():
        handler.send_header(name, str(value))
    handler.end_headers()
    handler.wfile.write(body)


def send(handler: BaseHTTPRequestHandler, answer: requests.Response, *, cut: bool) -> None:
    handler.send_response(answer.status_code)
    for name in ("Content-Type", "ETag", "Retry-After"):
        if name in answer.headers:
            handler.send_header(name, answer.headers[name])
    handler.send_header("Content-Length", str(len(answer.content)))
    handler.end_headers()
    handler.wfile.write(answer.content[: len(answer.content) // 2] if cut else answer.content)
    handler.close_connection = handler.close_connection or cut
