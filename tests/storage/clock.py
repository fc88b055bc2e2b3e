"""A clock that jumps, as one does that is put right, for all programs that are started with it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("stepped_clock.c")
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]


class Clock:
    """How far the time of day is ahead in programs that were started with it."""

    def __init__(self, place: Path) -> None:
        """Compile it into a directory that all of them may read; it needs gcc."""
        self._file, self.library = place / "clock", place / "stepped_clock.so"
        self.step_to(0)
        where = f'-DCLOCK_FILE="{self._file}"'
        subprocess.run(["gcc", *FLAGS, where, "-o", self.library, SOURCE], check=True)

    def step_to(self, seconds: int) -> None:
        """Let it jump: from now on it is so many seconds ahead of this machine's; below 0 behind.

        The file stays the same one, and eight bytes come at once.
        """
        self.ahead = seconds
        file = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(file, (seconds * 10**9).to_bytes(8, "little", signed=True), 0)
        os.close(file)


@contextmanager
def stepped(place: Path) -> Iterator[Clock]:
    """Give a clock to all programs that are started meanwhile; not to this one."""
    clock = Clock(place)
    os.environ["LD_PRELOAD"] = str(clock.library)
    try:
        yield clock
    finally:
        del os.environ["LD_PRELOAD"]
