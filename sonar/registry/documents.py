"""Documents that others publish: a server is asked, or a file is read, within limits.

No server gets a credential, and none leads on to another host or to an address where no source can
be. Loaded by who asks.
"""

import time
from pathlib import Path

from sonar.movers.base import End, Limits, MoverError, Order, Where
from sonar.movers.http.deadlines import Wait
from sonar.movers.http.exchange import Request, Web

_web = Web()


class NoDocument(Exception):
    """Nothing is there, or nothing that is read; ``str()`` is one line with the place and why."""


def of_file(path: str, most_bytes: int) -> bytes:
    """Return what is in a file; raise NoDocument."""
    try:
        with Path(path).open("rb") as file:
            return _whole(file.read(most_bytes + 1), most_bytes, path)
    except OSError as error:
        raise NoDocument(f"{path}: it cannot be read: {error.strerror}") from error


class Questions:
    """Asks for one document, or for some that share the time of all.

    ``ca_file`` has the certificates to trust, empty for the usual ones.
    """

    def __init__(self, limits: Limits, most_bytes: int, accept: str, ca_file: str = "") -> None:
        self._limits, self._most_bytes = limits, most_bytes
        self._headers = {"Accept": accept, "Accept-Encoding": "identity"}
        self._ca_file = ca_file
        self._until = time.monotonic() + limits.total

    def ask(self, url: str) -> bytes:
        """Return the whole answer to GET; raise NoDocument."""
        end = End(Where.CONTROL, url, url)
        request = Request("GET", end, self._headers)
        order = Order(end, end, bytes=1, ca_bundle=self._ca_file, limits=self._limits)
        try:
            return self._answer(request, order)
        except MoverError as error:
            raise NoDocument(str(error)) from error

    def _answer(self, request: Request, order: Order) -> bytes:
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise NoDocument(f"{request.place}: it takes longer than {self._limits.total:g} s")
        wait = Wait(min(self._limits.answer, seconds), seconds)
        with _web.open(request, order, wait) as response:
            if response.status != 200:
                raise NoDocument(f"{request.place}: it answers with {response.status}")
            content = response.read(self._most_bytes + 1, decode_content=False)
        return _whole(content, self._most_bytes, request.place)


def _whole(content: bytes, most_bytes: int, place: str) -> bytes:
    if len(content) > most_bytes:
        raise NoDocument(f"{place}: it has more than {most_bytes:,} bytes")
    return content
