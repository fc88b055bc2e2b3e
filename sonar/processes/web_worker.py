"""gunicorn's worker with threads, which refuses in Sonar's words what it cannot read.

Its own would send back, and log, what was sent: a token in the wrong place, say.
"""

import json
import re
import socket
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from django.template.loader import render_to_string
from gunicorn import util
from gunicorn.http import RequestParser
from gunicorn.http.errors import (
    ExpectationFailed,
    InvalidHTTPVersion,
    InvalidRequestLine,
    InvalidRequestMethod,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request
from gunicorn.workers.gthread import TConn, ThreadWorker

# Enough of a first line to see who was asked; a method has 20 characters at most.
BEGINNING_BYTES = 100
TO_THE_API = re.compile(
    rb"(?:\r\n)?[^\s/]*\s*(?:https?://[^\s/?#]*)?/api(?:[/?#\s]|$)", re.IGNORECASE
)

ENDS = "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
POLICY = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
POLICY += "base-uri 'none'; frame-ancestors 'none'\r\n"


class UnreadableRequest(Exception):
    """A request that is no HTTP, or more than is read of one; with its first bytes."""

    def __init__(self, beginning: bytes, reason: ParseException) -> None:
        super().__init__(type(reason).__name__)
        self.beginning = beginning
        self.reason = reason


class BegunRequest(Request):  # type: ignore[misc]  # gunicorn has no types
    """A request that says how it began if the rest cannot be read."""

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - gunicorn's own
        self._beginning = b""
        try:
            super().__init__(*arguments)
        except ParseException as error:
            raise UnreadableRequest(self._beginning, error) from None

    def read_into(self, unreader: object, buf: bytearray, stop: bool = False) -> None:
        super().read_into(unreader, buf, stop)
        if len(self._beginning) < BEGINNING_BYTES:
            self._beginning = bytes(buf[:BEGINNING_BYTES])


class Parser(RequestParser):  # type: ignore[misc]
    mesg_class = BegunRequest

    def finish_body(self, *limits: float, **named: float) -> bool:
        """Skip the rest of a body; say False, so that the connection ends, if it is malformed.

        Its request is answered already: gunicorn would answer again, and log a traceback.
        """
        try:
            return bool(super().finish_body(*limits, **named))
        except ParseException:
            return False


class Worker(ThreadWorker):  # type: ignore[misc]
    def handle(self, conn: TConn) -> object:
        if conn.parser is None and not self.cfg.is_ssl:  # where it has to wrap the socket first
            conn.parser = Parser(self.cfg, conn.sock, conn.client)
        return super().handle(conn)

    def handle_error(
        self,
        req: Request | None,
        client: socket.socket,
        addr: Any,  # noqa: ANN401 - an address and a port, or the name of a socket
        exc: Exception,
    ) -> None:
        """Answer a request that could not be read, or an error that Django did not answer."""
        if isinstance(exc, UnreadableRequest):
            status, sentence = why(exc.reason, self.cfg)
            said = "A request from %s could not be read: %d (%s)"
            where = str(addr[0]) if isinstance(addr, tuple) else "a local socket"
            self.log.warning(said, where, status, type(exc.reason).__name__)
            answer(client, status, sentence, exc.beginning)
            return
        path = getattr(req, "path", None)
        self.log.error("Error handling the request %a", path, exc_info=exc)
        beginning = f"{getattr(req, 'method', 'GET')} {path} ".encode()
        answer(
            client, 500, "An internal error occurred in Sonar. Its log has the details.", beginning
        )


def why(reason: ParseException, limits: Any) -> tuple[int, str]:  # noqa: ANN401 - gunicorn's Config
    """Return the status of a refusal and its sentence, which repeats nothing of the request."""
    if isinstance(reason, LimitRequestLine):
        line = f"The first line of the request is longer than {limits.limit_request_line:,} bytes"
        return 414, f"{line}: request less data at once."
    if isinstance(reason, LimitRequestHeaders):
        size, most = limits.limit_request_field_size, limits.limit_request_fields
        return (
            431,
            f"A header is longer than {size:,} bytes, or there are more than {most} headers.",
        )
    if isinstance(reason, UnsupportedTransferCoding):
        return 411, "Send the body with a Content-Length header, not with a transfer coding."
    if isinstance(reason, ExpectationFailed):
        return 417, "The header “Expect” may only be 100-continue."
    if isinstance(reason, InvalidRequestLine | InvalidRequestMethod | InvalidHTTPVersion):
        return 400, (
            "The first line of the request is not valid HTTP/1.1. A valid line is, for example, "
            "“GET /path HTTP/1.1”."
        )
    return 400, "A header of the request is not valid HTTP, or appears twice."


def answer(client: socket.socket, status: int, sentence: str, beginning: bytes) -> None:
    """Send an error in JSON to who asked the API, else as a page; the connection ends then."""
    if TO_THE_API.match(beginning):
        kind, policy = "application/json", ""
        body = json.dumps({"detail": sentence, "errors": {}}, ensure_ascii=False).encode()
    else:
        kind, policy = "text/html; charset=utf-8", POLICY
        page = "500.html" if status == 500 else "unreadable.html"
        body = render_to_string(page, {"sentence": sentence}).encode()
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {kind}\r\n"
    head += f"Content-Length: {len(body)}\r\n{ENDS}{policy}\r\n"
    to_head = beginning.lstrip(b"\r\n").startswith(b"HEAD ")
    with suppress(OSError):  # who sent it may have gone
        util.write_nonblock(client, head.encode() + (b"" if to_head else body))
