"""A disk of a few MB as a directory of this process: filled, or only to be read."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.needs import needs_mounts
from tests.programs.small_disk import on_small_disk, seen_from_here

BLOCK = bytes(64 * 1024)


@dataclass(frozen=True)
class SmallDisk:
    """A tmpfs of a process that does nothing else, which ends with it (root only)."""

    path: Path
    _shell: subprocess.Popen[str]
    _mounted_at: Path

    def fill(self) -> None:
        """Write until there is no room for another byte."""
        with (self.path / "filler").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(BLOCK):
                pass
        assert os.statvfs(self.path).f_bavail == 0

    def empty(self) -> None:
        (self.path / "filler").unlink()

    def refuse_writes(self) -> None:
        """Let it only be read from now on."""
        self._run(f'mount -o remount,ro tmpfs "{self._mounted_at}"')

    def _run(self, command: str) -> None:
        assert self._shell.stdin
        assert self._shell.stdout
        self._shell.stdin.write(f"{command} && echo done || echo failed\n")
        self._shell.stdin.flush()
        assert self._shell.stdout.readline() == "done\n"


@contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk]:
    needs_mounts()
    path.mkdir()
    command = [*on_small_disk(path), "sh"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as shell:
        disk = SmallDisk(seen_from_here(shell.pid, path), shell, path)
        disk._run("true")  # it is mounted then
        try:
            yield disk
        finally:
            shell.kill()
