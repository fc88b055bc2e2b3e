"""A piece of this machine apart: its own processes, mounts and network, ended all at once."""

import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.needs import ALL_PROGRAMS
from tests.waiting import wait_for

START_SECONDS = 120.0
COMMAND_SECONDS = 120.0
CLONE_NEWNET = 0x40000000
"""Of linux/sched.h."""
LIBC = ctypes.CDLL(None)
DEVICES = "[ -e /dev/net/tun -a -e /dev/loop-control ] || mount -t devtmpfs devtmpfs /dev"


class RefusedError(Exception):
    """This machine does not let the lab do what it needs; the message says what, and how."""


class Enclosure:
    """Processes of their own, private mounts and a network; all go when its first one does.

    That one dies with this program even if the kernel kills it, and with it everything inside.
    """

    def __init__(self) -> None:
        apart = ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child"]
        command = ["setpriv", "--pdeathsig", "KILL", *apart, "sleep", "infinity"]
        self._outside = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.pid = 0
        """Of the first process, as this side numbers it."""
        try:
            self.pid = self._first()
            self._furnish()
        except BaseException:
            self.close()
            raise

    def _furnish(self) -> None:
        """Mount what a bare container lacks: devices, and a place for names of networks."""
        self.run("sh", "-c", DEVICES)
        self.run("mount", "-t", "tmpfs", "tmpfs", "/run")
        self.run("mkdir", "/run/netns")

    def seen_from_here(self, path: str | Path) -> Path:
        """Return a path inside as this side sees it, while there is an inside."""
        return Path(f"/proc/{self.pid}/root{path}")

    def _first(self) -> int:
        """Return the number of the first process inside, once it is there."""
        outside, inside = psutil.Process(self._outside.pid), list[psutil.Process]()

        def is_there() -> bool:
            inside[:] = [one for one in outside.children() if one.name() == "sleep"]
            return bool(inside) or self._outside.poll() is not None

        if not wait_for(is_there, START_SECONDS, pause=0.02) or not inside:
            raise RefusedError(f"namespaces of mounts, processes and network: {self._last_words()}")
        return inside[0].pid

    def _last_words(self) -> str:
        self._outside.kill()
        return (self._outside.communicate()[1] or "no answer").strip()

    def inside(self, *command: str, space: str = "", group: str = "") -> list[str]:
        """Return a command as it runs in here: in a named network, in a control group."""
        joined = ["nsenter", f"--target={self.pid}", "--mount", "--root", "--pid", "--net"]
        if group:
            joined += ["sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"', group]
        if space:
            joined += ["ip", "netns", "exec", space]
        return [*joined, *command]

    def run(self, *command: str, space: str = "") -> str:
        """Run a command in here and return what it says; raise RefusedError if it fails."""
        return run(self.inside(*command, space=space), " ".join(command))

    def close(self) -> None:
        """End everything inside; the kernel does the rest."""
        with self._outside:
            if self._outside.poll() is None:
                os.kill(self.pid or self._outside.pid, signal.SIGKILL)


def run(command: Sequence[str], words: str = "") -> str:
    """Run a command on this machine and return what it says; raise RefusedError if it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    if done.returncode:
        raise RefusedError(f"{words or ' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


@contextmanager
def network_apart() -> Iterator[None]:
    """Give this thread, and what it starts, a network of its own, as far as it may have one."""
    outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    ip = shutil.which("ip", path=ALL_PROGRAMS)
    is_apart = bool(ip) and LIBC.unshare(CLONE_NEWNET) == 0
    try:
        if ip and is_apart:
            run([ip, "link", "set", "lo", "up"])
        yield
    finally:
        if is_apart:
            LIBC.setns(outside, CLONE_NEWNET)
        os.close(outside)
