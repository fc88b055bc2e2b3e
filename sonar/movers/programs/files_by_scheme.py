"""The files of endpoints of several schemes: each is asked as its own protocol wants it."""

from collections.abc import Callable
from functools import cache
from typing import Protocol

from sonar.movers.base import End, FileInfo, MoverError, Order
from sonar.movers.file_address import parsed
from sonar.movers.mover import Files
from sonar.movers.watch import Watch


class FilesWithDirectories(Files, Protocol):
    """Files that can make the directories that one lies in."""

    def make_directories(self, end: End, order: Order) -> None:
        """Make what is missing between the base and the file."""


def over_http() -> FilesWithDirectories:
    from sonar.movers.http.webdav import WebDav

    return WebDav()


def over_root() -> FilesWithDirectories:
    from sonar.movers.programs.xrootd_files import XrootdFiles

    return XrootdFiles()


def over_ftp() -> FilesWithDirectories:
    from sonar.movers.programs.ftp_files import Ftp

    return Ftp()


MAKERS: dict[str, Callable[[], FilesWithDirectories]] = {
    "http": cache(over_http),
    "https": cache(over_http),
    "root": cache(over_root),
    "ftp": cache(over_ftp),
}


class FilesByScheme:
    """Files of any of these protocols; one object serves all threads of a process."""

    def of(self, end: End) -> FilesWithDirectories:
        protocol = str(parsed(end, end.url).scheme)
        if protocol not in MAKERS:
            message = f"files of {protocol} cannot be looked at: allowed are {', '.join(MAKERS)}"
            raise MoverError(end.where, message, permanent=True)
        return MAKERS[protocol]()

    def stat(self, end: End, order: Order) -> FileInfo | None:
        """Return how long the file is, or None if there is none."""
        return self.of(end).stat(end, order)

    def checksum(self, end: End, order: Order, seconds: float) -> str:
        """Return the file's adler32, empty if the server offers none."""
        return self.of(end).checksum(end, order, seconds)

    def put(self, order: Order, watch: Watch) -> None:
        """Make the source file appear, whole or not at all."""
        self.of(order.source).put(order, watch)

    def delete(self, end: End, order: Order) -> None:
        """Delete the file; that it is not there is fine."""
        self.of(end).delete(end, order)

    def make_directories(self, end: End, order: Order) -> None:
        """Make what is missing between the base and the file."""
        self.of(end).make_directories(end, order)
