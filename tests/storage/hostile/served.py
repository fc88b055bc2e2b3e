"""The hostile server as a child of a test or a program: started, reformed, ended by its pid."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sonar.sandbox import processes
from tests.storage.hostile.ways import WAYS, Way

GUESTS = "strangers.log"


@dataclass(frozen=True)
class HostileEnd:
    """One endpoint that misbehaves."""

    name: str
    way: Way
    base_url: str


class Hostile:
    """One process with many hostile endpoints, and what they hold on disk."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ends: list[HostileEnd] = []
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, ways: Iterable[str] = (), endpoints: int | None = None) -> Hostile:
        """Start it with these ways, all if none is named, over and over to so many endpoints."""
        noted, log = self.directory / "hostile.json", self.directory / "hostile.log"
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.storage.hostile"]
        command += ["--directory", str(self.directory)]
        command += ["--ways", ",".join(ways)] if ways else []
        command += ["--endpoints", str(endpoints)] if endpoints else []
        self.process = processes.start(command, log)
        processes.wait_until(noted.is_file, self.process, "The hostile server", log)
        self.ends = [
            HostileEnd(name, WAYS[way], url)
            for name, (way, url) in json.loads(noted.read_text()).items()
        ]
        return self

    def reform(self) -> None:
        """Let all endpoints behave from now on."""
        if self.process:
            self.process.send_signal(signal.SIGUSR1)

    def files_left(self) -> list[Path]:
        """Return the files of tests, and half uploads, that its endpoints hold."""
        files = self.directory / "files"
        found = [*files.rglob("incoming/*"), *files.rglob("*.part")]
        return [path for path in found if path.is_file()]

    @property
    def led_to_strangers(self) -> list[str]:
        """Return the requests that came where its endpoints only redirect to."""
        return (self.directory / GUESTS).read_text().splitlines()

    @property
    def memory_bytes(self) -> int:
        """Return the most memory that it has ever used."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def close(self) -> None:
        if self.process:
            processes.stop(self.process)
