"""Tests of the network by iperf3, with real servers on loopback."""

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sonar.movers import catalogue, network
from sonar.movers.base import End, MoverError, Order, Stopped, Where
from sonar.movers.measure import Outcome
from sonar.movers.network import SeenOfNetwork
from sonar.movers.programs import iperf3
from sonar.movers.watch import Watch
from tests.needs import needs
from tests.ports import free_port
from tests.programs.iperf3 import Iperf3Server, Pulses, Silence, clients_of, reset_once
from tests.storage.conftest import LIMITS
from tests.waiting import wait_for

HERE = "iperf3://worker.example.org"
SOON = 60.0
TRIES = 50


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iperf3Server]:
    needs("iperf3", "setpriv")
    server = Iperf3Server(tmp_path_factory.mktemp("iperf3")).start()
    yield server
    server.close()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Iperf3Server]:
    """One that a test may freeze or kill."""
    needs("iperf3", "setpriv")
    server = Iperf3Server(tmp_path).start()
    yield server
    server.close()


def order(url: str, mode: str = "push", **wishes: object) -> Order:
    """Return an order to send to a server from here, or to fetch from it."""
    ends = (HERE, url) if mode == "push" else (url, HERE)
    source, destination = (
        End(where, each, each)
        for where, each in zip((Where.SOURCE, Where.DESTINATION), ends, strict=True)
    )
    fields: dict[str, object] = {"bytes": 400_000_000, "mode": mode, "limits": LIMITS}
    return Order(source, destination, **(fields | wishes))  # type: ignore[arg-type]


def measured(order: Order, watch: Watch | None = None) -> Outcome:
    return network.measure(iperf3.Iperf3(), order, watch or Watch())


def failure(order: Order, watch: Watch | None = None) -> MoverError:
    error = measured(order, watch).error
    assert error
    return error


def seen_of(outcome: Outcome) -> SeenOfNetwork:
    assert isinstance(outcome.seen, SeenOfNetwork)
    return outcome.seen


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_it_sends_and_fetches_and_says_what_the_server_says(server: Iperf3Server, mode: str):
    before = len(server.tests())
    outcome = measured(order(server.url, mode, streams=3))
    assert outcome.error is None
    assert outcome.receipt
    assert wait_for(lambda: len(server.tests()) > before, SOON, 0.02)
    test = server.tests()[-1]
    assert bool(test["start"]["test_start"]["reverse"]) == (mode == "pull")
    assert test["start"]["test_start"]["num_streams"] == 3
    seen = seen_of(outcome)
    assert seen.path.sent_bytes
    # What is on its way when the sender has sent all is not counted by who receives.
    assert 400_000_000 <= seen.path.sent_bytes < 410_000_000
    assert 0 < outcome.receipt.bytes <= seen.path.sent_bytes
    assert (seen.streams_used, seen.ip_version) == (3, 4)
    counted = seen.path.sent_bytes if mode == "push" else outcome.receipt.bytes
    assert [sample.bytes for sample in seen.samples][-1] == counted
    assert seen.path.mss_bytes
    assert seen.path.retransmits is not None
    assert seen.path.congestion_control
    # Round trips and windows are the sender's: who fetches does not know them.
    if mode == "push":
        assert seen.path.rtt_min_ms
        assert seen.path.rtt_mean_ms
        assert seen.path.rtt_max_ms
        assert seen.path.rtt_min_ms <= seen.path.rtt_mean_ms <= seen.path.rtt_max_ms
        assert seen.path.max_cwnd_bytes
        assert seen.path.max_receive_window_bytes
    else:
        assert seen.path.rtt_mean_ms is seen.path.max_cwnd_bytes is None


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_a_rate_is_that_of_the_servers_own_log(server: Iperf3Server, mode: str):
    before, reported = len(server.tests()), list[int]()
    with Pulses(server) as pulses:

        def note(moved: int) -> None:
            reported.append(moved)
            if moved > 1_000_000:
                pulses.has_moved.set()

        watch = Watch(note)
        outcome = measured(order(server.url, mode, bytes=1_500_000_000), watch)
    assert outcome.receipt, outcome.error
    assert wait_for(lambda: len(server.tests()) > before, SOON, 0.02)
    end = server.tests()[-1]["end"]
    own = end["sum_received"] if mode == "push" else end["sum_sent"]
    assert outcome.receipt.seconds > 2
    rate = outcome.receipt.bytes / outcome.receipt.seconds
    assert rate == pytest.approx(own["bytes"] / own["seconds"], rel=0.03)
    assert reported == sorted(reported)
    assert [moved for moved in reported if 0 < moved < 1_500_000_000]
    samples = seen_of(outcome).samples
    assert [round(sample.seconds) for sample in samples[:2]] == [1, 2]
    assert samples[-1].bytes == pytest.approx(1_500_000_000, rel=0.03)


def test_the_buffer_is_set_or_the_test_fails(server: Iperf3Server):
    assert measured(order(server.url, tcp_buffer_bytes=65536)).receipt
    assert wait_for(lambda: server.tests()[-1]["start"].get("sock_bufsize") == 65536, SOON, 0.02)
    refused = failure(order(server.url, tcp_buffer_bytes=2_000_000_000))
    assert (refused.where, refused.permanent) == ("control", True)
    assert "socket buffer size too large" in str(refused)


@pytest.mark.parametrize(("mode", "where"), [("push", "destination"), ("pull", "source")])
def test_who_does_not_answer_is_the_end_with_the_server(mode: str, where: str):
    needs("iperf3", "setpriv")
    nobody = failure(order(f"iperf3://127.0.0.1:{free_port()}", mode))
    assert (nobody.where, nobody.permanent) == (where, False)
    assert "Connection refused" in str(nobody)
    unknown = failure(order("iperf3://no-such-host.invalid", mode))
    assert (unknown.where, unknown.permanent) == (where, True)


def keep_busy(server: Iperf3Server, seconds: float) -> subprocess.Popen[bytes]:
    """Let somebody else measure with a server for a while, once it is done with who came before."""
    command = ["iperf3", "--client", "127.0.0.1", "--port", str(server.port), "--bitrate", "1M"]
    command += ["--time", str(seconds), "--forceflush"]
    for _ in range(TRIES):
        other = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert other.stdout
        for line in other.stdout:
            if b"connected to" in line:
                return other
        other.communicate()
        time.sleep(0.2)
    raise AssertionError(f"iperf3 was not let in: {server.log.read_text()}")


def test_a_server_that_serves_somebody_else_is_waited_for(server: Iperf3Server):
    other = keep_busy(server, 2)
    outcome = measured(order(server.url))
    assert outcome.receipt, outcome.error
    other.communicate()


def test_a_server_that_is_busy_for_long_is_said_to_be(server: Iperf3Server, monkeypatch):
    monkeypatch.setattr(iperf3, "TURN_SECONDS", 0.0)
    other = keep_busy(server, 300)
    busy = failure(order(server.url))
    other.terminate()
    other.communicate()
    assert (busy.where, busy.permanent) == ("destination", False)
    assert "server is busy" in str(busy)


def test_a_server_that_is_silent_from_the_beginning_is_not_waited_for_long():
    needs("iperf3", "setpriv")
    silence = Silence()
    limits = replace(LIMITS, stall=1.0)
    error = failure(order(silence.url, limits=limits))
    silence.close()
    assert (error.where, error.permanent) == ("transfer", False)
    assert "no bytes moved for 1 s" in str(error)
    assert clients_of(silence.url) == []


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_a_server_that_freezes_is_noticed(mortal: Iperf3Server, mode: str):
    limits = replace(LIMITS, stall=5.0)
    watch = Watch(lambda moved: mortal.signal(signal.SIGSTOP) if moved > 1_000_000 else None)
    outcome = measured(order(mortal.url, mode, bytes=10**11, limits=limits), watch)
    assert (outcome.error.where, outcome.error.permanent) == ("transfer", False)
    assert "no bytes moved for 5 s" in str(outcome.error)
    assert outcome.seen.moved_bytes
    assert clients_of(mortal.url) == []


@pytest.mark.parametrize("mode", ["push", "pull"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_dies_midway_is_noticed(
    mortal: Iperf3Server, mode: str, number: signal.Signals
):
    watch = Watch(lambda moved: mortal.signal(number) if moved > 1_000_000 else None)
    error = failure(order(mortal.url, mode, bytes=10**11), watch)
    assert (error.where, error.permanent) == ("transfer", False)
    assert clients_of(mortal.url) == []


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_a_stop_ends_it_at_once_and_the_server_is_free(server: Iperf3Server, mode: str):
    watch = Watch(lambda moved: watch.stop() if moved > 1_000_000 else None)
    began = time.monotonic()
    outcome = measured(order(server.url, mode, bytes=10**12), watch)
    assert isinstance(outcome.error, Stopped)
    assert time.monotonic() - began < SOON
    assert clients_of(server.url) == []
    assert measured(order(server.url)).receipt


def test_a_server_that_resets_who_comes_between_two_tests_is_asked_again(tmp_path):
    needs("iperf3", "setpriv")
    with closing(Iperf3Server(tmp_path)) as server:
        with reset_once(server.port, then=server.start):
            assert measured(order(server.url)).receipt
        assert wait_for(lambda: len(server.tests()) == 1, SOON)


def test_a_stop_while_it_waits_for_its_turn_ends_that(server: Iperf3Server, monkeypatch):
    monkeypatch.setattr(iperf3, "TURN_SECONDS", 300.0)
    other, watch = keep_busy(server, 300), Watch()
    timer = threading.Timer(1.0, watch.stop)
    timer.start()
    began = time.monotonic()
    assert isinstance(measured(order(server.url), watch).error, Stopped)
    assert time.monotonic() - began < SOON
    other.terminate()
    other.communicate()


def test_what_it_needs_is_in_the_catalogue(settings):
    description = catalogue.describe("iperf3")
    assert description.of_network
    settings.SONAR_NETWORK_ENDPOINT = ""
    assert description.missing()[-1] == "the setting SONAR_NETWORK_ENDPOINT is empty"
