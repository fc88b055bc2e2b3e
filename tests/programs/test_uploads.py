"""Uploads of source files by other protocols: what the kernel tells of their connections."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sonar.movers.watch import Watch
from tests.programs.ways import WAYS, Ends, on_disk
from tests.storage.throttle import Throttle

OF_SCHEME = {way.scheme: way for way in WAYS}
SIZE_BYTES = 4_000_000


@pytest.fixture
def slow_root(grid: dict[str, Ends]) -> Iterator[Throttle]:
    """Return a way to the source by which an upload takes half a second: it is looked at."""
    road = Throttle(grid["xrootd"].source.port, 8e6)
    yield road
    road.close()


def test_the_connection_of_xrdcp_is_looked_at_while_it_runs(
    grid: dict[str, Ends], slow_root: Throttle
) -> None:
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
    assert upload
    assert upload.connection
    assert (upload.connection.acknowledged_bytes or 0) > 500_000
    assert watch.seen.samples == []


def test_what_ftp_uploads_has_its_connection_on_record(grid: dict[str, Ends]) -> None:
    ends, way = grid["gridftp"], OF_SCHEME["ftp"]
    order = ends.order(way, SIZE_BYTES)
    on_disk(ends.source, order.source).unlink()
    watch = Watch()
    way.load().files.put(order, watch)
    assert on_disk(ends.source, order.source).stat().st_size == SIZE_BYTES
    upload = watch.upload
    assert upload
    assert upload.connection
    # A connection of its own, for the file and nothing else; the kernel counts its SYN and FIN.
    assert 0 <= (upload.connection.acknowledged_bytes or 0) - SIZE_BYTES <= 2
