"""What a source of downtimes answers: a URL is asked within limits, a file is read.

A URL is https, or http on this machine; it leads on to no other host, and within one minute to its
end. Nothing that it answers is larger than MOST_BYTES.
"""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlsplit

from sonar.movers.base import End, Limits, MoverError, Order, Where
from sonar.movers.http.deadlines import Wait
from sonar.movers.http.exchange import Request, Web
from sonar.notation.addresses import is_web_service

LIMITS = Limits(connect=10, answer=30, total=60)
MOST_BYTES = 20_000_000
MOST_PAGES = 100
HEADERS = {"Accept": "application/xml, text/xml", "Accept-Encoding": "identity"}
_web = Web()


class SourceAway(Exception):
    """There is no answer, or none that is read; ``str()`` is one line that says why."""


def is_url(address: str) -> bool:
    return "://" in address


def problem(address: str) -> str:
    """Say why this is no address of a source; empty if it may be one."""
    if is_url(address):
        return (
            ""
            if is_web_service(address)
            else "a URL must be https (http only on this machine), without a user or a query"
        )
    return "" if address.isprintable() and address else "the name of a file must be printable"


class Questions:
    """The pages of one source, asked one after the other, with a minute for all of them."""

    def __init__(self, ca_file: str = "") -> None:
        self._ca_file, self._limits = ca_file, LIMITS
        self._until = time.monotonic() + LIMITS.total
        self._pages: set[str] = set()

    def ask(self, url: str) -> bytes:
        """Return the whole answer to GET; raise SourceAway."""
        if url in self._pages or len(self._pages) >= MOST_PAGES:
            raise SourceAway(f"its pages lead in a circle, or are more than {MOST_PAGES}")
        self._pages.add(url)
        end = End(Where.CONTROL, url, url)
        request = Request("GET", end, HEADERS)
        order = Order(end, end, bytes=1, ca_bundle=self._ca_file, limits=self._limits)
        try:
            return self._exchange(request, order)
        except MoverError as error:
            raise SourceAway(str(error)) from error

    def _exchange(self, request: Request, order: Order) -> bytes:
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise SourceAway(f"its pages take longer than {self._limits.total:g} s")
        wait = Wait(min(self._limits.answer, seconds), seconds)
        with _web.open(request, order, wait) as response:
            if response.status != 200:
                raise SourceAway(f"{request.place}: it answers with {response.status}")
            return whole(response.read(MOST_BYTES + 1, decode_content=False), request.place)


def whole(content: bytes, place: str) -> bytes:
    if len(content) > MOST_BYTES:
        raise SourceAway(f"{place}: it has more than {MOST_BYTES:,} bytes")
    return content


def read_file(name: str) -> bytes:
    """Return what is in a file; raise SourceAway."""
    try:
        with Path(name).open("rb") as file:
            return whole(file.read(MOST_BYTES + 1), name)
    except OSError as error:
        raise SourceAway(f"{name} cannot be read: {error.strerror}") from error


def is_same_place(url: str, other: str) -> bool:
    """Say whether two URLs differ in no more than what is asked of one server."""
    places = [(parts.scheme, parts.netloc, parts.path) for parts in map(urlsplit, (url, other))]
    return places[0] == places[1]
