"""COPY to and from a real XRootD cluster: a manager that sends everybody on to its data servers."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count, islice

import pytest

from sonar.movers import measure as measure_module
from sonar.movers.base import End, Order, Where
from sonar.movers.content import adler32
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.http.webdav import WebDav
from sonar.movers.measure import Outcome, measure
from sonar.movers.watch import Watch
from sonar.notation.data_hosts import data_hosts
from tests.storage.cluster import LOOKUP_SECONDS, Cluster
from tests.storage.conftest import LIMITS, SIZE_BYTES, Pair
from tests.storage.xrootd import Server, give_to_server

MODES = ["pull", "push"]
MANY = 4
"""So many new files: the manager lets its servers take turns."""

each_mode = pytest.mark.parametrize("mode", MODES)
_numbers = count(1)


@dataclass(frozen=True)
class World:
    """A cluster, and a server of none, between which files are copied."""

    cluster: Cluster
    single: Server

    def orders(
        self, mode: str, *, to_cluster: bool = True, from_cluster: bool = False, **wishes: object
    ) -> Iterator[Order]:
        """Return orders between new bases, without end: nothing but these directories is there."""
        source = self.cluster if from_cluster or not to_cluster else self.single
        destination = self.cluster if to_cluster else self.single
        base = f"base-{next(_numbers)}"
        for server in {source, destination}:
            server.make_directory(base)
        for number in count(1):
            order = Order(
                source=below(base, Where.SOURCE, source, f"source/{SIZE_BYTES}"),
                destination=below(base, Where.DESTINATION, destination, f"incoming/{number}"),
                bytes=SIZE_BYTES,
                adler32=adler32(SIZE_BYTES),
                mode=mode,
                ca_bundle=str(self.single.authority.bundle),
                limits=LIMITS,
            )
            yield replace(order, **wishes)  # type: ignore[arg-type]

    def kept(self, end: End) -> list[bytes]:
        """Return what the data servers have of a file."""
        return [path.read_bytes() for path in self.cluster.on_disks(path_of(end))]


def below(base: str, where: Where, server: Server | Cluster, name: str) -> End:
    return End(where, f"{server.url}/{base}/{name}", f"{server.url}/{base}")


def path_of(end: End) -> str:
    return end.url.partition("://")[2].partition("/")[2]


@pytest.fixture(scope="module")
def world(plain: Pair, cluster: Cluster) -> World:
    return World(cluster, plain.source)


def without_its_source(world: World, order: Order) -> Order:
    """Put a source file where nobody may read it."""
    WebDav().put(order, Watch())
    (world.single.data / path_of(order.source)).chmod(0)
    return order


def over_another_file(world: World, order: Order) -> Order:
    """Put a file of another length where the order's is to go."""
    directory, _, name = path_of(order.destination).rpartition("/")
    path = world.cluster.make_directory(directory) / name
    path.write_bytes(b"another one")
    give_to_server(path)
    return order


def by_another_name(order: Order, *declared: str) -> Order:
    """Call a cluster by a host name that its data servers do not have; these it declares."""

    def renamed(end: End) -> End:
        names = (url.replace("127.0.0.1", "localhost") for url in (end.url, end.base_url))
        return End(end.where, *names, data_hosts=data_hosts(declared))

    return replace(order, source=renamed(order.source), destination=renamed(order.destination))


def scenarios(world: World, mode: str) -> dict[str, list[Order]]:
    """Return all orders that are carried out at once, by what they are for."""
    alone, over = world.orders(mode), world.orders(mode, overwrite=True)
    return {
        "to": list(islice(world.orders(mode), MANY)),
        "from": [next(world.orders(mode, to_cluster=False))],
        "overwriting": [next(over), over_another_file(world, next(over))],
        "unreadable": [without_its_source(world, next(alone))],
        "elsewhere": [by_another_name(next(world.orders(mode)))],
        "declared": [
            by_another_name(next(world.orders(mode, to_cluster=to_cluster)), "127.0.0.1")
            for to_cluster in (True, False)
        ],
        "within": [next(world.orders(mode, to_cluster=True, from_cluster=True))],
    }


Outcomes = dict[tuple[str, str], list[tuple[Order, Outcome]]]


@pytest.fixture(scope="module")
def outcomes(world: World) -> Outcomes:
    """Carry all orders out at once: nearly all of their time they wait for the manager."""
    mover, futures = HttpTpc(), dict[tuple[str, str], list[tuple[Order, Future[Outcome]]]]()
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(32) as pool:
        patch.setattr(measure_module, "LOOK_AGAIN_SECONDS", (0.05,))
        for mode in MODES:
            for name, orders in scenarios(world, mode).items():
                futures[name, mode] = [
                    (order, pool.submit(measure, mover, order, Watch())) for order in orders
                ]
    return {
        name: [(order, future.result()) for order, future in pairs]
        for name, pairs in futures.items()
    }


@each_mode
def test_the_data_server_that_moved_a_file_is_named(mode: str, world: World, outcomes: Outcomes):
    servers = {f"127.0.0.1:{server.port}" for server in world.cluster.servers}
    # A source that pushes says in its markers who takes the file: of a small one it has none.
    said = {"pull": servers, "push": {*servers, ""}}
    assert {outcome.seen.data_server for _, outcome in outcomes["to", mode]} <= said[mode]
    assert {outcome.seen.data_server for _, outcome in outcomes["from", mode]} <= servers


@each_mode
def test_declared_data_servers_on_other_hosts_are_written_to(
    mode: str, world: World, outcomes: Outcomes
):
    servers = {f"127.0.0.1:{server.port}" for server in world.cluster.servers}
    for order, outcome in outcomes["declared", mode]:
        assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
        assert {outcome.seen.data_server} <= servers | {""}
        assert world.kept(order.destination) == []


@each_mode
def test_a_file_is_copied_within_a_cluster(mode: str, world: World, outcomes: Outcomes):
    ((order, outcome),) = outcomes["within", mode]
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    assert world.kept(order.destination) == []


@each_mode
def test_files_arrive_at_a_cluster_and_nothing_is_left(mode: str, world: World, outcomes: Outcomes):
    for order, outcome in outcomes["to", mode]:
        assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
        assert world.kept(order.destination) == []


@each_mode
def test_a_file_is_put_at_a_cluster_and_copied_from_it(mode: str, world: World, outcomes: Outcomes):
    ((order, outcome),) = outcomes["from", mode]
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    assert [len(content) for content in world.kept(order.source)] == [SIZE_BYTES]


@each_mode
def test_the_time_in_which_a_manager_looks_for_a_new_name_is_in_no_rate(
    mode: str, outcomes: Outcomes
):
    for _, outcome in [*outcomes["to", mode], outcomes["overwriting", mode][0]]:
        assert outcome.receipt, outcome.error
        assert outcome.elapsed_seconds - outcome.receipt.seconds > LOOKUP_SECONDS / 2


@each_mode
def test_a_file_at_a_cluster_may_be_overwritten(mode: str, world: World, outcomes: Outcomes):
    order, outcome = outcomes["overwriting", mode][1]
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    assert world.kept(order.destination) == []


@each_mode
def test_a_copy_that_fails_leaves_nothing_at_a_cluster(mode: str, world: World, outcomes: Outcomes):
    ((order, outcome),) = outcomes["unreadable", mode]
    assert (outcome.error.where, outcome.leftover) == (Where.SOURCE, None)
    assert world.kept(order.destination) == []


@each_mode
def test_data_servers_on_other_hosts_are_not_written_to_and_the_error_says_so(
    mode: str, world: World, outcomes: Outcomes
):
    ((order, outcome),) = outcomes["elsewhere", mode]
    assert (outcome.error.where, outcome.error.permanent) == (Where.DESTINATION, True)
    assert "the server redirects to " in str(outcome.error)
    assert str(outcome.error).endswith(": redirect not followed")
    assert outcome.error.refused_server in {f"127.0.0.1:{s.port}" for s in world.cluster.servers}
    assert world.kept(order.destination) == []


def test_files_are_deleted_on_whichever_data_server_they_are(world: World):
    files, ordered = WebDav(), world.orders("pull", to_cluster=False)
    orders = [
        replace(order, source=replace(order.source, url=f"{order.source.url}.{number}"))
        for number, order in enumerate(islice(ordered, MANY))
    ]

    def put_and_delete(order: Order) -> tuple[int, int]:
        files.put(order, Watch())
        before = len(world.kept(order.source))
        files.delete(order.source, order)
        return before, len(world.kept(order.source))

    with ThreadPoolExecutor(MANY) as pool:
        assert set(pool.map(put_and_delete, orders)) == {(1, 0)}
