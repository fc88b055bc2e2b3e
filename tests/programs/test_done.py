"""Files that arrive: whole, verified and deleted; timed as another clock times them.

By the streams and buffers that are asked for; what the kernel tells of uploads is on record.
"""

import re
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from sonar.movers.base import MoverError
from sonar.movers.measure import measure, remove
from sonar.movers.watch import Watch
from tests.programs.conftest import Farm
from tests.programs.gridftp import GridFtpServer
from tests.programs.ways import WAYS, Ends, StorageServer, Way, files_below, on_disk
from tests.storage.meanwhile import Meanwhile
from tests.storage.throttle import Throttle
from tests.storage.xrootd import Server
from tests.waiting import sooner_or_later, wait_for

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
    with Meanwhile((path,), order.bytes, lambda: hold(ends.source, HELD_SECONDS)) as clock:
        receipt = way.load().move(order, watch)
        assert path.stat().st_size == order.bytes
        clock.join(60)
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
        if way.scheme == "root":
            assert told[-1].moving == pytest.approx(told[-1].seen, rel=WITHIN)

    sooner_or_later(check, MoverError)
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
    assert bool(one.moving) or way.scheme != "root"


GRIDFTP = next(way for way in WAYS if way.mover == "gridftp")
XROOTD = next(way for way in WAYS if way.mover == "xrootd")
# The source's log tells of each connection that joins that of who fetches.
JOINED = re.compile(r"#\d+ bound xrootd\.\d+:")
# As long as it moves, connections join: a machine at other work takes a while for fifteen.
SIZE_TO_JOIN = 100_000_000
SECONDS_TO_LOG = 60
KERNEL_TIMES = 2
"""Linux keeps as much again for itself, and says so."""


@pytest.mark.parametrize(("streams", "buffer"), [(1, None), (2, 65_536), (9, 1_048_576)])
def test_gridftp_uses_the_streams_and_the_buffer_that_it_is_asked_for(
    streams: int, buffer: int | None, grid: dict[str, Ends]
):
    ends = grid["gridftp"]
    order = ends.order(GRIDFTP, streams=streams, tcp_buffer_bytes=buffer)
    outcome = measure(GRIDFTP.load(), order, Watch())
    assert outcome.receipt, outcome.error
    assert outcome.seen.streams_used == streams
    # A kernel may give less, and no server says how much.
    assert outcome.seen.tcp_buffer_used_bytes is None
    for server, end in ((ends.source, order.source), (ends.destination, order.destination)):
        assert isinstance(server, GridFtpServer)
        (logged,) = server.transfers(str(on_disk(server, end)))
        assert int(logged.facts["STREAMS"]) == streams
        if buffer:
            assert int(logged.facts["BUFFER"]) == KERNEL_TIMES * buffer


@pytest.mark.parametrize("streams", [1, 2, 15])
def test_xrootd_opens_as_many_data_streams_as_it_is_asked_for(streams: int, grid: dict[str, Ends]):
    def check() -> None:
        assert joined_in_a_copy(streams, grid["xrootd"]) == streams

    # A copy may be over before the last one has joined.
    sooner_or_later(check)


def joined_in_a_copy(streams: int, ends: Ends) -> int:
    """Copy a file with so many streams asked for; return how many joined, as far as is logged."""
    assert isinstance(ends.source, Server)
    before = len(ends.source.log)
    order, watch = ends.order(XROOTD, SIZE_TO_JOIN, streams=streams), Watch()
    XROOTD.load().move(order, watch)
    assert remove(XROOTD.load().files, order) is None
    assert watch.seen.streams_used == (1 if streams == 1 else None)
    wait_for(lambda: len(JOINED.findall(ends.source.log[before:])) >= streams, SECONDS_TO_LOG)
    return len(JOINED.findall(ends.source.log[before:]))


OF_SCHEME = {way.scheme: way for way in WAYS}
SIZE_BYTES = 4_000_000


@pytest.fixture
def slow_root(grid: dict[str, Ends]) -> Iterator[Throttle]:
    """Return a way to the source by which an upload takes seconds: it is looked at."""
    road = Throttle(grid["xrootd"].source.port, 2e6)
    yield road
    road.close()


def test_the_connection_of_xrdcp_is_looked_at_while_it_runs(
    grid: dict[str, Ends], slow_root: Throttle
):
    ends, way = grid["xrootd"], OF_SCHEME["root"]
    order = ends.order(way, SIZE_BYTES)
    on_disk(ends.source, order.source).unlink()
    server, road = (url.partition("://")[2] for url in (ends.source.url, slow_root.url))
    turned = replace(
        order.source,
        url=order.source.url.replace(server, road),
        base_url=order.source.base_url.replace(server, road),
    )
    watch = Watch()
    way.load().files.put(replace(order, source=turned), watch)
    assert on_disk(ends.source, order.source).stat().st_size == SIZE_BYTES
    upload = watch.upload
    assert upload.connection
    assert (upload.connection.acknowledged_bytes or 0) > 500_000
    assert watch.seen.samples == []


def test_what_ftp_uploads_has_its_connection_on_record(grid: dict[str, Ends]):
    ends, way = grid["gridftp"], OF_SCHEME["ftp"]
    order = ends.order(way, SIZE_BYTES)
    on_disk(ends.source, order.source).unlink()
    watch = Watch()
    way.load().files.put(order, watch)
    assert on_disk(ends.source, order.source).stat().st_size == SIZE_BYTES
    upload = watch.upload
    assert upload.connection
    # A connection of its own, for the file and nothing else; the kernel counts its SYN and FIN.
    assert 0 <= (upload.connection.acknowledged_bytes or 0) - SIZE_BYTES <= 2
