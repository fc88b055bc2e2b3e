"""Streams and buffers: what is asked for is what the servers use, and what cannot be is refused."""

import re

import pytest

from sonar.movers.measure import measure, remove
from sonar.movers.watch import Watch
from tests.programs.gridftp import GridFtpServer
from tests.programs.ways import WAYS, Ends, on_disk
from tests.storage.xrootd import Server
from tests.waiting import wait_for

GRIDFTP = next(way for way in WAYS if way.mover == "gridftp")
XROOTD = next(way for way in WAYS if way.mover == "xrootd")
# The source's log tells of each connection that joins that of who fetches.
JOINED = re.compile(r"#\d+ bound xrootd\.\d+:")
# As long as it moves, connections join: a machine at other work takes a while for fifteen.
SIZE_TO_JOIN = 100_000_000
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
    ends = grid["xrootd"]
    assert isinstance(ends.source, Server)
    order = ends.order(XROOTD, SIZE_TO_JOIN, streams=streams)
    before = len(ends.source.log)
    watch = Watch()
    XROOTD.load().move(order, watch)
    assert remove(XROOTD.load().files, order) is None
    assert watch.seen.streams_used == (1 if streams == 1 else None)

    def joined() -> int:
        assert isinstance(ends.source, Server)
        return len(JOINED.findall(ends.source.log[before:]))

    assert wait_for(lambda: joined() >= streams, 30)
    assert joined() == streams
