"""Servers that keep to no rule: each step ends as a MoverError, in its time and in little room."""

import gzip
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.movers.base import Limits, MoverError, Order
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.http.webdav import WebDav
from sonar.movers.measure import measure
from sonar.movers.watch import Watch
from tests.movers.orders import SIZE_BYTES, order_between
from tests.movers.scripted import STARTED, Script, chunk, goes_on, says, scripted
from tests.properties import examples

pytestmark = pytest.mark.usefixtures("no_looks")

LIMITS = Limits(connect=1, answer=0.5, stall=0.5, total=3, checksum=1, cleaning=1)
SLACK_SECONDS = 60.0
ROOM_BYTES = 30_000_000
HUGE = b"9" * 18

OK = b"HTTP/1.1 200 OK\r\n"
BOMB = gzip.compress(bytes(60_000_000))
WAYS: dict[str, Script] = {
    "no answer": goes_on(b"", b"", 0.05),
    "a byte now and then": goes_on(b"", b"H", 0.2),
    "an endless status line": goes_on(b"HTTP/1.1 200 ", b"a" * 65536, 0.0),
    "an endless header": goes_on(OK + b"X: ", b"a" * 65536, 0.0),
    "endless headers": goes_on(OK, b"X-Y: 1\r\n" * 1000, 0.0),
    "endless words of going on": goes_on(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0.0),
    "an endless chunk head": goes_on(STARTED, b"0" * 65536, 0.0),
    "an endless trailer": goes_on(STARTED + b"0\r\n", b"X: 1\r\n" * 1000, 0.0),
    "an endless body without a line": goes_on(OK + b"\r\n", b"a" * 65536, 0.0),
    "an endless chunked body": goes_on(STARTED, chunk(b"a" * 65536), 0.0),
    "an endless refusal": goes_on(b"HTTP/1.1 500 Oh\r\n\r\n", b"a" * 65536, 0.0),
    "a huge length": says(OK + b"Content-Length: " + HUGE + b"\r\n\r\nabc"),
    "a length that is none": says(OK + b"Content-Length: -5\r\n\r\nabc"),
    "two lengths": says(OK + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\nabcdefg"),
    "chunks that are none": says(STARTED + b"-1\r\nabc\r\n0\r\n\r\n"),
    "a bomb": says(OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB),
    "a refusal that is a bomb": says(
        b"HTTP/1.1 500 Oh\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB)
        + BOMB
    ),
    "a way round in a circle": says(b"HTTP/1.1 302 F\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n"),
    "a way to no place": says(b"HTTP/1.1 302 F\r\nLocation: http://[::1\r\n\r\n"),
    "a way to a port that is none": says(b"HTTP/1.1 302 F\r\nLocation: http://a:99999/\r\n\r\n"),
    "a way to nothing": says(b"HTTP/1.1 302 F\r\nLocation: \xff\xfe%%\r\n\r\n"),
    "a status that is none": says(b"HTTP/1.1 abc OK\r\n\r\n"),
    "another protocol": says(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "nothing and gone": says(b""),
}
Step = Callable[[WebDav, Order], object]
STEPS: dict[str, Step] = {
    "stat": lambda files, order: files.stat(order.destination, order),
    "checksum": lambda files, order: files.checksum(order.destination, order, 1.0),
    "delete": lambda files, order: files.delete(order.destination, order),
    "put": lambda files, order: files.put(order, Watch()),
    "mkcol": lambda files, order: files.make_directories(order.destination, order),
}


def in_time_and_room(step: Callable[[], object], seconds: float) -> None:
    tracemalloc.start()
    began = time.monotonic()
    try:
        step()
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert time.monotonic() - began < seconds + SLACK_SECONDS
    assert peak < ROOM_BYTES


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_to_who_misbehaves_ends(way: str):
    with scripted(WAYS[way]) as server:
        order = order_between("http://127.0.0.1:9", server.url, limits=LIMITS)

        def move() -> None:
            with pytest.raises(MoverError):
                HttpTpc().move(order, Watch())

        in_time_and_room(move, LIMITS.total + 10)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_at_who_misbehaves_ends(step: str, way: str):
    with scripted(WAYS[way]) as server:
        order = order_between(server.url, server.url, limits=LIMITS)

        def take() -> None:
            with suppress(MoverError):
                STEPS[step](WebDav(), order)

        in_time_and_room(take, 3 * (LIMITS.connect + LIMITS.answer))


@pytest.mark.parametrize("size", [0, 1, SIZE_BYTES - 1, SIZE_BYTES, 10**17])
def test_who_says_the_same_of_everything_is_measured_only_if_the_length_is_right(size: int):
    """A COPY, a HEAD and a DELETE get the same answer: 200 and a length."""
    head = OK + b"Content-Length: %d\r\n\r\n" % size
    with scripted(says(head)) as server:
        order = order_between(server.url, server.url, limits=LIMITS)
        outcome = measure(HttpTpc(), order, Watch())
    assert outcome.receipt is None
    assert outcome.error


@examples(60)
@given(
    st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 302 Found\r\nLocation: ", STARTED]),
    st.binary(max_size=200),
)
def test_no_answer_at_all_raises_anything_but_a_mover_error(first: bytes, rest: bytes):
    limits = Limits(connect=0.2, answer=0.2, total=0.4)
    with scripted(says(first + rest)) as server:
        order = order_between(server.url, server.url, limits=limits)
        for step in STEPS.values():
            with suppress(MoverError):
                step(WebDav(), order)
        with suppress(MoverError):
            HttpTpc().move(order, Watch())
