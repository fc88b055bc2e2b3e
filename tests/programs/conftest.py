"""Real servers for programs that move files: two XRootD servers and two of GridFTP."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol, Self, TypeVar

import pytest

from sonar.movers import measure as measure_module
from sonar.movers.programs import xrootd
from tests.needs import needs
from tests.programs.gridftp import GridFtpServer
from tests.programs.small_disk import SmallGridFtp, SmallXrootd
from tests.programs.ways import Ends, StorageServer
from tests.storage.conftest import LIMITS
from tests.storage.xrootd import Authority, Server, make_room

PROGRAMS = (
    *("xrootd", "xrdcp", "xrdfs", "gfal-copy", "globus-url-copy", "globus-gridftp-server"),
    *("openssl", "setpriv", "unshare"),
)


class Runs(Protocol):
    """A server, or some that belong together."""

    def start(self) -> Self: ...
    def close(self) -> None: ...


Started = TypeVar("Started", bound=Runs)


class Farm:
    """Starts servers; all are closed with it."""

    def __init__(self) -> None:
        self._closing = ExitStack()
        room = make_room()
        self._closing.callback(shutil.rmtree, room, ignore_errors=True)
        self.authority = Authority(room)

    def start(self, kind: str, *, small: bool = False) -> StorageServer:
        """Start a server of this kind, on a small disk if wanted."""
        return self.run(self._small(kind) if small else self._usual(kind))

    def run(self, server: Started) -> Started:
        """Start a server, or some of them, and close it in the end."""
        self._closing.callback(server.close)
        return server.start()

    def _usual(self, kind: str) -> StorageServer:
        return GridFtpServer() if kind == "gridftp" else Server(make_room(), self.authority)

    def _small(self, kind: str) -> StorageServer:
        return SmallGridFtp() if kind == "gridftp" else SmallXrootd(self.authority)

    def close(self) -> None:
        self._closing.close()


@pytest.fixture(scope="session")
def farm() -> Iterator[Farm]:
    needs(*PROGRAMS)
    made = Farm()
    with pytest.MonkeyPatch.context() as patch:
        # Of what servers start: XRootD looks up the name of its machine, and waits 5 s for it.
        patch.setenv("RES_OPTIONS", "timeout:1 attempts:5")
        yield made
    made.close()


@pytest.fixture(scope="session")
def grid(farm: Farm) -> dict[str, Ends]:
    """Return two servers of each kind, which no test hurts."""
    return {kind: Ends(farm.start(kind), farm.start(kind)) for kind in ("xrootd", "gridftp")}


@pytest.fixture(scope="session", autouse=True)
def _brief_looks() -> Iterator[None]:
    """Do not wait long after a failure: what ended a program has ended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure_module, "LOOK_AGAIN_SECONDS", (0.3,))
        yield


@pytest.fixture(scope="session", autouse=True)
def _patient_clients() -> Iterator[None]:
    """Let those of XRootD wait longer than 5 s to be let in by a server on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        for variables in (xrootd.VARIABLES, xrootd.LOGGED):
            patch.setitem(variables, "XRD_CONNECTIONWINDOW", f"{LIMITS.connect:g}")
        yield
