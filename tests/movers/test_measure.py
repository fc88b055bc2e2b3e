"""One measurement, with movers in memory: what it asks for, what it verifies, what it leaves."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sonar.movers import measure as measure_module
from sonar.movers.base import End, FileInfo, MoverError, Order, Receipt, Stopped, Where
from sonar.movers.fake import FASTEST, SLOWEST, FakeFile, FakeFiles, FakeMover, rate
from sonar.movers.measure import measure
from sonar.movers.watch import Watch
from tests.movers.orders import ORDER, order_between


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_module, "LOOK_AGAIN_SECONDS", (0.0, 0.0))


class RecordingFiles(FakeFiles):
    """Files in memory that note what was asked of them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def stat(self, end: End, order: Order) -> FileInfo | None:
        self.asked.append(f"stat {end.where}")
        return super().stat(end, order)

    def checksum(self, end: End, order: Order, seconds: float) -> str:
        self.asked.append(f"checksum {end.where}")
        return super().checksum(end, order, seconds)

    def put(self, order: Order, watch: Watch) -> None:
        self.asked.append(f"put {order.source.where}")
        time.sleep(0.01)
        super().put(order, watch)

    def delete(self, end: End, order: Order) -> None:
        self.asked.append(f"delete {end.where}")
        super().delete(end, order)


class RecordingMover(FakeMover):
    def __init__(self, after: Callable[[RecordingFiles], None] = lambda _: None) -> None:
        super().__init__()
        self.files: RecordingFiles = RecordingFiles()
        self._after = after

    def move(self, order: Order, watch: Watch) -> Receipt:
        self.files.asked.append("move")
        receipt = super().move(order, watch)
        self._after(self.files)
        return receipt


def arriving(file: FakeFile | None) -> RecordingMover:
    """Return a mover after whose move this is what is at the destination."""

    def arrive(files: RecordingFiles) -> None:
        files.held.pop(ORDER.destination.url)
        if file:
            files.held[ORDER.destination.url] = file

    return RecordingMover(after=arrive)


def nothing_is_left(mover: FakeMover) -> bool:
    return ORDER.destination.url not in mover.files.held


def test_a_measurement_costs_five_requests_once_the_source_is_there():
    mover = RecordingMover()
    measure(mover, ORDER, Watch())
    mover.files.asked.clear()
    outcome = measure(mover, ORDER, Watch())
    assert outcome.receipt
    assert (outcome.error, outcome.leftover) == (None, None)
    assert mover.files.asked == [
        "stat source",
        "move",
        "stat destination",
        "checksum destination",
        "delete destination",
    ]
    assert nothing_is_left(mover)


def test_a_missing_source_file_is_put_first():
    mover = RecordingMover()
    assert measure(mover, ORDER, Watch()).receipt
    assert mover.files.asked[:4] == ["stat source", "stat source", "put source", "move"]


def test_a_source_file_of_the_wrong_size_is_put_anew():
    mover = RecordingMover()
    mover.files.held[ORDER.source.url] = FakeFile(7)
    assert measure(mover, ORDER, Watch()).receipt
    assert mover.files.held[ORDER.source.url].bytes == ORDER.bytes


def test_twenty_threads_put_the_same_source_file_once():
    mover = RecordingMover()
    ends = [replace(ORDER.destination, url=f"http://ral.example/{number}") for number in range(20)]
    with ThreadPoolExecutor(20) as threads:
        orders = [replace(ORDER, destination=end) for end in ends]
        done = [threads.submit(measure, mover, order, Watch()) for order in orders]
    assert all(each.result().receipt for each in done)
    assert mover.files.asked.count("put source") == 1
    assert mover.files.asked.count("move") == 20


def test_a_thread_that_waits_for_an_upload_can_be_stopped():
    mover, watch = RecordingMover(), Watch()
    with measure_module.upload_turn(ORDER, Watch(), 9):
        threading.Timer(0.05, watch.stop).start()
        outcome = measure(mover, ORDER, watch)
    assert isinstance(outcome.error, Stopped)
    assert "move" not in mover.files.asked


def test_no_lock_is_kept_when_nobody_wants_it():
    order = replace(ORDER, source=replace(ORDER.source, url="http://glasgow.example/base/other"))
    assert measure(RecordingMover(), order, Watch()).receipt
    assert order.source.url not in measure_module._upload_locks


def test_a_source_file_with_other_content_is_an_error_of_the_source():
    mover = RecordingMover()
    mover.files.held[ORDER.source.url] = FakeFile(ORDER.bytes, "deadbeef")
    outcome = measure(mover, ORDER, Watch())
    assert (outcome.error.where, outcome.error.permanent) == (Where.SOURCE, True)
    assert "the source file has adler32 deadbeef" in str(outcome.error)
    assert outcome.verified is False
    assert nothing_is_left(mover)


@pytest.mark.parametrize(
    ("arrived", "words"),
    [
        (FakeFile(1_999, ORDER.adler32), "1999 of 2000 bytes arrived"),
        (FakeFile(2_000, "deadbeef"), "the received file has adler32 deadbeef"),
        (None, "the file is missing"),
    ],
)
def test_what_arrived_otherwise_than_sent_is_no_rate(arrived: FakeFile | None, words: str):
    mover = arriving(arrived)
    outcome = measure(mover, ORDER, Watch())
    assert outcome.receipt is None
    assert words in str(outcome.error)
    assert outcome.error.where == Where.TRANSFER
    assert nothing_is_left(mover)


@pytest.mark.parametrize("seconds", [1e-300, ORDER.bytes / 1.01e12, 1.01e8, 1e308, math.inf, 0.0])
def test_a_time_that_cannot_be_is_no_rate(monkeypatch, seconds: float):
    """Who was asked for it may tell any: what is computed of it would be no number."""
    mover = FakeMover()
    monkeypatch.setattr(mover, "move", lambda order, watch: Receipt(order.bytes, seconds))
    error = measure(mover, ORDER, Watch()).error
    assert error.where is Where.CONTROL
    assert f"time is impossible: {ORDER.bytes} bytes in {seconds:.3g} s" in str(error)


def test_a_server_without_checksums_is_believed_the_size():
    assert measure(arriving(FakeFile(ORDER.bytes)), ORDER, Watch()).receipt


def test_the_checksum_the_source_tells_is_expected_where_the_order_has_none():
    mover = arriving(FakeFile(ORDER.bytes, "deadbeef"))
    order = replace(ORDER, adler32="")
    mover.files.put(order, Watch())
    outcome = measure(mover, order, Watch())
    assert "deadbeef" in str(outcome.error)


@pytest.mark.parametrize(
    "error", [MoverError(Where.TRANSFER, "reset"), Stopped(), MoverError(Where.SOURCE, "gone")]
)
def test_a_failure_leaves_nothing_even_if_the_file_comes_back(error: MoverError):
    class Returning(RecordingFiles):
        """A server that still creates the file after the first delete."""

        returns = 1

        def delete(self, end: End, order: Order) -> None:
            super().delete(end, order)
            if self.returns:
                self.returns -= 1
                self.held[end.url] = FakeFile(3)

    def fail(_: RecordingFiles) -> None:
        raise error

    mover = RecordingMover(after=fail)
    mover.files = Returning()
    outcome = measure(mover, ORDER, Watch())
    assert outcome.error is error
    assert outcome.leftover is None
    assert nothing_is_left(mover)


def test_a_file_that_cannot_be_deleted_is_told_of():
    class Undeletable(RecordingFiles):
        def delete(self, end: End, order: Order) -> None:
            raise MoverError(end.where, "no right to delete", permanent=True)

    mover = RecordingMover()
    mover.files = Undeletable()
    outcome = measure(mover, ORDER, Watch())
    assert outcome.receipt
    assert str(outcome.leftover) == "no right to delete"


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_passed_on_after_the_clean_up(interruption: type[BaseException]):
    def interrupt(_: RecordingFiles) -> None:
        raise interruption

    mover = RecordingMover(after=interrupt)
    with pytest.raises(interruption):
        measure(mover, ORDER, Watch())
    assert mover.files.asked[-3:] == ["delete destination", "stat destination", "stat destination"]
    assert nothing_is_left(mover)


def test_a_stop_before_the_beginning_asks_for_nothing():
    mover, watch = RecordingMover(), Watch()
    watch.stop()
    outcome = measure(mover, ORDER, watch)
    assert isinstance(outcome.error, Stopped)
    assert mover.files.asked == []


def test_a_failed_move_tells_how_long_it_took():
    def fail(_: RecordingFiles) -> None:
        time.sleep(0.02)
        raise MoverError(Where.TRANSFER, "reset")

    assert measure(RecordingMover(after=fail), ORDER, Watch()).elapsed_seconds >= 0.02


@pytest.fixture
def held_turn() -> Iterator[None]:
    with measure_module.upload_turn(order_between("http://other.example", "http://x"), Watch(), 9):
        yield


@pytest.mark.usefixtures("held_turn")
def test_the_upload_of_another_file_is_not_waited_for():
    assert measure(RecordingMover(), ORDER, Watch()).receipt


# The fake mover: the same order, the same result.


def prepared(mover: FakeMover, order: Order = ORDER) -> FakeMover:
    mover.files.put(order, Watch())
    return mover


def test_the_same_order_gives_the_same_rate():
    watch = Watch()
    first = prepared(FakeMover()).move(ORDER, watch)
    assert first == prepared(FakeMover()).move(ORDER, Watch())
    assert first.bytes == ORDER.bytes
    assert watch.seen.samples[-1].bytes == ORDER.bytes


def test_the_rate_depends_on_direction_and_size_not_on_the_file_name():
    turned = order_between("http://ral.example", "http://glasgow.example")
    other_file = replace(ORDER, destination=replace(ORDER.destination, url="http://ral.example/x"))
    rates = {rate(ORDER), rate(turned), rate(replace(ORDER, bytes=5))}
    assert len(rates) == 3
    assert all(SLOWEST <= one <= FASTEST for one in rates)
    assert rate(other_file) == rate(ORDER)


def test_a_missing_source_is_a_permanent_error_of_the_source():
    with pytest.raises(MoverError, match="no such file") as caught:
        FakeMover().move(ORDER, Watch())
    assert (caught.value.where, caught.value.permanent) == (Where.SOURCE, True)


@pytest.mark.parametrize("host", ["glasgow.example", "ral.example"])
def test_it_fails_for_the_hosts_it_is_told(host: str):
    told = MoverError(Where.DESTINATION, "disk full", permanent=True)
    with pytest.raises(MoverError, match="disk full") as caught:
        prepared(FakeMover({host: told})).move(ORDER, Watch())
    assert (caught.value.where, caught.value.permanent) == (Where.DESTINATION, True)


def test_a_failure_comes_halfway_and_what_was_seen_stays():
    told = MoverError(Where.DESTINATION, "disk full")
    outcome = measure(FakeMover({"ral.example": told}), replace(ORDER, streams=4), Watch())
    assert outcome.error
    assert [one.bytes for one in outcome.seen.samples] == [500, 1000]
    seen = outcome.seen
    assert (seen.moved_bytes, seen.streams_used, seen.ip_version) == (1000, 4, 6)


def test_a_success_has_all_the_facts_of_a_real_one():
    outcome = measure(FakeMover(), replace(ORDER, streams=4), Watch())
    assert outcome.receipt
    assert (outcome.seen.streams_used, outcome.seen.moved_bytes) == (4, ORDER.bytes)
    assert (outcome.verified, outcome.verified_note) == (True, "")
    assert outcome.seen.samples[-1].bytes == ORDER.bytes


def test_progress_is_reported():
    seen: list[int] = []
    prepared(FakeMover()).move(ORDER, Watch(seen.append))
    assert seen == [500, 1000, 1500, 2000]


def test_a_stop_ends_the_pace_at_once():
    watch = Watch()
    threading.Timer(0.05, watch.stop).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        prepared(FakeMover(seconds=60)).move(ORDER, watch)
    assert time.monotonic() - began < 30
