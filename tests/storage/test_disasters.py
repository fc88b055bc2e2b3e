"""Real servers that die, hang or are left alone in the middle of a transfer.

Each must end as the right error, within its limit, with no file left at the destination.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from urllib3.response import BaseHTTPResponse

from sonar.movers import measure as measure_module
from sonar.movers.base import End, MoverError, Order, Receipt, Stopped, Where
from sonar.movers.http.deadlines import Wait
from sonar.movers.http.exchange import Request, Web
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.measure import LOOK_AGAIN_SECONDS, Outcome, measure, remove
from sonar.movers.watch import Watch
from tests.storage.conftest import LIMITS, Pair
from tests.storage.throttle import Throttle
from tests.storage.xrootd import Server

pytestmark = pytest.mark.long

Road = Callable[..., Throttle]

BIG_BYTES, PACE = 40_000_000, 1e6  # 40 s on the slow road
ENDS_SECONDS = LIMITS.stall / 2  # before a limit that no test here makes short
ANSWER_SECONDS = 5
STALL_SECONDS = 9
"""A marker comes after 5 s, and later from a busy machine: one has to be heard."""


class Meanwhile(HttpTpc):
    """A mover during whose transfer something happens."""

    def __init__(self, pair: Pair, happens: Callable[[], None], *, before: bool = False) -> None:
        super().__init__()
        self._pair, self._happens, self._before = pair, happens, before

    def move(self, order: Order, watch: Watch) -> Receipt:
        if self._before:
            self._happens()
        else:
            threading.Thread(target=self._happen_midway, daemon=True).start()
        return super().move(order, watch)

    def _happen_midway(self) -> None:
        while not any(path.stat().st_size for path in self._pair.left_behind()):
            time.sleep(0.01)
        self._happens()


def slow_order(pair: Pair, road: Road, mode: str, **wishes: object) -> Order:
    """Return an order whose bytes take the slow road, between the servers only.

    Its source file is there: put with time enough, whatever limits the order itself has.
    """
    order = pair.order(mode=mode, bytes=BIG_BYTES, **wishes)
    HttpTpc().files.put(replace(order, limits=LIMITS), Watch())
    passive, server = (
        ("source", pair.source) if mode == "pull" else ("destination", pair.destination)
    )
    end: End = getattr(order, passive)
    slow = road(server, PACE).url
    turned = replace(end, url=end.url.replace(server.url, slow), base_url=f"{slow}/base")
    return replace(order, **{passive: turned})


def timed(mover: HttpTpc, order: Order, watch: Watch | None = None) -> tuple[Outcome, float]:
    began = time.monotonic()
    outcome = measure(mover, order, watch or Watch())
    return outcome, time.monotonic() - began


def error_of(outcome: Outcome) -> MoverError:
    assert outcome.receipt is None
    assert outcome.error
    return outcome.error


@pytest.mark.usefixtures("_brief_looks")
@pytest.mark.parametrize(("mode", "where"), [("pull", Where.TRANSFER), ("push", Where.SOURCE)])
def test_a_source_that_dies_midway_leaves_nothing(
    mode: str, where: Where, mortal: Pair, slow_road: Road
):
    order = slow_order(mortal, slow_road, mode)
    outcome, seconds = timed(Meanwhile(mortal, mortal.source.kill), order)
    error = error_of(outcome)
    assert (error.where, error.permanent) == (where, False)
    assert outcome.leftover is None
    assert mortal.left_behind() == []
    assert seconds < ENDS_SECONDS


@pytest.mark.parametrize(("mode", "where"), [("pull", Where.DESTINATION), ("push", Where.TRANSFER)])
def test_a_destination_that_dies_midway_is_cleared_once_it_is_back(
    mode: str, where: Where, mortal: Pair, slow_road: Road
):
    order = slow_order(mortal, slow_road, mode)
    outcome, seconds = timed(Meanwhile(mortal, mortal.destination.kill), order)
    error = error_of(outcome)
    assert (error.where, error.permanent) == (where, False)
    assert outcome.leftover.where == Where.DESTINATION
    assert seconds < ENDS_SECONDS
    assert mortal.left_behind() != []
    mortal.destination.start()
    assert remove(HttpTpc().files, order) is None
    assert mortal.left_behind() == []


@pytest.mark.usefixtures("_brief_looks")
@pytest.mark.parametrize("mode", ["pull", "push"])
def test_an_active_end_that_hangs_is_given_up(mode: str, mortal: Pair, slow_road: Road):
    active = mortal.destination if mode == "pull" else mortal.source
    cleaning = 2 if mode == "pull" else LIMITS.cleaning
    limits = replace(LIMITS, stall=5, cleaning=cleaning)
    order = slow_order(mortal, slow_road, mode, limits=limits)
    outcome, seconds = timed(Meanwhile(mortal, active.freeze), order)
    error = error_of(outcome)
    assert error.where == (Where.DESTINATION if mode == "pull" else Where.SOURCE)
    assert "the server sent nothing for" in str(error)
    assert seconds < ENDS_SECONDS
    assert bool(outcome.leftover) == (mode == "pull")
    is_cleared_once_it_goes_on(mortal, active, order)


def is_cleared_once_it_goes_on(pair: Pair, server: Server, order: Order) -> None:
    server.thaw()
    assert remove(HttpTpc().files, order, (0.3,)) is None
    assert pair.left_behind() == []


@pytest.mark.usefixtures("_brief_looks")
def test_a_source_that_hangs_midway_is_a_stall_of_the_transfer(mortal: Pair, slow_road: Road):
    limits = replace(LIMITS, stall=STALL_SECONDS)
    order = slow_order(mortal, slow_road, "pull", limits=limits)
    outcome, seconds = timed(Meanwhile(mortal, mortal.source.freeze), order)
    error = error_of(outcome)
    assert (error.where, outcome.leftover) == (Where.TRANSFER, None)
    assert f"no bytes moved for {STALL_SECONDS} s" in str(error)
    assert seconds < ENDS_SECONDS
    is_cleared_once_it_goes_on(mortal, mortal.source, order)


@pytest.mark.usefixtures("_brief_looks")
def test_a_source_that_hangs_before_the_first_byte_is_found_out(mortal: Pair, slow_road: Road):
    """XRootD does not answer such a pull at all: the destination looks like the one that hangs."""
    limits = replace(LIMITS, answer=ANSWER_SECONDS)
    order = slow_order(mortal, slow_road, "pull", limits=limits)
    outcome, seconds = timed(Meanwhile(mortal, mortal.source.freeze, before=True), order)
    error = error_of(outcome)
    assert (error.where, outcome.leftover) == (Where.SOURCE, None)
    assert str(error).count("no answer within") == 2
    assert seconds < ENDS_SECONDS
    is_cleared_once_it_goes_on(mortal, mortal.source, order)


@pytest.mark.usefixtures("_brief_looks")
def test_two_ends_that_answer_us_but_not_each_other_are_a_fault_between_them(mortal: Pair):
    """A hole in the way of the servers, as a firewall makes it; our own way is whole."""
    order = mortal.order(limits=replace(LIMITS, answer=ANSWER_SECONDS))
    HttpTpc().files.put(order, Watch())
    with socket.create_server(("127.0.0.1", 0)) as hole:
        address = f"http://127.0.0.1:{hole.getsockname()[1]}/f"

        def detour(request: Request) -> Request:
            """Send the servers elsewhere for the source than we go ourselves."""
            turned = {"Source": address} if "Source" in request.headers else {}
            return replace(request, headers={**request.headers, **turned})

        mover = HttpTpc()
        mover.files.web = Turned(detour)
        error = error_of(measure(mover, order, Watch()))
    assert error.where == Where.TRANSFER
    assert "both endpoints answer" in str(error)


class Turned(Web):
    """Turns each request into another one just before it is sent."""

    def __init__(self, turn: Callable[[Request], Request]) -> None:
        super().__init__()
        self._turn = turn

    @contextmanager
    def open(self, request: Request, order: Order, wait: Wait) -> Iterator[BaseHTTPResponse]:
        with super().open(self._turn(request), order, wait) as response:
            yield response


@pytest.mark.usefixtures("_brief_looks")
def test_a_destination_that_hangs_in_a_push_is_a_stall_of_the_transfer(
    mortal: Pair, slow_road: Road
):
    limits = replace(LIMITS, stall=STALL_SECONDS, cleaning=2)
    order = slow_order(mortal, slow_road, "push", limits=limits)

    def freeze(request: Request) -> Request:
        """Freeze the server just before the COPY, once the looks before it are done."""
        if request.method == "COPY":
            mortal.destination.freeze()
        return request

    mover = HttpTpc()
    mover.files.web = Turned(freeze)
    outcome, seconds = timed(mover, order)
    error = error_of(outcome)
    assert error.where == Where.TRANSFER
    assert f"no bytes moved for {STALL_SECONDS} s, at 0 of" in str(error)
    assert outcome.leftover
    assert seconds < ENDS_SECONDS
    is_cleared_once_it_goes_on(mortal, mortal.destination, order)


@pytest.mark.parametrize("side", ["source", "destination"])
def test_an_end_that_hangs_from_the_beginning_is_given_up(side: str, mortal: Pair):
    order = mortal.order(limits=replace(LIMITS, answer=ANSWER_SECONDS, cleaning=2))
    assert measure(HttpTpc(), mortal.order(), Watch()).receipt
    getattr(mortal, side).freeze()
    outcome, seconds = timed(HttpTpc(), order)
    error = error_of(outcome)
    assert error.where == side
    assert f"no answer within {ANSWER_SECONDS} s" in str(error)
    assert seconds < ENDS_SECONDS
    getattr(mortal, side).thaw()


@pytest.mark.usefixtures("_brief_looks")
@pytest.mark.parametrize("mode", ["pull", "push"])
def test_the_total_limit_ends_a_transfer_that_moves(mode: str, mortal: Pair, slow_road: Road):
    limits = replace(LIMITS, total=5)
    outcome, seconds = timed(HttpTpc(), slow_order(mortal, slow_road, mode, limits=limits))
    error = error_of(outcome)
    assert (error.where, outcome.leftover) == (Where.TRANSFER, None)
    assert "not finished within 5 s" in str(error)
    assert seconds < ENDS_SECONDS
    assert mortal.left_behind() == []


@pytest.fixture
def _time_to_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a busy server's answer to the one DELETE that a stop leaves time for."""
    monkeypatch.setattr(measure_module, "STOP_SECONDS", LIMITS.cleaning)


def is_stopped(mover: Meanwhile, order: Order, watch: Watch) -> None:
    outcome, _ = timed(mover, order, watch)
    assert isinstance(outcome.error, Stopped)
    assert "the server may still write the file" in str(outcome.leftover)
    assert outcome.elapsed_seconds < ENDS_SECONDS
    assert remove(mover.files, order, LOOK_AGAIN_SECONDS) is None  # as recovery will


@pytest.mark.usefixtures("_time_to_delete")
@pytest.mark.parametrize("mode", ["pull", "push"])
@pytest.mark.parametrize("before", [True, False])
def test_a_stop_ends_a_transfer_at_once_and_leaves_nothing(
    before: bool, mode: str, mortal: Pair, slow_road: Road
):
    order, watch = slow_order(mortal, slow_road, mode), Watch()
    mover = Meanwhile(mortal, lambda: stop_soon(watch) if before else watch.stop(), before=before)
    is_stopped(mover, order, watch)
    assert mortal.left_behind() == []


@pytest.mark.usefixtures("_time_to_delete")
def test_a_stop_ends_a_transfer_over_tls_at_once(guarded: Pair, slow_road: Road):
    order, watch = guarded.order(bytes=BIG_BYTES), Watch()
    HttpTpc().files.put(order, Watch())
    address = slow_road(guarded.source, PACE).url.replace("http://127.0.0.1", "https://localhost")
    url = order.source.url.replace(guarded.source.url, address)
    slow = replace(order.source, url=url, base_url=f"{address}/base")
    mover = Meanwhile(guarded, watch.stop)
    is_stopped(mover, replace(order, source=slow), watch)
    assert guarded.left_behind() == []


def stop_soon(watch: Watch) -> None:
    """Stop about when the server begins: the file may yet be created after the first delete."""
    threading.Timer(0.003, watch.stop).start()
