"""Servers whose data lie on a disk of a few MB, which nobody else sees and which ends with them."""

from pathlib import Path

from tests.needs import OWN_MOUNTS
from tests.programs.gridftp import GridFtpServer
from tests.storage.xrootd import Authority, Server, make_room

DISK_BYTES = 4 * 1024 * 1024
MOUNT = f'mount -t tmpfs -o size={DISK_BYTES},mode=1777 tmpfs "$0" && exec "$@"'


def on_small_disk(path: Path) -> list[str]:
    """Return what runs a command to which a directory is a disk of its own."""
    return [*OWN_MOUNTS, "sh", "-c", MOUNT, str(path)]


def seen_from_here(pid: int, path: Path) -> Path:
    return Path(f"/proc/{pid}/root{path}")


class SmallXrootd(Server):
    """An XRootD server on a small disk."""

    def __init__(self, authority: Authority) -> None:
        super().__init__(make_room(), authority)

    def start(self) -> Server:
        super().start()
        self.data = seen_from_here(self.process.pid, self.data)
        return self

    def _command(self) -> list[str]:
        return [*on_small_disk(self.data), *super()._command()]


class SmallGridFtp(GridFtpServer):
    """A GridFTP server on a small disk."""

    def start(self) -> GridFtpServer:
        self.inside = on_small_disk(self.data)
        super().start()
        self.data = seen_from_here(self.process.pid, self.data)
        return self
