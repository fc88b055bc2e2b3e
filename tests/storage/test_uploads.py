"""Uploads of source files to real XRootD servers: what the worker's kernel tells of them."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from sonar.movers.base import Where
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.measure import measure
from sonar.movers.tcp_info import TcpConnection
from sonar.movers.uploads import WatchedFile
from sonar.movers.watch import Watch
from tests.storage.conftest import Pair
from tests.storage.throttle import Throttle
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("_brief_looks")


@pytest.mark.parametrize("world", ["plain", "guarded"])
def test_the_test_that_uploads_the_source_file_has_its_connection_on_record(world: str, request):
    pair: Pair = request.getfixturevalue(world)
    order = pair.order(bytes=3_000_017)
    outcome = measure(HttpTpc(), order, Watch())
    assert outcome.error is None
    upload, prepared = outcome.upload, outcome.prepare_seconds
    assert prepared
    assert 0 < upload.seconds < prepared
    connection = upload.connection
    assert connection
    # With the header of its request; over TLS each record has some bytes more.
    assert 0 < (connection.acknowledged_bytes or 0) - order.bytes < 100_000
    assert 0 < connection.rtt_ms < 1000
    again = measure(HttpTpc(), pair.order(bytes=order.bytes), Watch())
    assert (again.error, again.upload) == (None, None)


def test_an_upload_that_breaks_off_is_on_record_as_far_as_it_came(
    plain: Pair, slow_road: Callable[..., Throttle]
):
    road = slow_road(plain.source, 4e6)
    order = plain.order(bytes=16_000_017)
    source = replace(
        order.source,
        url=order.source.url.replace(plain.source.url, road.url),
        base_url=f"{road.url}/base",
    )

    def break_off() -> None:
        wait_for(lambda: max(road.moved.values(), default=0) > 500_000, 120, pause=0.005)
        road.close()

    breaking = threading.Thread(target=break_off)
    breaking.start()
    outcome = measure(HttpTpc(), replace(order, source=source), Watch())
    breaking.join()
    assert outcome.error.where is Where.SOURCE
    upload = outcome.upload
    assert upload.connection
    assert 500_000 < (upload.connection.acknowledged_bytes or 0) < order.bytes


def test_an_upload_of_which_no_byte_was_sent_is_on_no_record():
    watch = Watch()
    content = WatchedFile(100, watch)
    content.sent_by(TcpConnection(9.5))
    assert watch.upload is None
    content.read(1)
    content.sent_by(TcpConnection(9.5))
    assert watch.upload
