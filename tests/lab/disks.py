"""Disks of a chosen speed: a file as a block device, which the kernel throttles for who uses it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.lab.enclosure import Enclosure, RefusedError, run

IMAGE_BYTES = 192 * 1024 * 1024
GROUPS = "/run/groups"
PREFIX = "sonar-lab-"
"""Of the names of groups, which are those of their labs, too."""
OLD_LIMITS = {"blkio.throttle.read_bps_device": "{0}", "blkio.throttle.write_bps_device": "{0}"}
NEW_LIMITS = {"io.max": "rbps={0} wbps={0}"}


class Disk:
    """A file system that waits for its device with each write, and the group that is throttled.

    The page cache would take a test file whole and say that it is written: hence ``sync``. What
    was read once is in there, too: hence ``forget``. An ext2 would write all blocks twice.
    """

    def __init__(self, enclosure: Enclosure, mount_point: Path, bytes_per_second: float) -> None:
        image = mount_point.with_name(f"{mount_point.name}.image")
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        run(["mkfs.ext4", "-q", "-O", "^has_journal", "-F", str(image)])
        # The device frees itself when nobody has it mounted any more, the file when that is done.
        enclosure.run("mount", "-o", "loop,sync,noatime", str(image), str(mount_point))
        image.unlink()
        self.inside = enclosure.seen_from_here(mount_point)
        self.group = Group(enclosure, "-".join(mount_point.parts[-3:-1]))
        self.group.limit(self.inside.stat().st_dev, int(bytes_per_second))

    def forget(self) -> None:
        """Let the next reader of each file wait for the device."""
        for path in self.inside.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Give back what the end of the enclosure leaves."""
        self.group.close()


class Group:
    """A control group for processes that read and write a device at a pace."""

    def __init__(self, enclosure: Enclosure, name: str) -> None:
        self.name = name
        self.inside = f"{GROUPS}/{self.name}"
        """Where processes inside enter it."""
        self._limits = _mount(enclosure)
        groups = enclosure.seen_from_here(GROUPS)
        self._path = groups / self.name
        self._groups = os.open(groups, os.O_RDONLY)  # reaches them when the enclosure is gone
        try:
            with locked(self._groups):  # another lab would take a new one for a stale one
                remove_stale(groups)
                self._path.mkdir()
                self._lock = os.open(self._path, os.O_RDONLY)
                fcntl.flock(self._lock, fcntl.LOCK_SH)
        except OSError as error:
            os.close(self._groups)
            raise RefusedError(f"a control group: {error}") from error

    @property
    def names(self) -> list[str]:
        """Return the groups of all labs, by name."""
        groups = Path(f"/proc/self/fd/{self._groups}")
        return [group.name for group in groups.glob(f"{PREFIX}*")]

    def limit(self, device: int, bytes_per_second: int) -> None:
        """Let its processes read and write a device at this pace, each way."""
        number = f"{os.major(device)}:{os.minor(device)}"
        try:
            for file, text in self._limits.items():
                (self._path / file).write_text(f"{number} {text.format(bytes_per_second)}")
        except OSError as error:
            raise RefusedError(f"a control group that throttles a disk: {error}") from error

    def close(self) -> None:
        """Remove it, empty as it is by now."""
        with suppress(OSError):
            os.rmdir(self.name, dir_fd=self._groups)
        os.close(self._lock)
        os.close(self._groups)


@contextmanager
def locked(directory: int) -> Iterator[None]:
    """Keep other labs from making and removing groups."""
    fcntl.flock(directory, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(directory, fcntl.LOCK_UN)


def remove_stale(groups: Path) -> None:
    """Remove groups of killed labs: that of a living one is locked by it, empty or not."""
    for group in groups.glob(f"{PREFIX}*"):
        directory = os.open(group, os.O_RDONLY)
        with suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            group.rmdir()
        os.close(directory)


def _mount(enclosure: Enclosure) -> dict[str, str]:
    """Show the enclosure the groups that limit I/O; return what to write into which file.

    That may be one of the old hierarchies, or the new one, where who writes is only known with
    the memory's controller.
    """
    groups = enclosure.seen_from_here(GROUPS)
    together, kind = _old_hierarchy(), ["cgroup2"]
    if together:
        kind = ["cgroup", "-o", ",".join(together)]
    if not groups.is_dir():
        enclosure.run("mkdir", GROUPS)
        enclosure.run("mount", "-t", *kind, "groups", GROUPS)
    if together:
        return OLD_LIMITS
    enclosure.run("sh", "-c", f"echo +io +memory >{GROUPS}/cgroup.subtree_control")
    return NEW_LIMITS


def _old_hierarchy() -> list[str]:
    """Return the controllers that stand in one old hierarchy with that of I/O, if any does."""
    rows = [line.split() for line in Path("/proc/cgroups").read_text().splitlines()[1:]]
    numbers = {name: number for name, number, *_ in rows}
    own = numbers.get("blkio", "0")
    return [name for name, number in numbers.items() if number == own != "0"]
