"""The files of endpoints of several schemes: each is asked as its own protocol wants it."""

from functools import cache
from pkgutil import resolve_name
from typing import Protocol

from sonar.movers.base import End, FileInfo, MoverError, Order
from sonar.movers.file_address import parsed
from sonar.movers.mover import Files
from sonar.movers.watch import Watch


class FilesWithDirectories(Files, Protocol):
    """Files that can make the directories that one lies in."""

    def make_directories(self, end: End, order: Order) -> None:
        """Make what is missing between the base and the file."""


# By protocol, each loaded when it is used first.
PATHS = {
    **dict.fromkeys(("http", "https"), "sonar.movers.http.webdav:WebDav"),
    "root": "sonar.movers.programs.xrootd:XrootdFiles",
    "ftp": "sonar.movers.programs.gridftp:Ftp",
}


@cache
def loaded(path: str) -> FilesWithDirectories:
    files: FilesWithDirectories = resolve_name(path)()
    return files


class FilesByScheme:
    """Files of any of these protocols; one object serves all threads of a process."""

    def of(self, end: End) -> FilesWithDirectories:
        protocol = str(parsed(end, end.url).scheme)
        if protocol not in PATHS:
            message = f"file access over {protocol} is not supported: use {', '.join(PATHS)}"
            raise MoverError(end.where, message, permanent=True)
        return loaded(PATHS[protocol])

    def stat(self, end: End, order: Order) -> FileInfo | None:
        return self.of(end).stat(end, order)

    def checksum(self, end: End, order: Order, seconds: float) -> str:
        return self.of(end).checksum(end, order, seconds)

    def put(self, order: Order, watch: Watch) -> None:
        self.of(order.source).put(order, watch)

    def delete(self, end: End, order: Order) -> None:
        self.of(end).delete(end, order)

    def make_directories(self, end: End, order: Order) -> None:
        self.of(end).make_directories(end, order)
