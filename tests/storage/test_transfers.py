"""Transfers between real XRootD servers: those that succeed, and those that cannot."""

import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sonar.movers import measure as measure_module
from sonar.movers.base import End, MoverError, Order, Receipt, Where
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.http.webdav import WebDav
from sonar.movers.measure import Outcome, measure
from sonar.movers.watch import Watch
from tests.ports import free_port
from tests.storage.conftest import LIMITS, SIZE_BYTES, Pair, close_pair, start_pair
from tests.storage.throttle import Throttle
from tests.storage.xrootd import Authority, slow_checksums

pytestmark = pytest.mark.usefixtures("_brief_looks")

Road = Callable[..., Throttle]

MODES = ["pull", "push"]
ACTIVE_END = {"pull": Where.DESTINATION, "push": Where.SOURCE}


@pytest.fixture(scope="module")
def mover() -> HttpTpc:
    """Return one mover for all tests, so that they share its connections as workers do."""
    return HttpTpc()


def move(mover: HttpTpc, order: Order) -> Receipt:
    """Put the source file where it is missing, and move without what comes after."""
    if mover.files.stat(order.source, order) is None:
        mover.files.put(order, Watch())
    return mover.move(order, Watch())


def move_fails(
    mover: HttpTpc, order: Order, where: str, words: str = "", *, permanent: bool = True
) -> None:
    with pytest.raises(MoverError, match=words) as caught:
        mover.move(order, Watch())
    assert (caught.value.where, caught.value.permanent) == (where, permanent)


def clear(mover: HttpTpc, order: Order) -> None:
    """Delete what the next test would find."""
    mover.files.delete(order.destination, order)


def fails(outcome: Outcome, where: Where, words: str, *, permanent: bool) -> None:
    assert outcome.receipt is None
    assert outcome.error
    assert words in str(outcome.error).lower()
    assert (outcome.error.where, outcome.error.permanent) == (where, permanent)
    assert outcome.leftover is None


def without_token(end: End) -> End:
    return replace(end, token="", lent="")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("world", ["plain", "guarded"])
def test_a_transfer_is_measured_and_leaves_nothing(world: str, mode: str, mover: HttpTpc, request):
    pair: Pair = request.getfixturevalue(world)
    outcome = measure(mover, pair.order(mode=mode), Watch())
    assert (outcome.error, outcome.leftover) == (None, None)
    assert outcome.receipt.bytes == SIZE_BYTES
    assert 0 < outcome.receipt.seconds <= outcome.elapsed_seconds
    assert outcome.seen.ip_version in ({4} if mode == "pull" else {4, None})
    assert pair.left_behind() == []


@pytest.mark.parametrize("mode", MODES)
def test_what_arrives_is_what_was_sent(mode: str, plain: Pair, mover: HttpTpc):
    order = plain.order(mode=mode)
    move(mover, order)
    info = mover.files.stat(order.destination, order)
    assert info.bytes == order.bytes
    assert mover.files.checksum(order.destination, order, LIMITS.checksum) == order.adler32
    clear(mover, order)
    assert mover.files.stat(order.destination, order) is None


@pytest.mark.parametrize("mode", MODES)
def test_several_streams_carry_a_file(mode: str, plain: Pair, mover: HttpTpc):
    outcome = measure(mover, plain.order(streams=4, mode=mode, bytes=20_000_000), Watch())
    assert outcome.error is None
    assert outcome.receipt
    assert outcome.seen.streams_used == {"pull": 2, "push": 1}[mode]
    assert (outcome.seen.samples, outcome.seen.moved_bytes) == ([], 20_000_000)


@pytest.mark.parametrize(
    ("mode", "size", "streams"),
    [
        ("pull", 2_000_000, 4),
        ("pull", 60_000_000, 3),
        ("pull", 60_000_000, 9),
        ("push", 60_000_000, 4),
    ],
)
def test_streams_said_to_be_used_are_the_connections_that_carried_data(
    mode: str, size: int, streams: int, plain: Pair, mover: HttpTpc, slow_road: Road
):
    order = plain.order(mode=mode, bytes=size, streams=streams)
    passive, server = (
        ("source", plain.source) if mode == "pull" else ("destination", plain.destination)
    )
    road = slow_road(server, 40e6)
    end: End = getattr(order, passive)
    url = end.url.replace(server.url, road.url)
    mover.files.put(order, Watch())
    plain.destination.make_directory("base/incoming")
    turned = replace(end, url=url, base_url=f"{road.url}/base")
    watch = Watch()
    mover.move(replace(order, **{passive: turned}), watch)
    clear(mover, order)
    assert watch.seen.streams_used == sum(moved > 100_000 for moved in road.moved.values())


def test_the_same_connections_serve_many_measurements(plain: Pair, mover: HttpTpc):
    for _ in range(20):
        assert measure(mover, plain.order(), Watch()).receipt
    assert plain.left_behind() == []


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_source_is_a_permanent_error_of_the_source(
    mode: str, plain: Pair, mover: HttpTpc
):
    order = plain.order(mode=mode)
    source = replace(order.source, url=f"{plain.source.url}/base/source/none")
    move_fails(mover, replace(order, source=source), Where.SOURCE, "no such file")
    clear(mover, order)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("side", ["source", "destination"])
@pytest.mark.parametrize("fault", ["refused", "unknown"])
def test_an_end_that_cannot_be_reached_is_named(
    fault: str, side: str, mode: str, plain: Pair, mover: HttpTpc
):
    order = plain.order(mode=mode)
    host = f"127.0.0.1:{free_port()}" if fault == "refused" else "no-such-host.invalid:1094"
    lost = End(Where(side), f"http://{host}/base/f", f"http://{host}/base")
    move_fails(mover, replace(order, **{side: lost}), side, re.escape(host), permanent=False)
    clear(mover, order)


@pytest.mark.parametrize("side", ["source", "destination"])
def test_a_measurement_names_the_end_that_cannot_be_reached(side: str, plain: Pair, mover: HttpTpc):
    order, host = plain.order(), f"127.0.0.1:{free_port()}"
    lost = End(Where(side), f"http://{host}/base/f", f"http://{host}/base")
    outcome = measure(mover, replace(order, **{side: lost}), Watch())
    assert outcome.error.where == side
    assert "connection refused" in str(outcome.error)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("side", ["source", "destination"])
def test_a_missing_right_is_a_permanent_error_of_that_side(
    side: str, mode: str, guarded: Pair, mover: HttpTpc
):
    order = guarded.order(mode=mode)
    assert measure(mover, order, Watch()).receipt
    bare = replace(order, **{side: without_token(getattr(order, side))})
    move_fails(mover, bare, side)
    clear(mover, order)
    assert guarded.left_behind() == []


def test_a_measurement_without_any_right_says_so(guarded: Pair, mover: HttpTpc):
    order = guarded.order()
    bare = replace(
        order, source=without_token(order.source), destination=without_token(order.destination)
    )
    fails(measure(mover, bare, Watch()), Where.SOURCE, "403 forbidden", permanent=True)


def test_a_token_to_read_is_enough_at_the_source(guarded: Pair, mover: HttpTpc):
    measure(mover, guarded.order(), Watch())
    order = guarded.order()
    macaroon = guarded.source.macaroon("DOWNLOAD")
    reader = replace(order.source, token=macaroon, lent=macaroon)
    assert measure(mover, replace(order, source=reader), Watch()).receipt


@pytest.mark.parametrize("size", [1_000, 20_000_001])
def test_a_refused_upload_is_told_as_such_again_and_again(size: int, guarded: Pair, mover: HttpTpc):
    order = guarded.order(bytes=size)
    order = replace(order, source=replace(order.source, token=guarded.source.macaroon("DOWNLOAD")))
    for _ in range(3):
        fails(measure(mover, order, Watch()), Where.SOURCE, "403 forbidden", permanent=True)


def test_a_certificate_of_a_stranger_is_refused(guarded: Pair, plain: Pair):
    order = replace(guarded.order(), ca_bundle="")
    outcome = measure(HttpTpc(), order, Watch())
    fails(outcome, Where.SOURCE, "certificate is not accepted", permanent=True)


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_directory_below_the_base_is_made(mode: str, plain: Pair, mover: HttpTpc):
    order = plain.order(mode=mode)
    deep = replace(order.destination, url=f"{plain.destination.url}/base/{mode}/a%20b/incoming/f")
    outcome = measure(mover, replace(order, destination=deep), Watch())
    assert outcome.receipt
    assert (plain.destination.data / "base" / mode / "a b" / "incoming").is_dir()
    assert plain.left_behind() == []


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_base_is_a_permanent_error_and_is_not_made(
    mode: str, plain: Pair, mover: HttpTpc
):
    order, base = plain.order(mode=mode), f"{plain.destination.url}/nowhere"
    lost = End(Where.DESTINATION, f"{base}/incoming/f", base)
    outcome = measure(mover, replace(order, destination=lost), Watch())
    fails(outcome, Where.DESTINATION, "base directory is missing", permanent=True)
    assert not (plain.destination.data / "nowhere").exists()


def test_a_missing_base_of_the_source_is_not_made_by_an_upload(plain: Pair, mover: HttpTpc):
    base = f"{plain.source.url}/nowhere"
    order = replace(plain.order(), source=End(Where.SOURCE, f"{base}/source/f", base))
    fails(measure(mover, order, Watch()), Where.SOURCE, "base directory is missing", permanent=True)
    assert not (plain.source.data / "nowhere").exists()


@pytest.mark.parametrize("mode", MODES)
def test_a_destination_that_exists_is_overwritten_only_if_told(
    mode: str, plain: Pair, mover: HttpTpc
):
    order = plain.order(mode=mode)
    move(mover, order)
    move_fails(mover, order, Where.DESTINATION, "exists")
    assert mover.move(replace(order, overwrite=True), Watch()).bytes == order.bytes
    clear(mover, order)


def test_a_source_of_the_right_size_with_other_content_is_no_test_file(plain: Pair, mover: HttpTpc):
    order = plain.order(bytes=2_000_003)
    mover.files.put(order, Watch())
    path = plain.source.data / "base" / "source" / "2000003"
    path.write_bytes(b"x" + path.read_bytes()[1:])
    fails(measure(mover, order, Watch()), Where.SOURCE, "adler32", permanent=True)
    path.unlink()


def test_what_changed_on_the_way_is_a_fault_of_the_transfer(plain: Pair):
    order = plain.order()

    class Spoiling(HttpTpc):
        def move(self, order: Order, watch: Watch) -> Receipt:
            receipt = super().move(order, watch)
            (path,) = plain.left_behind()
            path.write_bytes(b"x" + path.read_bytes()[1:])
            return receipt

    outcome = measure(Spoiling(), order, Watch())
    fails(outcome, Where.TRANSFER, "adler32", permanent=False)
    assert str(outcome.error).endswith(f", the sent file {order.adler32}")
    assert (outcome.verified, outcome.seen.moved_bytes) == (False, order.bytes)


def test_a_source_of_the_wrong_size_is_put_anew(plain: Pair, mover: HttpTpc):
    order = plain.order(bytes=2_000_005)
    mover.files.put(order, Watch())
    path = plain.source.data / "base" / "source" / "2000005"
    path.write_bytes(b"short")
    assert measure(mover, order, Watch()).receipt
    assert path.stat().st_size == 2_000_005


class CountingFiles(WebDav):
    """WebDAV that counts uploads."""

    puts = 0

    def put(self, order: Order, watch: Watch) -> None:
        self.puts += 1
        super().put(order, watch)


def all_at_once(mover: HttpTpc, orders: list[Order]) -> list[tuple[Outcome, float]]:
    """Return how each went, and how many seconds it took from beginning to end."""

    def timed(order: Order) -> tuple[Outcome, float]:
        began = time.monotonic()
        return measure(mover, order, Watch()), time.monotonic() - began

    with ThreadPoolExecutor(len(orders)) as threads:
        return list(threads.map(timed, orders))


def test_twenty_threads_upload_the_same_source_file_once(mortal: Pair):
    """Patiently: XRootD 5.5.3 does not answer twenty at once in time on a busy machine."""
    mover = HttpTpc()
    mover.files = CountingFiles()
    limits = replace(LIMITS, answer=60)
    orders = [mortal.order(bytes=3_000_000, limits=limits) for _ in range(20)]
    outcomes = [outcome for outcome, _ in all_at_once(mover, orders)]
    assert [outcome.error for outcome in outcomes] == [None] * 20
    assert mover.files.puts == 1
    assert [outcome.leftover for outcome in outcomes] == [None] * 20
    assert mortal.left_behind() == []
    assert not list(mortal.source.data.rglob("*.part"))


def test_a_failed_upload_leaves_nothing_at_the_source(mortal: Pair):
    mortal.source.make_directory("base/source/2000000/in-the-way")
    with pytest.raises(MoverError, match="MOVE ") as caught:
        HttpTpc().files.put(mortal.order(), Watch())
    assert caught.value.where == Where.SOURCE
    assert not list(mortal.source.data.rglob("*.part"))


def test_a_server_that_accepts_and_says_nothing_is_given_up(plain: Pair, mover: HttpTpc):
    limits = replace(LIMITS, answer=1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        order = replace(
            plain.order(limits=limits), source=End(Where.SOURCE, f"{url}/base/f", f"{url}/base")
        )
        fails(measure(mover, order, Watch()), Where.SOURCE, "no answer within 1 s", permanent=False)


CHECKSUM_SECONDS = 2.0


@pytest.fixture
def slow_to_sum(authority: Authority) -> Iterator[Pair]:
    """Two servers, of which the destination takes 2 s for a checksum and does four at a time."""
    pair = start_pair(authority, destination=slow_checksums(CHECKSUM_SECONDS))
    yield pair
    close_pair(pair)


def test_twenty_tests_at_a_server_slow_with_checksums_are_all_measured(
    slow_to_sum: Pair, monkeypatch: pytest.MonkeyPatch
):
    """Four at work, eight in line; XRootD lets the other eight wait for 30 s without a word."""
    monkeypatch.setattr(measure_module, "ALIVE_SECONDS", LIMITS.answer)
    limits = replace(LIMITS, checksum=25)
    orders = [slow_to_sum.order(bytes=2_000, limits=limits) for _ in range(20)]
    all_timed = all_at_once(HttpTpc(), orders)
    outcomes = [outcome for outcome, _ in all_timed]
    assert [outcome.error for outcome in outcomes] == [None] * 20
    assert [outcome.leftover for outcome in outcomes] == [None] * 20
    assert slow_to_sum.left_behind() == []
    verified = [outcome for outcome in outcomes if outcome.verified]
    assert len(verified) >= 8
    late = {outcome.verified_note for outcome in outcomes if not outcome.verified}
    assert late <= {"the checksum was not ready after 25 s"}
    for outcome, seconds in all_timed:  # no checksum is in a rate
        parts = outcome.prepare_seconds, outcome.receipt.seconds, outcome.seen.checksum_seconds
        assert sum(parts) < seconds


def test_a_server_without_checksums_is_believed_the_size_and_says_so(authority: Authority):
    pair = start_pair(authority, destination=lambda _room: "")
    try:
        outcome = measure(HttpTpc(), pair.order(), Watch())
    finally:
        close_pair(pair)
    assert outcome.receipt
    note = "the server refused the request for an adler32 checksum (405)"
    assert (outcome.verified, outcome.verified_note) == (False, note)
