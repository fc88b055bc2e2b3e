"""Programs and a real XRootD cluster: a manager that sends everybody on to its data servers.

Over TLS, too. One cluster lets everybody in, and another one who shows a token.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sonar.movers.base import End, Order, Where
from sonar.movers.measure import Outcome, measure
from sonar.movers.programs.xrootd import XrootdFiles
from sonar.movers.watch import Watch
from sonar.notation.data_hosts import data_hosts
from tests.needs import needs, needs_mounts
from tests.programs.conftest import Farm
from tests.programs.ways import Ends, Way, files_below
from tests.storage.cluster import LOOKUP_SECONDS, Cluster
from tests.storage.issuer import Issuer
from tests.storage.scitokens import ANYBODY, TokenCluster, TokenServer
from tests.storage.xrootd import Authority, Server, make_room

ROOT = (Way("xrootd", "root", "pull"), Way("gfal2", "root", "pull"))
TLS = (Way("gfal2", "https", "pull"), Way("gfal2", "https", "push"))
WAYS = (*ROOT, *TLS)
SECRET = "kQ7ru2VxLw9Zt3Hn"
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
Tests = dict[Way, tuple[Order, Future[Outcome]]]


@dataclass(frozen=True)
class World:
    """A cluster and a server of none, and a token for both; none where everybody gets in."""

    authority: Authority
    cluster: Cluster
    single: Server
    token: str = ""

    def order(self, way: Way, ends: Ends) -> Order:
        order = ends.order(way, ca_bundle=str(self.authority.directory))
        if (way.scheme, way.mode) == ("https", "pull"):
            # XRootD before 5.7 makes none for a pull, and its manager makes it on one server only.
            base = order.destination.base_url.rpartition("/")[2]
            ends.destination.make_directory(f"{base}/incoming")
        return replace(
            order, source=self._known(order.source), destination=self._known(order.destination)
        )

    def _known(self, end: End) -> End:
        """Return an end whose credential goes along to its data servers."""
        hosts = data_hosts(("127.0.0.1",))
        return replace(end, token=self.token, token_goes_along=True, data_hosts=hosts)

    def left(self, order: Order) -> list[Path]:
        """Return what is on any disk but the source file."""
        servers = (*self.cluster.servers, self.single)
        return [path for server in servers for path in files_below(server, order.destination)]


@pytest.fixture(scope="module", params=["everybody", "tokens"])
def world(request: pytest.FixtureRequest, farm: Farm, grid: dict[str, Ends]) -> Iterator[World]:
    needs("cmsd", "xrdfs")
    if request.param == "everybody":
        single = grid["xrootd"].source
        assert isinstance(single, Server)
        yield World(farm.authority, farm.run(Cluster(farm.authority)), single)
        return
    needs_mounts()
    issuer = Issuer(farm.authority, SECRET).start()
    cluster, single = farm.run(TokenCluster(issuer)), farm.run(TokenServer(make_room(), issuer))
    token = issuer.token("storage.read:/ storage.modify:/", ANYBODY)
    yield World(farm.authority, cluster, single, token)
    issuer.stop()


def carried_out(way: Way, order: Order) -> Outcome:
    """Carry an order out; by xrdcp as the second test, for which the first made directories."""
    mover = way.load()
    if way.mover == "xrootd":
        XrootdFiles().make_directories(order.destination, order)
    return measure(mover, order, Watch())


def all_at_once(world: World, ends: Ends) -> Iterator[Tests]:
    """Let all ways be tested at once: nearly all of their time they wait for the manager."""
    orders = {way: world.order(way, ends) for way in WAYS}
    with ThreadPoolExecutor(len(WAYS)) as pool:
        yield {way: (order, pool.submit(carried_out, way, order)) for way, order in orders.items()}


@pytest.fixture(scope="module")
def to_cluster(world: World) -> Iterator[Tests]:
    yield from all_at_once(world, Ends(world.single, world.cluster))


@pytest.fixture(scope="module")
def from_cluster(world: World, to_cluster: Tests) -> Iterator[Tests]:
    """Begin beside those to the cluster: a program takes 2.5 s each time, whatever it does."""
    yield from all_at_once(world, Ends(world.cluster, world.single))


@pytest.fixture(scope="module")
def within_cluster(world: World, from_cluster: Tests) -> Iterator[Tests]:
    yield from all_at_once(world, Ends(world.cluster, world.cluster))


@pytest.mark.parametrize("way", ROOT, ids=lambda way: way.name)
def test_the_data_server_that_moved_a_file_is_named(way: Way, world: World, to_cluster: Tests):
    _, future = to_cluster[way]
    ports = {str(server.port) for server in world.cluster.servers}
    assert future.result().seen.data_server.rpartition(":")[2] in ports


@each_way
def test_a_file_arrives_at_a_cluster_and_nothing_is_left(
    way: Way, world: World, to_cluster: Tests, from_cluster: Tests, within_cluster: Tests
):
    order, future = to_cluster[way]
    outcome = future.result()
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    # The manager took its time for the new name, and that is no part of the copy.
    assert outcome.elapsed_seconds - outcome.receipt.seconds > LOOKUP_SECONDS / 2
    assert world.left(order) == []


@each_way
def test_a_file_arrives_from_a_cluster(way: Way, world: World, from_cluster: Tests):
    order, future = from_cluster[way]
    outcome = future.result()
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    assert world.left(order) == []


@each_way
def test_a_file_is_copied_within_a_cluster(way: Way, world: World, within_cluster: Tests):
    order, future = within_cluster[way]
    outcome = future.result()
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    assert world.left(order) == []


REFUSALS = {
    ("xrootd", "root"): "[FATAL] Redirect limit has been reached",
    ("gfal2", "root"): "[FATAL] Redirect limit has been reached",
    ("gfal2", "https"): "set “to_data_hosts” for the credential of the destination",
}
with_tokens = pytest.mark.parametrize("world", ["tokens"], indirect=True)


@pytest.fixture(scope="module")
def kept_back(world: World) -> Iterator[Tests]:
    """Order copies with a token that is for the manager alone."""
    orders = {way: world.order(way, Ends(world.single, world.cluster)) for way in WAYS}
    with ThreadPoolExecutor(len(WAYS)) as pool:
        futures = {}
        for way, order in orders.items():
            alone = replace(order.destination, token_goes_along=False)
            futures[way] = pool.submit(
                measure, way.load(), replace(order, destination=alone), Watch()
            )
        yield {way: (order, futures[way]) for way, order in orders.items()}


@with_tokens
@each_way
def test_a_token_that_does_not_go_along_is_not_taken_to_a_data_server(
    way: Way, world: World, kept_back: Tests
):
    order, future = kept_back[way]
    error = future.result().error
    assert error
    assert REFUSALS[way.mover, way.scheme] in str(error)
    assert world.left(order) == []


@with_tokens
@pytest.mark.parametrize("way", ROOT, ids=lambda way: way.name)
def test_nobody_gets_in_without_a_token(way: Way, world: World):
    order = replace(world, token="").order(way, Ends(world.cluster, world.single))
    error = measure(way.load(), order, Watch()).error
    assert error
    assert (error.where, error.permanent) == (Where.SOURCE, True)
    assert "Auth failed" in str(error)
