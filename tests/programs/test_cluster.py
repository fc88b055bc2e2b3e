"""Programs and a real XRootD cluster: a manager that sends everybody on to its data servers.

Over TLS, too, where gfal2 has nothing to show to any server.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from sonar.movers.base import Limits, Order
from sonar.movers.measure import Outcome, measure
from sonar.movers.programs.xrootd import XrootdFiles
from sonar.movers.watch import Watch
from tests.programs.conftest import Farm
from tests.programs.ways import Ends, StorageServer, Way, files_below
from tests.storage.cluster import LOOKUP_SECONDS, Cluster
from tests.storage.xrootd import Authority

ROOT = (Way("xrootd", "root", "pull"), Way("gfal2", "root", "pull"))
TLS = (Way("gfal2", "https", "pull"), Way("gfal2", "https", "push"))
WAYS = (*ROOT, *TLS)
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
Tests = dict[Way, tuple[Order, Future[Outcome]]]


@pytest.fixture(scope="module")
def cluster(farm: Farm) -> Cluster:
    return farm.start_cluster()


@pytest.fixture(scope="module")
def single(grid: dict[str, Ends]) -> StorageServer:
    return grid["xrootd"].source


def carried_out(way: Way, order: Order) -> Outcome:
    """Carry an order out; by xrdcp as the second test, for which the first made directories."""
    mover = way.load()
    if way.mover == "xrootd":
        XrootdFiles().make_directories(order.destination, order)
    return measure(mover, order, Watch())


def order_for(way: Way, ends: Ends, authority: Authority) -> Order:
    # A manager on a busy machine looks for a new name for seconds more.
    patient = Limits(cleaning=60)
    order = ends.order(way, ca_bundle=str(authority.directory), limits=patient)
    if (way.scheme, way.mode) == ("https", "pull"):
        # XRootD before 5.7 makes none for a pull, and its manager makes it on one server only.
        base = order.destination.base_url.rpartition("/")[2]
        ends.destination.make_directory(f"{base}/incoming")
    return order


def all_at_once(farm: Farm, ends: Ends) -> Iterator[Tests]:
    """Let all ways be tested at once: nearly all of their time they wait for the manager."""
    orders = {way: order_for(way, ends, farm.authority) for way in WAYS}
    with ThreadPoolExecutor(len(WAYS)) as pool:
        yield {way: (order, pool.submit(carried_out, way, order)) for way, order in orders.items()}


@pytest.fixture(scope="module")
def to_cluster(farm: Farm, single: StorageServer, cluster: Cluster) -> Iterator[Tests]:
    yield from all_at_once(farm, Ends(single, cluster))


@pytest.fixture(scope="module")
def from_cluster(
    farm: Farm, single: StorageServer, cluster: Cluster, to_cluster: Tests
) -> Iterator[Tests]:
    """Begin beside those to the cluster: a program takes 2.5 s each time, whatever it does."""
    yield from all_at_once(farm, Ends(cluster, single))


@pytest.fixture(scope="module")
def within_cluster(farm: Farm, cluster: Cluster, from_cluster: Tests) -> Iterator[Tests]:
    yield from all_at_once(farm, Ends(cluster, cluster))


@pytest.mark.parametrize("way", ROOT, ids=lambda way: way.name)
def test_the_data_server_that_moved_a_file_is_named(way: Way, cluster: Cluster, to_cluster: Tests):
    _, future = to_cluster[way]
    servers = {f"127.0.0.1:{server.port}" for server in cluster.servers}
    assert future.result().seen.data_server in servers


@each_way
def test_a_file_arrives_at_a_cluster_and_nothing_is_left(
    way: Way, cluster: Cluster, to_cluster: Tests, from_cluster: Tests, within_cluster: Tests
):
    order, future = to_cluster[way]
    outcome = future.result()
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    # The manager took its time for the new name, and that is no part of the copy.
    assert outcome.elapsed_seconds - outcome.receipt.seconds > LOOKUP_SECONDS / 2
    for server in cluster.servers:
        assert files_below(server, order.destination) == []


@each_way
def test_a_file_arrives_from_a_cluster(way: Way, single: StorageServer, from_cluster: Tests):
    order, future = from_cluster[way]
    outcome = future.result()
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    assert files_below(single, order.destination) == []


@each_way
def test_a_file_is_copied_within_a_cluster(way: Way, cluster: Cluster, within_cluster: Tests):
    order, future = within_cluster[way]
    outcome = future.result()
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    for server in cluster.servers:
        assert files_below(server, order.destination) == []
