"""A real XRootD cluster for tests: a manager, which leads clients on, and two data servers.

It is ready in about 3 s. The manager waits 1 s instead of the usual 5 for what its data servers say
of a name that is new to it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.ports import free_port
from tests.storage.xrootd import (
    START_SECONDS,
    START_TRIES,
    Authority,
    Server,
    make_room,
    takes_connections,
)
from tests.waiting import wait_for

LOOKUP_SECONDS = 1
READY_SECONDS = 60.0
ASK_SECONDS = 10.0
"""A manager without servers keeps who asks waiting; asked again it may have them."""

MEMBER_CONFIG = """
all.manager 127.0.0.1:{meeting}
http.desthttps yes
"""
CMSD_CONFIG = """
all.role {role}
all.export /
all.adminpath {room}/admin
all.pidpath {room}/run
oss.localroot {room}/data
all.manager 127.0.0.1:{meeting}
xrd.port {port}
xrd.network nodnr norpipa
cms.delay startup 1 lookup {lookup} qdl 2 suspend 1 servers 1
cms.space min 1m 2m
"""


class Member(Server):
    """One machine of a cluster: an xrootd, and the cmsd by which it finds the others."""

    def __init__(self, room: Path, authority: Authority, role: str, meeting: int) -> None:
        self.role, self.meeting = role, meeting
        self.cmsd: subprocess.Popen[bytes] | None = None
        super().__init__(room, authority)
        self.instance = f"{role}-{self.port}"
        port = meeting if role == "manager" else free_port()
        text = CMSD_CONFIG.format(
            role=role, room=room, meeting=meeting, port=port, lookup=LOOKUP_SECONDS
        )
        (room / "cmsd.cfg").write_text(text)

    def _config(self, checksums: str) -> str:
        alone = super()._config(checksums).replace("all.role server", f"all.role {self.role}")
        return alone + MEMBER_CONFIG.format(meeting=self.meeting)

    @property
    def alive(self) -> bool:
        return super().alive and self._cmsd_runs()

    def _launch(self) -> None:
        """Start its cmsd first: an xrootd that does not find it tries again 10 s later."""
        self.cmsd = self._run(self._program("cmsd", "cmsd.cfg", "cmsd"))
        wait_for(lambda: self._cmsd_listens() or not self._cmsd_runs(), START_SECONDS, pause=0.02)
        super()._launch()

    def _cmsd_listens(self) -> bool:
        if self.role == "manager":
            return takes_connections(self.host, self.meeting)
        return (self.room / f"admin/{self.instance}/.olb/olbd.admin").exists()

    def _cmsd_runs(self) -> bool:
        return self.cmsd is not None and self.cmsd.poll() is None

    def kill(self) -> None:
        super().kill()
        if self.cmsd:
            self.cmsd.kill()
            self.cmsd.wait()


class Cluster:
    """A manager with two data servers, which clients take for one server."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.members: list[Member] = []

    @property
    def manager(self) -> Member:
        return self.members[0]

    @property
    def servers(self) -> list[Member]:
        return self.members[1:]

    @property
    def url(self) -> str:
        return self.manager.url

    def start(self) -> Cluster:
        """Start all of it until the manager knows both servers; again on other ports if not.

        Somebody may take a port before it is used, and of some hundred servers one is not
        understood by the manager's cmsd, and tries again 10 s later.
        """
        for _ in range(START_TRIES):
            if self._has_begun() and wait_for(self._is_ready, READY_SECONDS):
                return self
            self.close()
        raise RuntimeError(f"no cluster in {START_TRIES} tries")

    def _has_begun(self) -> bool:
        """Start the members, each with a room and ports of its own; say whether all run."""
        meeting = free_port()
        try:
            for role in ("manager", "server", "server"):
                self.members.append(self.member(role, meeting))
                self.members[-1].start()
        except RuntimeError:
            return False
        return True

    def member(self, role: str, meeting: int) -> Member:
        """Make one of them; the manager comes first."""
        return Member(make_room(), self.authority, role, meeting)

    def _is_ready(self) -> bool:
        command = ["xrdfs", self.url.partition("://")[2], "locate", "*"]
        try:
            said = subprocess.check_output(
                command,
                env=self.environment(),
                stderr=subprocess.DEVNULL,
                text=True,
                timeout=ASK_SECONDS,
            )
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return False
        return all(f":{server.port} " in said for server in self.servers)

    def environment(self) -> dict[str, str]:
        """Return what a program needs to ask the manager over root://."""
        return os.environ | {"XRD_CONNECTIONWINDOW": "1", "XRD_CONNECTIONRETRY": "1"}

    def close(self) -> None:
        while self.members:
            self.members.pop().close()

    def make_directory(self, name: str) -> Path:
        """Make a directory on the disks of all servers, as their operators would."""
        first, *_ = [server.make_directory(name) for server in self.servers]
        return first

    def on_disks(self, path: str) -> list[Path]:
        """Return where the servers keep a file or a directory; each that has it keeps one."""
        places = [server.data / path.strip("/") for server in self.servers]
        return [place for place in places if place.exists()]
