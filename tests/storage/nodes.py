"""The nodes of the sandbox as a child of a test or a program: good ends, ended by their pid."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sonar.sandbox import processes
from sonar.sandbox.nodes import load_base_urls


class Nodes:
    """All 19 storage nodes, in one process, and what they hold on disk."""

    def __init__(self, directory: Path, inside: Sequence[str] = ()) -> None:
        """Keep files in a directory; the command before that of the nodes says where they run."""
        self.directory, self._inside = directory, list(inside)
        self.base_urls: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Nodes:
        noted, log = self.directory / "nodes.json", self.directory.with_suffix(".log")
        command = [sys.executable, "-m", "sonar.sandbox.nodes", "--directory", str(self.directory)]
        self.process = processes.start([*self._inside, *command], log)
        processes.wait_until(noted.is_file, self.process, "The sandbox nodes", log)
        self.base_urls = load_base_urls(self.directory)
        return self

    def arrived(self) -> list[Path]:
        """Return the files of tests that are there whole."""
        return list(self.directory.glob("*/sonar/incoming/*"))

    def files_left(self) -> list[Path]:
        """Return the files of tests, whole or in part, and half uploads."""
        found = [*self.directory.rglob("*.part"), *self.directory.rglob(".partial/*/*")]
        return [*self.arrived(), *found]

    def kill(self) -> None:
        """Let them die without a word: connections break off, and new ones are refused."""
        assert self.process
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process:
            processes.stop(self.process)
