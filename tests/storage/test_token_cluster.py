"""A real XRootD cluster that lets in who shows a token: files arrive, and a server may be ill.

Its manager has another host name than its data servers, which the endpoint declares.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from matrix.answers.diagnosis.rules import slow_hosts
from sonar.movers import measure as measure_module
from sonar.movers.base import End, Order, Where
from sonar.movers.content import adler32
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.http.webdav import WebDav
from sonar.movers.measure import Outcome, measure, remove
from sonar.movers.watch import Watch
from sonar.notation.data_hosts import data_hosts
from sonar.notation.units import MB
from tests.needs import needs, needs_mounts
from tests.storage.cluster import LOOKUP_SECONDS
from tests.storage.conftest import LIMITS
from tests.storage.issuer import Issuer
from tests.storage.meanwhile import Meanwhile
from tests.storage.scitokens import TokenCluster, TokenServer
from tests.storage.throttle import Throttle
from tests.storage.xrootd import Authority, Server, make_room
from tests.waiting import sooner_or_later, wait_for

pytestmark = pytest.mark.long
SIZE_BYTES = 2_000_000
MEDIUM_BYTES, LARGE_BYTES = 20_000_000, 300_000_000
FEWEST_TESTS, AT_ONCE, MOST_ROUNDS = 4, 4, 10
PACE, COPIES = 2_000_000, 2
HELD_BYTES, HELD_SECONDS = 60_000_000, 4.0
WITHIN = 0.03
SECRET = "Jf7uQm2Xs9Lc4Vz8"
WAYS = [
    (mode, source, destination)
    for mode in ("pull", "push")
    for source, destination in (("cluster", "single"), ("single", "cluster"), ("cluster",) * 2)
]
_numbers = count(1)


@dataclass(frozen=True)
class World:
    """A cluster and a single server that believe one issuer."""

    issuer: Issuer
    cluster: TokenCluster
    single: TokenServer

    def end(self, where: Where, name: str) -> End:
        """Return a file at one of the two, with a token to write and one to lend."""
        server: Server | TokenCluster = self.single if name == "single" else self.cluster
        base, number = f"{server.url}/base", next(_numbers)
        path = f"source/{number}" if where == Where.SOURCE else f"incoming/{number}"
        own, lent = "storage.read:/ storage.modify:/", "storage.read:/ storage.modify:/"
        return End(
            where,
            f"{base}/{path}",
            base,
            self.issuer.token(own, server.url),
            lent=self.issuer.token(lent, server.url),
            data_hosts=data_hosts(("127.0.0.1",)) if name == "cluster" else (),
        )

    def order(self, mode: str, source: str, destination: str, size: int = SIZE_BYTES) -> Order:
        return Order(
            source=self.end(Where.SOURCE, source),
            destination=self.end(Where.DESTINATION, destination),
            bytes=size,
            adler32=adler32(size),
            mode=mode,
            ca_bundle=str(self.issuer.authority.bundle),
            limits=LIMITS,
        )

    def left(self) -> list[Path]:
        """Return what is on any disk but the source files."""
        servers = [*self.cluster.members, self.single]
        paths = [path for server in servers for path in server.data.rglob("incoming/*")]
        return [path for path in paths if path.is_file()]


@pytest.fixture(scope="module")
def world(authority: Authority) -> Iterator[World]:
    needs("xrootd", "cmsd", "openssl")
    needs_mounts()
    issuer = Issuer(authority, SECRET).start()
    cluster = TokenCluster(issuer)
    single = TokenServer(make_room(), issuer)
    try:
        cluster.start().make_directory("base")
        single.start().make_directory("base")
        yield World(issuer, cluster, single)
    finally:
        cluster.close()
        single.close()
        issuer.stop()


def carried_out(order: Order) -> Outcome:
    return measure(HttpTpc(), order, Watch())


@pytest.fixture(scope="module")
def outcomes(world: World) -> Iterator[dict[tuple[str, str, str], Outcome]]:
    """Carry all orders out at once: nearly all of their time they wait for the manager."""
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(WAYS)) as pool:
        patch.setattr(measure_module, "LOOK_AGAIN_SECONDS", (0.05,))
        futures = {way: pool.submit(carried_out, world.order(*way)) for way in WAYS}
        yield {way: future.result() for way, future in futures.items()}


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_a_file_goes_to_and_from_a_cluster_that_wants_tokens(
    way: tuple[str, str, str], world: World, outcomes: dict[tuple[str, str, str], Outcome]
):
    outcome = outcomes[way]
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    servers = {f"127.0.0.1:{server.port}" for server in world.cluster.servers}
    assert {outcome.seen.data_server} <= servers | {"", f"127.0.0.1:{world.single.port}"}
    assert world.left() == []


def test_nobody_gets_in_without_a_token(world: World):
    order = world.order("pull", "single", "cluster")
    stranger = End(
        Where.DESTINATION,
        order.destination.url,
        order.destination.base_url,
        data_hosts=order.destination.data_hosts,
    )
    outcome = carried_out(replace(order, destination=stranger))
    assert outcome.error.where == Where.DESTINATION
    assert world.left() == []


@pytest.fixture(scope="module")
def paced(world: World) -> Iterator[dict[str, list[Future[float]]]]:
    """Let all copies be on their roads at once, by mode: each has a pace of its own.

    What pulls from the single server, or pushes to it, has to go by that road.
    """
    road = Throttle(world.single.port, PACE)
    with ThreadPoolExecutor(2 * COPIES) as pool:
        yield {
            mode: [pool.submit(seconds_along, road, world, mode) for _ in range(COPIES)]
            for mode in ("pull", "push")
        }
    road.close()


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_a_rate_is_that_of_another_clock(mode: str, paced: dict[str, list[Future[float]]]):
    """Into a cluster by pull, out of it by push: what the manager takes to answer is in no rate.

    On a busy machine some of a few copies begin late.
    """
    fastest = min(one.result() for one in paced[mode])
    assert 4 * (1 - WITHIN) < fastest < 4 + LOOKUP_SECONDS / 2


def seconds_along(road: Throttle, world: World, mode: str) -> float:
    """Return how long a copy took that Sonar measured, of a file that takes 4 s on this road."""
    way = ("single", "cluster") if mode == "pull" else ("cluster", "single")
    order = world.order(mode, *way, 4 * PACE)
    WebDav().put(order, Watch())
    old, new = f":{world.single.port}", road.url.removeprefix("http://127.0.0.1")

    def along(end: End) -> End:
        return replace(end, url=end.url.replace(old, new), base_url=end.base_url.replace(old, new))

    outcome = carried_out(
        replace(order, source=along(order.source), destination=along(order.destination))
    )
    assert outcome.error is None
    return outcome.receipt.seconds


@pytest.mark.parametrize(
    ("mode", "source", "destination"),
    [("push", "single", "cluster"), ("pull", "cluster", "single")],
)
def test_a_rate_is_that_of_the_disks(mode: str, source: str, destination: str, world: World):
    """Here the active end goes to the manager itself, and is held for seconds midway."""
    sooner_or_later(lambda: assert_that_disks_agree(world, mode, source, destination))
    assert world.left() == []


def assert_that_disks_agree(world: World, mode: str, source: str, destination: str) -> None:
    order = world.order(mode, source, destination, HELD_BYTES)
    WebDav().put(order, Watch())
    path = order.destination.url.partition("/base/")[2]
    paths = [server.data / "base" / path for server in (*world.cluster.servers, world.single)]

    def hold() -> None:
        world.single.freeze()
        time.sleep(HELD_SECONDS)
        world.single.thaw()

    # Deleted only then: the clock has to see the whole file.
    with Meanwhile(paths, order.bytes, hold) as clock:
        receipt = HttpTpc().move(order, Watch())
        clock.join(60)
    assert remove(HttpTpc().files, order) is None
    assert clock.seconds > HELD_SECONDS
    assert receipt.seconds == pytest.approx(clock.seconds, abs=LOOKUP_SECONDS / 2)


@contextmanager
def slowed(server: Server) -> Iterator[None]:
    """Let a server do something for a tenth of the time."""
    over = threading.Event()

    def turns() -> None:
        while not over.wait(0.01):
            server.freeze()
            over.wait(0.09)
            server.thaw()

    thread = threading.Thread(target=turns)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def by_server(world: World) -> dict[str, list[float]]:
    """Pull files, some at once, while one data server is slow; return MB/s by server."""
    rates: dict[str, list[float]] = {}
    with slowed(world.cluster.servers[0]), ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(MOST_ROUNDS):
            if len(rates) == 2 and min(map(len, rates.values())) >= FEWEST_TESTS:
                break
            orders = [
                world.order("pull", "single", "cluster", MEDIUM_BYTES) for _ in range(AT_ONCE)
            ]
            for outcome in pool.map(carried_out, orders):
                assert outcome.error is None
                rate = MEDIUM_BYTES / outcome.receipt.seconds / MB
                rates.setdefault(outcome.seen.data_server, []).append(rate)
    return rates


def test_the_diagnosis_names_the_data_server_that_is_slow(
    world: World, by_server: dict[str, list[float]]
):
    slow = f"127.0.0.1:{world.cluster.servers[0].port}"
    assert slow_hosts({host: np.array(rates) for host, rates in by_server.items()}) == [slow]


def test_a_data_server_that_dies_midway_fails_the_test_and_its_file_is_deleted_later(world: World):
    """The manager cannot delete what is on a server that is away: it stays to be deleted."""
    order = replace(
        world.order("pull", "single", "cluster", LARGE_BYTES), limits=replace(LIMITS, cleaning=4)
    )
    WebDav().put(order, Watch())
    with ThreadPoolExecutor(1) as pool, slowed(world.single):
        future = pool.submit(carried_out, order)
        assert wait_for(lambda: any(path.stat().st_size > MB for path in world.left()), 120)
        (part,) = world.left()
        (victim,) = (one for one in world.cluster.servers if part.is_relative_to(one.data))
        victim.kill()
        outcome = future.result()
    assert outcome.error.where in {Where.DESTINATION, Where.TRANSFER}
    assert outcome.leftover
    assert world.left() == [part]
    victim.start()
    assert wait_for(lambda: remove(HttpTpc().files, order) is None, 120)
    assert world.left() == []
