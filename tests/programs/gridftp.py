"""Real GridFTP servers without GSI, on free loopback ports, for anonymous users."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.ports import free_port
from tests.storage.xrootd import SERVER_USER, give_to_server, make_room

START_SECONDS = 20.0


class GridFtpServer:
    """One server with its data on disk; its transfer log has what it measured itself."""

    def __init__(self) -> None:
        self.room = make_room()
        self.data = self.room / "data"
        self.data.mkdir()
        give_to_server(self.data)
        self.port = free_port()
        self.log = self.room / "transfers.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ftp://127.0.0.1:{self.port}{self.data}"

    def start(self) -> GridFtpServer:
        become = ["-aa", "-anonymous-user", SERVER_USER, "-anonymous-names-allowed", "*"]
        with (self.room / "out.log").open("wb") as out:
            self.process = subprocess.Popen(
                [
                    *("globus-gridftp-server", "-S", "-no-detach", "-p", str(self.port)),
                    *("-control-interface", "127.0.0.1", "-data-interface", "127.0.0.1"),
                    *("-home-dir", "/", "-Z", str(self.log), *become),
                ],
                cwd=self.room,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return self
        raise RuntimeError((self.room / "out.log").read_text(errors="replace"))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and to the processes of its connections."""
        if self.process:
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        if self.process:
            self.signal(signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.room, ignore_errors=True)

    def make_directory(self, name: str) -> Path:
        """Make a directory on the server's disk, as its operators would."""
        path = self.data / name
        path.mkdir(parents=True, exist_ok=True)
        give_to_server(path)
        return path
