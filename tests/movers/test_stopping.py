"""A stop ends every exchange at once, whichever it is; each step ends within its time."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from sonar.movers import measure as measure_module
from sonar.movers.base import End, Limits, MoverError, Order, Stopped, Where
from sonar.movers.fake import FakeFiles, FakeMover
from sonar.movers.http import tpc
from sonar.movers.http.deadlines import Wait
from sonar.movers.http.exchange import Request
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.http.webdav import WebDav
from sonar.movers.measure import clean_up, measure
from sonar.movers.watch import Watch, within
from tests.movers.orders import ORDER, SIZE_BYTES, order_between
from tests.movers.scripted import (
    STARTED,
    Scripted,
    chunk,
    copying,
    goes_on,
    scripted,
    status,
    take_body,
)

PATIENT = Limits(connect=120, answer=120, stall=120, total=240, checksum=240)
AT_ONCE = 40.0
"""Far below what a step may take here, far above what a busy machine needs."""
DONE = STARTED + chunk(b"success: Created") + b"0\r\n\r\n"


def silent(connection: socket.socket) -> None:
    connection.recv(1)


def there(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE_BYTES)


class Hanging:
    """A server that is silent from a certain request on, and stops the test there."""

    def __init__(self, method: str, turn: int, watch: Watch) -> None:
        self._method, self._turn, self._watch = method, turn, watch
        self.hung_at = 0.0
        self._is_copied = False

    def play(self, connection: socket.socket) -> None:
        method = self.server.requests[-1].split()[0]
        if method == self._method:
            self._turn -= 1
        if self._turn == 0:
            self._turn = -1
            self.hung_at = time.monotonic()
            self._watch.stop()
            silent(connection)
        elif method == "COPY":
            self._is_copied = True
            connection.sendall(DONE)
        elif method == "HEAD" and self._missing():
            status("404 Not Found")(connection)
        elif method == "HEAD":
            there(connection)
        elif method == "PUT":
            take_body(connection, self.server.requests[-1], SIZE_BYTES)
            status("201 Created")(connection)
        else:
            status("200 OK")(connection)

    def _missing(self) -> bool:
        """Say that the source file is not there, so that it is uploaded; or the other, yet."""
        if "/source/" in self.server.requests[-1]:
            return self._method in {"PUT", "MOVE"}
        return "/incoming/" in self.server.requests[-1] and not self._is_copied

    server: Scripted


@pytest.mark.parametrize(
    ("method", "turn"),
    [
        ("HEAD", 1),  # the look at the source
        ("PUT", 1),
        ("MOVE", 1),
        ("HEAD", 2),  # the look at the destination, before
        ("COPY", 1),
        ("HEAD", 3),  # and after
        ("HEAD", 4),  # its checksum
        ("DELETE", 1),
    ],
)
def test_a_stop_ends_whatever_exchange_there_is(method: str, turn: int):
    watch = Watch()
    hanging = Hanging(method, turn, watch)
    with scripted(hanging.play) as server:
        hanging.server = server
        order = order_between(server.url, server.url, limits=PATIENT)
        outcome = measure(HttpTpc(), order, watch)
        seconds = time.monotonic() - hanging.hung_at
    assert hanging.hung_at
    assert seconds < AT_ONCE
    known = (method, turn) in {("HEAD", 4), ("DELETE", 1)}  # a rate that is known stays
    assert isinstance(outcome.error, Stopped) != known
    assert bool(outcome.receipt) == known


def stopped_soon(step: Callable[[Watch], object]) -> float:
    """Return how long a step went on after a stop."""
    watch = Watch()
    stopped_at: list[float] = []

    def stop() -> None:
        stopped_at.append(time.monotonic())
        watch.stop()

    threading.Timer(0.3, stop).start()
    with suppress(MoverError):
        step(watch)
    return time.monotonic() - stopped_at[0]


def look_at(url: str) -> Callable[[Watch], object]:
    order = order_between(url, url, limits=PATIENT)

    def look(watch: Watch) -> object:
        with within(watch, 120):
            return WebDav().stat(order.destination, order)

    return look


@pytest.fixture
def full() -> Iterator[str]:
    """The address of a port that takes no more connections and refuses none, as a firewall."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for one in (first, second):
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_stop_ends_a_connect_that_hangs(full: str):
    assert 0 <= stopped_soon(look_at(f"http://{full}")) < AT_ONCE


def is_given_up(server: str, seconds: float) -> None:
    """Hold that a server to which nobody can connect is given up in time."""
    order = order_between(f"http://{server}", f"http://{server}", limits=Limits(connect=seconds))
    began = time.monotonic()
    with pytest.raises(MoverError, match="not accepted in time"):
        WebDav().stat(order.destination, order)
    assert time.monotonic() - began < seconds + AT_ONCE


def test_a_connect_that_hangs_is_given_up_in_time(full: str):
    is_given_up(full, 0.5)


def test_all_addresses_of_a_host_share_the_time_to_connect(full: str, monkeypatch):
    port = int(full.rpartition(":")[2])
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [entry] * 20)
    is_given_up(full, 1)


def test_a_stop_ends_the_shaking_of_hands():
    with scripted(silent) as server:
        assert 0 <= stopped_soon(look_at(server.url.replace("http", "https"))) < AT_ONCE


def test_a_stop_ends_a_name_server_that_is_silent(monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: over.wait(120))
    try:
        assert 0 <= stopped_soon(look_at("http://se.example")) < AT_ONCE
        is_given_up("se.example", 0.3)
    finally:
        over.set()


def test_a_stop_ends_the_looks_after_a_failure(monkeypatch):
    monkeypatch.setattr(measure_module, "LOOK_AGAIN_SECONDS", (120.0,))
    assert 0 <= stopped_soon(lambda watch: clean_up(FakeFiles(), ORDER, watch)) < AT_ONCE


def test_a_stop_does_not_end_the_exchange_of_another_test_on_the_same_connection():
    """Connections are kept and shared: only who uses one now may be stopped on it."""
    web, watch = WebDav().web, Watch()
    with scripted(status("200 OK")) as server:
        order = order_between(server.url, server.url, limits=PATIENT)
        with within(watch, 60):
            web.ask(Request("HEAD", order.destination), order)
        watch.stop()
        web.ask(Request("HEAD", order.destination), order)
        assert len(server._open) == 1


def stopped_order(server: str) -> tuple[Order, Watch]:
    watch = Watch()
    watch.stop()
    return order_between(server, server, limits=PATIENT), watch


def test_what_is_deleted_after_a_stop_is_looked_at_later():
    with scripted(status("200 OK")) as server:
        order, watch = stopped_order(server.url)
        leftover = clean_up(WebDav(), order, watch)
        assert [head.split()[0] for head in server.requests] == ["DELETE"]
    assert "deleted, but the server may still write the file" in str(leftover)


def test_deleting_after_a_stop_takes_three_seconds_at_most():
    with scripted(silent) as server:
        order, watch = stopped_order(server.url)
        began = time.monotonic()
        leftover = clean_up(WebDav(), order, watch)
    assert 2.5 < time.monotonic() - began < measure_module.STOP_SECONDS + AT_ONCE
    assert re.search(r"no answer within [0-3](\.\d)? s", str(leftover))


def test_a_half_uploaded_file_that_cannot_be_deleted_is_told_of():
    def refuse(connection: socket.socket) -> None:
        method, path, _ = server.requests[-1].split(maxsplit=2)
        if method == "HEAD":
            status("404 Not Found" if path != "/base" else "200 OK")(connection)
            return
        if method == "PUT":
            take_body(connection, server.requests[-1], SIZE_BYTES)
        status("507 Insufficient Storage" if method == "PUT" else "403 Forbidden")(connection)

    with scripted(refuse) as server:
        order = order_between(server.url, "http://ral.example", limits=PATIENT)
        outcome = measure(HttpTpc(), order, Watch())
    assert "507" in str(outcome.error)
    assert "DELETE" in str(outcome.left_aside)
    assert outcome.leftover is None


def test_the_turn_at_an_upload_is_not_waited_for_longer_than_a_test_may_take():
    order = replace(ORDER, limits=replace(PATIENT, total=0.5))
    with measure_module.upload_turn(ORDER, Watch(), 9):
        outcome = measure(FakeMover(), order, Watch())
    assert outcome.error.where == Where.SOURCE
    assert "other tests did not finish uploading this file in 0.5 s" in str(outcome.error)
    assert outcome.prepare_seconds
    assert outcome.prepare_seconds >= 0.5


def test_all_of_a_preparation_ends_with_the_total_limit():
    """Each answer comes in time, and there are more of them than there is time for."""

    def slowly(connection: socket.socket) -> None:
        time.sleep(0.1)
        method, path, _ = server.requests[-1].split(maxsplit=2)
        if method == "HEAD" and path == "/base":
            status("200 OK")(connection)
        elif method == "MKCOL":
            status("201 Created")(connection)
        elif method == "PUT":
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            take_body(connection, server.requests[-1], SIZE_BYTES)
            status("409 Conflict")(connection)
        else:
            status("404 Not Found")(connection)

    with scripted(slowly) as server:
        limits = replace(PATIENT, total=4)
        deep = End(Where.SOURCE, f"{server.url}/base{'/d' * 90}/f", f"{server.url}/base")
        order = replace(order_between(server.url, server.url, limits=limits), source=deep)
        outcome = measure(HttpTpc(), order, Watch())
    assert outcome.error.where == Where.SOURCE
    # Whichever the last request was about to do.
    assert re.search("no answer within|of the test's time limit|in time", str(outcome.error))
    folders = [request for request in server.requests if request.startswith("MKCOL")]
    assert 0 < len(folders) < 90


def test_what_is_cut_short_by_the_total_limit_blames_no_host():
    wait = Wait(answer=2, total=4)
    wait.end_by(time.monotonic() + 0.05)
    end = End(Where.SOURCE, "http://ral.example/base/f", "http://ral.example/base")
    assert "of the test's time limit remained, which was not enough" in str(
        wait.overdue(end, "PUT ral")
    )
    wait = Wait(answer=2, total=0.05)
    assert "host down or firewall?" in str(wait.overdue(end, "PUT ral"))


def test_an_upload_that_is_taken_drop_by_drop_ends_with_the_total_limit():
    def drip(connection: socket.socket) -> None:
        if server.requests[-1].startswith("PUT"):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            while connection.recv(4096):
                time.sleep(0.05)
        status("200 OK" if " /base " in server.requests[-1] else "404 Not Found")(connection)

    with scripted(drip) as server:
        limits = replace(PATIENT, total=4)
        order = order_between(server.url, server.url, limits=limits, bytes=500_000_000, adler32="")
        began = time.monotonic()
        outcome = measure(HttpTpc(), order, Watch())
    assert "PUT" in str(outcome.error)
    assert time.monotonic() - began < limits.total + limits.cleaning + AT_ONCE


def test_an_answer_that_never_ends_is_cut_though_it_tells_of_progress(monkeypatch):
    monkeypatch.setattr(tpc, "MAX_ANSWER_BYTES", 1_000_000)
    growing = b"".join(
        chunk(b"Perf Marker\nStripe Bytes Transferred: %d\nEnd\n" % moved) for moved in range(5000)
    )
    with copying(goes_on(STARTED, growing, 0.0)) as server:
        order = order_between("http://source.example", server.url, limits=PATIENT)
        with pytest.raises(MoverError, match="the answer is too long"):
            HttpTpc().move(order, Watch())
