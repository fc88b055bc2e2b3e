"""Ways to copy a file with a program between two real servers, and orders for each."""

from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from sonar.movers import loading
from sonar.movers.base import End, Order, Where
from sonar.movers.catalogue import kept
from sonar.movers.content import CHUNK_BYTES, TestFile, adler32
from sonar.movers.mover import Mover
from tests.programs.gridftp import GridFtpServer
from tests.storage.cluster import Cluster
from tests.storage.conftest import LIMITS
from tests.storage.xrootd import Server, give_to_server

StorageServer = Server | GridFtpServer
SIZE_BYTES = 3_000_000

_numbers = count(1)


@dataclass(frozen=True)
class Way:
    """A mover, the protocol that both servers speak to it, and who does the work."""

    mover: str
    scheme: str
    mode: str

    @property
    def kind(self) -> str:
        """Return what serves this protocol: one XRootD speaks two."""
        return "gridftp" if self.scheme == "ftp" else "xrootd"

    @property
    def name(self) -> str:
        return f"{self.mover}-{self.scheme}-{self.mode}"

    def load(self) -> Mover:
        return loading.load(kept(self.mover))


WAYS = (
    Way("xrootd", "root", "pull"),
    Way("gfal2", "root", "pull"),
    Way("gfal2", "http", "pull"),
    Way("gfal2", "http", "push"),
    Way("gfal2", "ftp", "push"),
    Way("gridftp", "ftp", "push"),
)


@dataclass(frozen=True)
class Ends:
    """Two servers, and orders between directories of their own for each."""

    source: StorageServer | Cluster
    destination: StorageServer | Cluster

    def order(self, way: Way, size: int = SIZE_BYTES, **wishes: object) -> Order:
        """Return an order whose source file is there."""
        base = f"base-{next(_numbers)}"
        for server in (self.source, self.destination):
            server.make_directory(base)
        write_source(self.source, base, size)
        order = Order(
            source=end(Where.SOURCE, way, self.source, base, f"source/{size}"),
            destination=end(Where.DESTINATION, way, self.destination, base, "incoming/1"),
            bytes=size,
            adler32=adler32(size),
            mode=way.mode,
            limits=LIMITS,
        )
        return replace(order, **wishes)  # type: ignore[arg-type]


def end(where: Where, way: Way, server: StorageServer | Cluster, base: str, name: str) -> End:
    url = f"{way.scheme}://{server.url.partition('://')[2]}/{base}"
    return End(where, f"{url}/{name}", url)


def write_source(server: StorageServer | Cluster, base: str, size: int) -> None:
    """Put the test file on a server's disk, as an upload would."""
    path = server.make_directory(f"{base}/source") / str(size)
    content = TestFile(size)
    with path.open("wb") as file:
        while chunk := content.read(CHUNK_BYTES):
            file.write(chunk)
    give_to_server(path)


def on_disk(server: StorageServer, end: End) -> Path:
    """Return where a server keeps a file."""
    path = "/base-" + end.url.partition("/base-")[2]
    return server.data / path.strip("/")


def files_below(server: StorageServer, end: End) -> list[Path]:
    """Return what lies below the base of an end, its source files not counted."""
    base = on_disk(server, replace(end, url=end.base_url))
    found = [path for path in base.rglob("*") if path.is_file()]
    return [path for path in found if path.parent.name != "source" or "." in path.name]
