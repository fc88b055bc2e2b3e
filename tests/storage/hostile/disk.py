"""The files of a hostile endpoint: real names on disk, each holding only a size and a checksum."""

from __future__ import annotations

import random
import shutil
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from sonar.movers.content import TestFile


@dataclass
class Content:
    """What is worth knowing of the bytes of a file; they themselves are kept nowhere."""

    bytes: int = 0
    checksum: int = 1

    def add(self, data: bytes) -> None:
        self.bytes += len(data)
        self.checksum = zlib.adler32(data, self.checksum)

    async def take(self, pieces: AsyncIterator[bytes]) -> Content:
        async for piece in pieces:
            self.add(piece)
        return self

    @property
    def adler32(self) -> str:
        return f"{self.checksum:08x}"


class Disk:
    """The files of one endpoint, in directories of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def at(self, path: str) -> Path:
        """Return where the file of a URL's path is kept; nothing outside can be named."""
        return self.root.joinpath(*(part for part in path.split("/") if part not in ("", "..")))

    def look(self, path: str) -> Content | None:
        """Describe a file; None if there is none, or a directory."""
        file = self.at(path)
        if not file.is_file():
            return None
        size, checksum = file.read_text().split()
        return Content(int(size), int(checksum))

    def is_directory(self, path: str) -> bool:
        return self.at(path).is_dir()

    def keep(self, path: str, content: Content) -> bool:
        """Note a file; False if its directory is missing."""
        file = self.at(path)
        if not file.parent.is_dir():
            return False
        file.write_text(f"{content.bytes} {content.checksum}")
        return True

    def make_directory(self, path: str) -> int:
        """Make a directory; return the status that WebDAV has for how it went."""
        place = self.at(path)
        if place.exists():
            return 405
        if not place.parent.is_dir():
            return 409
        place.mkdir()
        return 201

    def move(self, path: str, target: str) -> bool:
        if self.look(path) is None:
            return False
        shutil.move(self.at(path), self.at(target))
        return True

    def delete(self, path: str) -> bool:
        if self.look(path) is None:
            return False
        self.at(path).unlink()
        return True


def file_of(content: Content) -> bytes:
    """Return a test file of that length; up to some 10 MB, the largest of these tests."""
    file = TestFile(content.bytes)
    return b"".join(iter(file.read, b""))


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)
