"""Real storage servers for these tests: two plain ones, two with TLS and macaroons."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from sonar.movers import measure as measure_module
from sonar.movers.base import End, Limits, Order, Where
from sonar.movers.content import adler32
from sonar.sandbox import embedded
from tests import clusters
from tests.needs import needs
from tests.storage.cluster import Cluster
from tests.storage.live import Sonar
from tests.storage.throttle import Throttle
from tests.storage.xrootd import Authority, Checksums, Server, make_room, usual_checksums

SIZE_BYTES = 2_000_000
LIMITS = Limits(connect=20, answer=30, stall=60, total=120, checksum=60, cleaning=60)
"""Patient with a busy machine: who shows that one of them runs out makes that one short."""

_numbers = count(1)


@dataclass(frozen=True)
class Pair:
    """Two servers, what proves who we are to them, and orders between them."""

    source: Server
    destination: Server
    source_token: str = ""
    destination_token: str = ""

    def order(self, **wishes: object) -> Order:
        """Return an order with a destination name of its own."""
        size = int(str(wishes.get("bytes", SIZE_BYTES)))
        source = end(Where.SOURCE, self.source.url, f"source/{size}", self.source_token)
        name = f"incoming/{next(_numbers)}"
        destination = end(Where.DESTINATION, self.destination.url, name, self.destination_token)
        fields: dict[str, object] = {
            "source": source,
            "destination": destination,
            "bytes": size,
            "adler32": adler32(size),
            "ca_bundle": str(self.source.authority.bundle),
            "limits": LIMITS,
        }
        return Order(**(fields | wishes))  # type: ignore[arg-type]

    def left_behind(self) -> list[Path]:
        """Return the files on the destination's disk that a transfer left."""
        return [path for path in self.destination.data.rglob("incoming/*") if path.is_file()]


def end(where: Where, server: str, name: str, token: str = "") -> End:
    return End(where, f"{server}/base/{name}", f"{server}/base", token, lent=token)


@pytest.fixture(scope="session")
def authority() -> Iterator[Authority]:
    needs("xrootd", "openssl")
    room = make_room()
    yield Authority(room)
    shutil.rmtree(room, ignore_errors=True)


def start_pair(
    authority: Authority, *, guarded: bool = False, destination: Checksums = usual_checksums
) -> Pair:
    """Start two servers; ``destination`` says how the second one works out checksums."""
    servers = [
        Server(make_room(), authority, guarded=guarded, checksums=checksums).start()
        for checksums in (usual_checksums, destination)
    ]
    for server in servers:
        server.make_directory("base")
    tokens = [server.macaroon() for server in servers] if guarded else ["", ""]
    return Pair(*servers, *tokens)


def close_pair(pair: Pair) -> None:
    pair.source.close()
    pair.destination.close()


def until_the_end(pair: Pair) -> Iterator[Pair]:
    yield pair
    close_pair(pair)


@pytest.fixture(scope="session")
def plain(authority: Authority) -> Iterator[Pair]:
    """Return two servers that speak plain http and let everyone do everything."""
    yield from until_the_end(start_pair(authority))


@pytest.fixture(scope="session")
def guarded(authority: Authority) -> Iterator[Pair]:
    """Return two servers that speak https and want a macaroon."""
    yield from until_the_end(start_pair(authority, guarded=True))


@pytest.fixture(scope="session")
def cluster(authority: Authority) -> Iterator[Cluster]:
    """Return a manager with two data servers, which let everyone do everything."""
    needs("cmsd", "xrdfs")
    made = Cluster(authority)
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture
def mortal(authority: Authority) -> Iterator[Pair]:
    """Return two servers of this test's own, to be killed or frozen."""
    pair = start_pair(authority)
    yield pair
    close_pair(pair)


@pytest.fixture
def slow_road() -> Iterator[Callable[..., Throttle]]:
    """Return what makes a slow way to a server."""
    roads: list[Throttle] = []

    def make(server: Server, bytes_per_second: float = 4e6) -> Throttle:
        roads.append(Throttle(server.port, bytes_per_second))
        return roads[-1]

    yield make
    for road in roads:
        road.close()


@pytest.fixture
def _brief_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for a server that has given its verdict: nothing comes after it."""
    monkeypatch.setattr(measure_module, "LOOK_AGAIN_SECONDS", (0.05,))


@pytest.fixture(scope="module")
def sonar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sonar]:
    """Return a whole Sonar that has a web process, a database and a Redis."""
    place = tmp_path_factory.mktemp("sonar")
    place.chmod(0o755)
    with embedded.socket_directory() as sockets:
        made = Sonar(place, sockets)
        try:
            made.start()
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module")
def databases(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[clusters.Cluster]:
    """A PostgreSQL apart, with the tables of Sonar in one of its databases."""
    with clusters.cluster(tmp_path_factory, django_db_blocker) as made:
        yield made
