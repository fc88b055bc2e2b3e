"""The links of the lab as they stand: pairs of XRootD servers, and the ways between them.

And the servers as Sonar's registry has them.
"""

import shutil
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonar.movers.content import TestFile
from tests.lab.disks import PREFIX, Disk
from tests.lab.enclosure import Enclosure
from tests.lab.scenarios import HEALTHY, NOTHING, SIZES, Scenario, Way
from tests.lab.wires import Bridge, Host, Wires
from tests.storage.xrootd import Authority, Server, give_to_server

TIMEOUT_SECONDS = 120
EVERY = "5m"


class Storage(Server):
    """A storage server in a network space of its own, on a disk of its own if it has one."""

    def __init__(
        self,
        room: Path,
        enclosure: Enclosure,
        authority: Authority,
        place: Host,
        pace: float | None,
    ) -> None:
        """Make its room; it reads and writes so many bytes per second, None: as it can."""
        room.mkdir(mode=0o755)
        give_to_server(room)
        super().__init__(room, authority, host=place.address)
        self._enclosure, self.place = enclosure, place
        self.disk = Disk(enclosure, self.data, pace) if pace else None
        if self.disk:
            give_to_server(self.disk.inside)
            self.data = self.disk.inside

    @property
    def name(self) -> str:
        return self.place.space

    def _command(self) -> list[str]:
        group = self.disk.group.inside if self.disk else ""
        return self._enclosure.inside(*super()._command(), space=self.place.space, group=group)

    def close(self) -> None:
        super().close()
        if self.disk:
            self.disk.close()


@dataclass(frozen=True)
class Link:
    """Two servers, and the way between them."""

    source: Storage
    destination: Storage

    def hold(self, path: str, size_bytes: int) -> None:
        """Let the source have a test file, as if earlier tests had left it there."""
        directory, _, name = f"base/{path}".rpartition("/")
        file = self.source.make_directory(directory) / name
        if file.exists():  # another test may be reading it
            return
        content = TestFile(size_bytes)
        with file.open("wb") as open_file:
            open_file.writelines(iter(content.read, b""))
        give_to_server(file)

    def forget(self) -> None:
        """Let the source read its files from its disk again."""
        if self.source.disk:
            self.source.disk.forget()


class Lab:
    """The links of some scenarios, all at once; whatever happens, nothing of them stays.

    Each server of a scenario that is slow has a healthy partner, too, which is of the scenario
    without a fault: only so can anyone tell whether a server or the way to it is slow.
    """

    def __init__(self, scenarios: Iterable[Scenario]) -> None:
        """Build them; raise RefusedError where this machine does not allow that."""
        self.enclosure = Enclosure()
        self._parts = ExitStack()
        self._room = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._room.chmod(0o755)  # who the servers run as goes through it
        self.scenarios = {scenario.name: scenario for scenario in scenarios}
        self.links: dict[str, Link] = {}
        """By the names of scenarios."""
        self.partners: dict[str, list[Link]] = {}
        """The links of their servers with healthy partners, from the source and to the other."""
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        self._authority = Authority(self._room)
        self._bridge = Bridge(self.enclosure)
        self._wires = Wires(self.enclosure, self._room)
        self._parts.callback(self._wires.close)
        for name, scenario in self.scenarios.items():
            source = self._serve(scenario.source, scenario.source_disk)
            destination = self._serve(scenario.destination, scenario.destination_disk)
            self.links[name] = self._join(scenario, scenario.way, source, destination)
        healthy = self.links.get(NOTHING.name)
        for name, link in self.links.items():
            if healthy and link is not healthy:
                scenario = self.scenarios[name]
                self.partners[name] = [
                    self._join(NOTHING, HEALTHY, link.source, healthy.destination),
                    self._join(scenario, HEALTHY, healthy.source, link.destination),
                ]

    def _serve(self, name: str, pace: float | None) -> Storage:
        host = self._bridge.join(name)
        server = Storage(self._room / name, self.enclosure, self._authority, host, pace)
        self._parts.callback(server.close)
        server.make_directory("base")
        server.start()
        return server

    def _join(self, scenario: Scenario, way: Way, source: Storage, destination: Storage) -> Link:
        """Lay a way to the destination of a scenario."""
        self._wires.lay(way, source.place, destination.place, scenario.window_bytes)
        return Link(source, destination)

    def close(self) -> None:
        """End it all; may be called again."""
        self.enclosure.close()
        self._parts.close()
        shutil.rmtree(self._room, ignore_errors=True)


def registry(lab: Lab) -> dict[str, Any]:
    """Return what a registry file of a lab says: each server at a site of its own."""
    servers = {
        server.name: server
        for link in lab.links.values()
        for server in (link.source, link.destination)
    }
    return {
        "size_classes": size_classes(),
        "sites": [{"name": name, "tier": 2} for name in servers],
        "endpoints": [
            {"name": name, "site": name, "base_url": f"{server.url}/base"}
            for name, server in servers.items()
        ],
        "meshes": [mesh(name, link) for name, link in lab.links.items()]
        + [
            mesh(f"{name}-{way}", link)
            for name, links in lab.partners.items()
            for way, link in zip(("FROM", "TO"), links, strict=True)
        ],
    }


def mesh(name: str, link: Link) -> dict[str, Any]:
    return {
        "name": name,
        "sources": [link.source.name],
        "destinations": [link.destination.name],
        "every": dict.fromkeys(SIZES, EVERY),
    }


def size_classes() -> list[dict[str, Any]]:
    bounds = [0, *(size // 2 for size in list(SIZES.values())[1:])]
    return [
        {
            "name": name,
            "from_bytes": bound,
            "test_bytes": size,
            "timeout_seconds": TIMEOUT_SECONDS,
        }
        for (name, size), bound in zip(SIZES.items(), bounds, strict=True)
    ]
