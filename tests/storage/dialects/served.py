"""The servers as children of a test: started together, ended by their pids."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonar.movers.base import End, Where
from sonar.notation.data_hosts import data_hosts
from sonar.sandbox import processes
from tests.storage.dialects.base import JOURNAL, READY
from tests.storage.xrootd import Authority

HOSTS = {
    "eos-mgm": "localhost",
    "eos-fst": "127.0.0.2",
    "dcache-door": "127.0.0.3",
    "dcache-pool": "127.0.0.4",
    "storm": "127.0.0.5",
}
BYSTANDER = "127.0.0.11"
BESIDE = {"eos-mgm": "eos-fst", "dcache-door": "dcache-pool"}
DOORS = {"eos": "eos-mgm", "dcache": "dcache-door", "storm": "storm"}
NAMES = ("*.grid.example", "*.evil.example")
"""Of the authority's certificates, for tests that say to which address such names lead."""


@dataclass
class Dialects:
    """All servers, each a process with a room, and what they wrote down."""

    place: Path
    authority: Authority
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, role: str, **settings: Any) -> None:
        """Start one; ``wait`` waits for it."""
        room = self.room(role)
        room.mkdir()
        host = HOSTS.get(role, "")
        names = (HOSTS.get(role, BYSTANDER), *NAMES)
        self.authority.ca.issue_cert(*names).private_key_and_cert_chain_pem.write_to_path(
            str(room / "host.pem")
        )
        (room / "ca.pem").write_bytes(self.authority.bundle.read_bytes())
        storage = role.partition("-")[0]
        said = {"role": role, "room": str(room), "host": host, "files": str(self.files(storage))}
        said |= {"own": own_of(storage), "lent": lent_of(storage)}
        said |= {"beside": str(self.room(BESIDE[role]))} if role in BESIDE else {}
        (room / "settings.json").write_text(json.dumps(said | settings))
        command = [sys.executable, "-m", "tests.storage.dialects", str(room)]
        self.children[role] = processes.start(command, room / "log")

    def wait(self) -> None:
        for role, child in self.children.items():
            room = self.room(role)
            processes.wait_until((room / READY).is_file, child, role, room / "log")

    def close(self) -> None:
        processes.stop_together([*self.children.values()])

    def room(self, role: str) -> Path:
        return self.place / role

    def files(self, storage: str) -> Path:
        return self.place / f"files-{storage}"

    def url(self, role: str) -> str:
        return str(self.told(role)["url"])

    def server(self, role: str) -> str:
        """Return host and port of a server, as results have it."""
        return self.url(role).partition("://")[2]

    def told(self, role: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads((self.room(role) / READY).read_text())
        return said

    def journal(self, role: str) -> list[dict[str, Any]]:
        lines = (self.room(role) / JOURNAL).read_text().splitlines()
        return [json.loads(line) for line in lines]

    def requests(self, role: str, name: str, *methods: str) -> Iterator[dict[str, str]]:
        """Yield the headers of requests for a file; `:method` and `:target` are among them."""
        for said in self.journal(role):
            if name in said.get("target", "") and (not methods or said["method"] in methods):
                yield dict(said["headers"]) | {":method": said["method"], ":target": said["target"]}

    def copied(self, name: str) -> dict[str, float]:
        """Return what the active end of a copy says of its times."""
        said = [one for role in HOSTS for one in self.journal(role) if one.get("copied") == name]
        (only,) = said
        return only

    def end(self, where: Where, storage: str, base: str, name: str, **wishes: Any) -> End:
        url = f"{self.url(DOORS[storage])}/{base}"
        declared = wishes.pop("declared", self.data_servers(storage))
        tokens = {"token": own_of(storage), "lent": lent_of(storage)}
        tokens = tokens if base.startswith("guarded") else {}
        return End(
            where, f"{url}/{name}", url, data_hosts=data_hosts(declared), **(tokens | wishes)
        )

    def data_servers(self, storage: str) -> tuple[str, ...]:
        role = BESIDE.get(DOORS[storage])
        return (self.server(role),) if role else ()


def own_of(storage: str) -> str:
    return f"own-of-{storage}-0123456789"


def lent_of(storage: str) -> str:
    return f"lent-of-{storage}-0123456789"
