"""A real XRootD cluster that lets in who shows a token: files arrive, and a server may be ill.

Its manager has another host name than its data servers, which the endpoint declares.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from sonar.movers import measure as measure_module
from sonar.movers.base import End, Limits, Order, Where
from sonar.movers.content import adler32
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.measure import Outcome, measure
from sonar.movers.watch import Watch
from sonar.notation.data_hosts import data_hosts
from tests.needs import needs
from tests.storage.cluster import Member
from tests.storage.issuer import Issuer
from tests.storage.scitokens import TokenCluster, TokenServer
from tests.storage.xrootd import Authority, Server, make_room

SIZE_BYTES = 2_000_000
LARGE_BYTES = 300_000_000
PATIENT = Limits(cleaning=60)
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
            limits=PATIENT,
        )

    def left(self) -> list[Path]:
        """Return what is on any disk but the source files."""
        servers = [*self.cluster.members, self.single]
        paths = [path for server in servers for path in server.data.rglob("incoming/*")]
        return [path for path in paths if path.is_file()]

    def member(self, server: str) -> Member:
        """Return the data server of this host and port."""
        (found,) = (one for one in self.cluster.servers if f"127.0.0.1:{one.port}" == server)
        return found


@pytest.fixture(scope="module")
def world(authority: Authority) -> Iterator[World]:
    needs("xrootd", "cmsd", "openssl", "unshare", "mount")
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
    outcome = carried_out(order.__class__(**{**vars(order), "destination": stranger}))
    assert outcome.error.where == Where.DESTINATION
    assert world.left() == []
