"""A COPY answered without a word: the destination says what became of it."""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sonar.movers.base import Limits, Order, Where
from sonar.movers.content import adler32
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.measure import Outcome, measure
from sonar.movers.watch import Watch
from tests.movers.orders import SIZE_BYTES, order_between
from tests.movers.scripted import Scripted, chunk, marker, scripted, status

pytestmark = pytest.mark.usefixtures("no_looks")

LIMITS = Limits(connect=2, answer=5, stall=2, total=10, checksum=5)
EMPTY_CHUNKED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
EMPTY = b"Content-Length: 0\r\n\r\n"
CREATED, NO_CONTENT = b"HTTP/1.1 201 Created\r\n" + EMPTY, b"HTTP/1.1 204 No Content\r\n\r\n"


class Storage:
    """One server as both ends, whose COPY says what it is told to and does what it is told to."""

    def __init__(self, answer: bytes, copies: Callable[[str], str | None]) -> None:
        self._answer, self._copies = answer, copies
        self.held = {f"/base/source/{SIZE_BYTES}": SIZE_BYTES}
        self.server: Scripted

    def play(self, connection: socket.socket) -> None:
        head = self.server.requests[-1]
        method, path, _ = head.split(maxsplit=2)
        if method == "COPY":
            if arrived := self._copies(path):
                self.held[arrived] = SIZE_BYTES
            connection.sendall(self._answer)
        elif method == "HEAD" and path in self.held:
            size = self.held[path]
            line = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n"
            if "want-digest" in head.lower():
                line += f"Digest: adler32={adler32(size)}\r\n"
            connection.sendall(f"{line}\r\n".encode())
        elif method == "DELETE" and self.held.pop(path, None):
            status("200 OK")(connection)
        else:
            status("404 Not Found")(connection)


@contextmanager
def storage(answer: bytes, copies: Callable[[str], str | None]) -> Iterator[Storage]:
    one = Storage(answer, copies)
    with scripted(one.play) as server:
        one.server = server
        yield one


def outcome_of(answer: bytes, copies: Callable[[str], str | None], **wishes: object) -> Outcome:
    with storage(answer, copies) as one:
        order: Order = order_between(one.server.url, one.server.url, limits=LIMITS, **wishes)
        return measure(HttpTpc(), order, Watch())


def to_itself(path: str) -> str:
    return path


def nowhere(_path: str) -> None:
    return None


@pytest.mark.parametrize("answer", [CREATED, NO_CONTENT, EMPTY_CHUNKED])
def test_a_copy_answered_without_a_body_is_done_if_the_file_has_arrived(answer: bytes) -> None:
    outcome = outcome_of(answer, to_itself)
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    assert outcome.receipt
    assert 0 < outcome.receipt.seconds <= outcome.elapsed_seconds
    assert re.fullmatch(r"20[14] without a body", outcome.receipt.verdict)


@pytest.mark.parametrize("answer", [CREATED, NO_CONTENT, EMPTY_CHUNKED])
def test_a_copy_answered_without_a_body_of_which_nothing_arrived_is_a_failure(
    answer: bytes,
) -> None:
    outcome = outcome_of(answer, nowhere)
    assert outcome.receipt is None
    assert outcome.error
    assert outcome.error.where == Where.TRANSFER
    words = r"reported as done \(20[14] without a body\), but the file is not there"
    assert re.search(words, str(outcome.error))
    assert outcome.seen.moved_bytes == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 202 Accepted\r\n" + EMPTY,
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunk(marker(5))
        + b"0\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello",
    ],
)
def test_what_is_no_plain_success_is_none_though_the_file_is_there(answer: bytes) -> None:
    outcome = outcome_of(answer, to_itself)
    assert "the answer ended without a verdict" in str(outcome.error)


def test_a_push_takes_it_for_a_success_too() -> None:
    with storage(CREATED, nowhere) as one:
        order = order_between(one.server.url, one.server.url, limits=LIMITS, mode="push")
        # A push is asked of the source, which then has it written at the destination.
        one._copies = lambda _path: "/base/incoming/1"
        one.held["/base"] = 0
        outcome = measure(HttpTpc(), order, Watch())
    assert (outcome.error, outcome.verified) == (None, True)
