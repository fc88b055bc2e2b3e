"""Files that arrive: whole, verified and deleted; timed as another clock times them."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from sonar.movers.measure import measure, remove
from sonar.movers.watch import Watch
from tests.programs.conftest import Farm
from tests.programs.gridftp import GridFtpServer
from tests.programs.ways import WAYS, Ends, Meanwhile, StorageServer, Way, files_below, on_disk
from tests.waiting import sooner_or_later

LONG_BYTES = 60_000_000
WITHIN = 0.03
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)


@each_way
def test_a_file_arrives_is_verified_and_nothing_is_left(way: Way, grid: dict[str, Ends]):
    ends = grid[way.kind]
    order = ends.order(way)
    outcome = measure(way.load(), order, Watch())
    assert outcome.receipt, outcome.error
    assert outcome.verified
    assert (outcome.receipt.bytes, outcome.leftover) == (order.bytes, None)
    assert outcome.seen.moved_bytes == order.bytes
    assert outcome.seen.streams_used == 1
    assert files_below(ends.destination, order.destination) == []


@pytest.mark.parametrize(
    "way", {way.scheme: way for way in WAYS}.values(), ids=lambda way: way.scheme
)
def test_a_source_file_is_put_whole_where_it_is_not_there(way: Way, grid: dict[str, Ends]):
    ends = grid[way.kind]
    order = ends.order(way)
    on_disk(ends.source, order.source).unlink()
    outcome = measure(way.load(), order, Watch())
    assert outcome.receipt, outcome.error
    assert outcome.verified
    assert on_disk(ends.source, order.source).stat().st_size == order.bytes
    assert files_below(ends.source, order.source) == []
    assert files_below(ends.destination, order.destination) == []


HELD_SECONDS = 8.0


@dataclass(frozen=True)
class Timed:
    """A transfer as Sonar has timed it, as it was seen on disk, and as the server logged it."""

    receipt: float
    moving: float | None
    seen: float
    logged: float | None


def timed(way: Way, ends: Ends) -> Timed:
    """Copy a file whose source is held for seconds in the middle of it."""
    order, watch = ends.order(way, LONG_BYTES), Watch()
    path = on_disk(ends.destination, order.destination)
    with Meanwhile(path, order.bytes, lambda: hold(ends.source, HELD_SECONDS)) as clock:
        receipt = way.load().move(order, watch)
        assert path.stat().st_size == order.bytes
        clock.join(1)
    assert remove(way.load().files, order) is None
    logged = None
    if isinstance(ends.source, GridFtpServer):
        logged = ends.source.transfers(str(on_disk(ends.source, order.source)))[-1].seconds
    return Timed(receipt.seconds, watch.seen.transfer_seconds, clock.seconds, logged)


def hold(server: StorageServer, seconds: float) -> None:
    server.freeze()
    time.sleep(seconds)
    server.thaw()


def in_time(way: Way, farm: Farm) -> Timed:
    """Return a transfer for which everybody's clock says the same; several tries are given."""
    ends, told = Ends(farm.start(way.kind), farm.start(way.kind)), list[Timed]()

    def check() -> None:
        told.append(timed(way, ends))
        assert told[-1].seen > HELD_SECONDS
        for clock in filter(None, (told[-1].seen, told[-1].logged)):
            assert told[-1].receipt == pytest.approx(clock, rel=WITHIN)

    sooner_or_later(check)
    return told[-1]


@pytest.fixture(scope="module")
def in_times(farm: Farm) -> Iterator[dict[Way, Future[Timed]]]:
    """Let all ways be timed at once: they wait for nearly all of their time."""
    with ThreadPoolExecutor(len(WAYS)) as pool:
        yield {way: pool.submit(in_time, way, farm) for way in WAYS}


@pytest.mark.long
@each_way
def test_its_rate_is_that_of_another_clock(way: Way, in_times: dict[Way, Future[Timed]]):
    one = in_times[way].result()
    assert bool(one.logged) == (way.scheme == "ftp")
    if way.scheme == "root":
        assert one.moving == pytest.approx(one.seen, rel=WITHIN)
