"""Documents that others publish: a server is asked, or a file is read, within limits.

No server gets a credential, but those headers that the caller names, and none leads on to another
host or to an address where no source can be. Loaded by who asks.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sonar.movers.base import End, Limits, MoverError, Order, Where
from sonar.movers.http.deadlines import Wait
from sonar.movers.http.exchange import MAX_ANSWER_BYTES, Request, Web
from sonar.movers.messages import one_line

_web = Web()


# How Rucio names an error, in headers and in the JSON object that it answers with.
ERROR_NAMES = ("ExceptionClass", "ExceptionMessage")


class NoDocument(Exception):
    """Nothing is there, or nothing that is read; ``str()`` is one line with the place and why.

    ``status`` is that of a refusal, 0 for other reasons.
    """

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


def of_file(path: str, most_bytes: int) -> bytes:
    """Return what is in a file; raise NoDocument."""
    try:
        with Path(path).open("rb") as file:
            return _whole(file.read(most_bytes + 1), most_bytes, path)
    except OSError as error:
        raise NoDocument(f"{path}: cannot be read: {error.strerror}") from error


class Questions:
    """Asks for one document, or for some that share the time of all.

    ``ca_file`` has the certificates to trust, empty for the usual ones; ``headers`` hold secrets.
    """

    def __init__(
        self,
        limits: Limits,
        most_bytes: int,
        accept: str,
        ca_file: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._limits, self._most_bytes = limits, most_bytes
        self._secrets = tuple((headers or {}).values())
        self._headers = {"Accept": accept, "Accept-Encoding": "identity", **(headers or {})}
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
            total = self._limits.total
            raise NoDocument(f"{request.place}: no complete response within {total:g} s")
        wait = Wait(min(self._limits.answer, seconds), seconds)
        with _web.open(request, order, wait) as response:
            if response.status != 200:
                said = {name: response.headers.get(name) for name in ERROR_NAMES}
                if None in said.values():
                    with suppress(ValueError, RecursionError):
                        text = response.read(MAX_ANSWER_BYTES, decode_content=False)
                        body = json.loads(text)
                        said |= body if isinstance(body, dict) else {}
                reason = ": ".join(str(said[name]) for name in ERROR_NAMES if said[name])
                reason = f" ({one_line(reason, *self._secrets)})" if reason else ""
                sentence = f"{request.place}: the server responded with {response.status}{reason}"
                raise NoDocument(sentence, response.status)
            content = response.read(self._most_bytes + 1, decode_content=False)
        return _whole(content, self._most_bytes, request.place)


def _whole(content: bytes, most_bytes: int, place: str) -> bytes:
    if len(content) > most_bytes:
        raise NoDocument(f"{place}: larger than {most_bytes:,} bytes")
    return content
