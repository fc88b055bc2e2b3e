"""The fake mover: the same order, the same result."""

import threading
import time
from dataclasses import replace

import pytest

from sonar.movers.base import MoverError, Order, Stopped, Where
from sonar.movers.fake import FASTEST, SLOWEST, FakeMover, rate
from sonar.movers.measure import measure
from sonar.movers.watch import Watch
from tests.movers.orders import ORDER, order_between


def prepared(mover: FakeMover, order: Order = ORDER) -> FakeMover:
    mover.files.put(order, Watch())
    return mover


def test_the_same_order_gives_the_same_rate() -> None:
    watch = Watch()
    first = prepared(FakeMover()).move(ORDER, watch)
    assert first == prepared(FakeMover()).move(ORDER, Watch())
    assert first.bytes == ORDER.bytes
    assert watch.seen.samples[-1].bytes == ORDER.bytes


def test_the_rate_depends_on_direction_and_size_not_on_the_file_name() -> None:
    turned = order_between("http://ral.example", "http://glasgow.example")
    other_file = replace(ORDER, destination=replace(ORDER.destination, url="http://ral.example/x"))
    rates = {rate(ORDER), rate(turned), rate(replace(ORDER, bytes=5))}
    assert len(rates) == 3
    assert all(SLOWEST <= one <= FASTEST for one in rates)
    assert rate(other_file) == rate(ORDER)


def test_the_file_is_at_the_destination_afterwards() -> None:
    mover = prepared(FakeMover())
    mover.move(ORDER, Watch())
    assert mover.files.stat(ORDER.destination, ORDER) == mover.files.stat(ORDER.source, ORDER)


def test_a_missing_source_is_a_permanent_error_of_the_source() -> None:
    with pytest.raises(MoverError, match="no such file") as caught:
        FakeMover().move(ORDER, Watch())
    assert (caught.value.where, caught.value.permanent) == (Where.SOURCE, True)


@pytest.mark.parametrize("host", ["glasgow.example", "ral.example"])
def test_it_fails_for_the_hosts_it_is_told(host: str) -> None:
    told = MoverError(Where.DESTINATION, "disk full", permanent=True)
    with pytest.raises(MoverError, match="disk full") as caught:
        prepared(FakeMover({host: told})).move(ORDER, Watch())
    assert (caught.value.where, caught.value.permanent) == (Where.DESTINATION, True)


def test_a_failure_comes_halfway_and_what_was_seen_stays() -> None:
    told = MoverError(Where.DESTINATION, "disk full")
    outcome = measure(FakeMover({"ral.example": told}), replace(ORDER, streams=4), Watch())
    assert outcome.error
    assert [one.bytes for one in outcome.seen.samples] == [500, 1000]
    seen = outcome.seen
    assert (seen.moved_bytes, seen.streams_used, seen.ip_version) == (1000, 4, 6)


def test_a_success_has_all_the_facts_of_a_real_one() -> None:
    outcome = measure(FakeMover(), replace(ORDER, streams=4), Watch())
    assert outcome.receipt
    assert (outcome.seen.streams_used, outcome.seen.moved_bytes) == (4, ORDER.bytes)
    assert (outcome.verified, outcome.verified_note) == (True, "")
    assert outcome.seen.samples[-1].bytes == ORDER.bytes


def test_progress_is_reported() -> None:
    seen: list[int] = []
    prepared(FakeMover()).move(ORDER, Watch(seen.append))
    assert seen == [500, 1000, 1500, 2000]


def test_a_stop_ends_the_pace_at_once() -> None:
    watch = Watch()
    threading.Timer(0.05, watch.stop).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        prepared(FakeMover(seconds=60)).move(ORDER, watch)
    assert time.monotonic() - began < 30
