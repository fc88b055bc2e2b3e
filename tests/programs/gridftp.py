"""Real GridFTP servers without GSI, on free loopback ports, for anonymous users."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.ports import free_port
from tests.storage.xrootd import SERVER_USER, give_to_server, make_room, takes_connections
from tests.waiting import wait_for

START_SECONDS, LOG_SECONDS = 120.0, 60.0
FACT = re.compile(r"([A-Z.]+|retrans)=(\S+)")


@dataclass(frozen=True)
class Logged:
    """A transfer as the log of a server has it."""

    facts: dict[str, str]

    @property
    def seconds(self) -> float:
        began, ended = (
            datetime.strptime(self.facts[name], "%Y%m%d%H%M%S.%f").replace(tzinfo=UTC)
            for name in ("START", "DATE")
        )
        return (ended - began).total_seconds()


class GridFtpServer:
    """One server with its data on disk; its transfer log has what it measured itself."""

    def __init__(self) -> None:
        self.inside: Sequence[str] = ()
        """What runs the server's command, if not this process itself."""
        self.room = make_room()
        self.data = self.room / "data"
        self.data.mkdir()
        give_to_server(self.data)
        self.path = str(self.data)
        self.port = free_port()
        self.log = self.room / "transfers.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ftp://127.0.0.1:{self.port}{self.path}"

    def start(self) -> GridFtpServer:
        become = ["-aa", "-anonymous-user", SERVER_USER, "-anonymous-names-allowed", "*"]
        with (self.room / "out.log").open("wb") as out:
            self.process = subprocess.Popen(
                [
                    *(*self.inside, "globus-gridftp-server", "-S", "-no-detach"),
                    *("-p", str(self.port)),
                    *("-control-interface", "127.0.0.1", "-data-interface", "127.0.0.1"),
                    *("-home-dir", "/", "-Z", str(self.log), *become),
                ],
                cwd=self.room,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        up = wait_for(lambda: takes_connections("127.0.0.1", self.port), START_SECONDS, 0.05)
        assert up, (self.room / "out.log").read_text(errors="replace")
        return self

    def transfers(self, path: str) -> list[Logged]:
        """Return what its log has of a file, once it has something: it is written at the end."""
        found: list[Logged] = []

        def read() -> bool:
            lines = self.log.read_text().splitlines() if self.log.exists() else []
            logged = [Logged(dict(FACT.findall(line))) for line in lines]
            found[:] = [one for one in logged if one.facts.get("FILE") == path]
            return bool(found)

        assert wait_for(read, LOG_SECONDS, pause=0.02), f"{path} is not in the log"
        return found

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and to the processes of its connections."""
        if self.process:
            os.killpg(self.process.pid, number)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process:
            with suppress(ProcessLookupError):
                self.signal(signal.SIGKILL)
            self.process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.room, ignore_errors=True)

    def make_directory(self, name: str) -> Path:
        """Make a directory on the server's disk, as its operators would."""
        path = self.data / name
        path.mkdir(parents=True, exist_ok=True)
        give_to_server(path)
        return path
