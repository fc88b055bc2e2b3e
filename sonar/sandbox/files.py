"""The files of a sandbox node, on disk below its own directory."""

import asyncio
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from aiohttp import web

from sonar.sandbox.flow import CHUNK_BYTES

BASE_PATH = "datadisk"


class Files:
    """The files of a node below its base path; nothing outside it can be named."""

    def __init__(self, directory: Path, endpoint: str) -> None:
        self.root = directory.resolve() / endpoint
        self.root.mkdir(parents=True, exist_ok=True)
        self._partials = directory.resolve() / ".partial" / endpoint
        shutil.rmtree(self._partials, ignore_errors=True)  # left by a process that was killed
        self._partials.mkdir(parents=True)
        self._checksums: dict[Path, tuple[tuple[int, ...], str]] = {}

    def at(self, url_path: str) -> Path:
        """Return the file that the path of a URL names, or raise 403 or 404."""
        parts = [part for part in unquote(url_path).split("/") if part not in ("", ".")]
        if ".." in parts or "\0" in unquote(url_path):
            raise web.HTTPForbidden(text=f"{url_path} leaves the base path\n")
        if parts[:1] != [BASE_PATH]:
            raise not_there(url_path)
        path = self.root.joinpath(*parts[1:])
        if not path.resolve().is_relative_to(self.root):
            raise web.HTTPForbidden(text=f"{url_path} leaves the base path\n")
        return path

    def shown(self, path: Path) -> str:
        """Return the path as messages show it."""
        return f"/{BASE_PATH}/{path.relative_to(self.root).as_posix()}".removesuffix("/.")

    @contextmanager
    def written(self, path: Path) -> Iterator[BinaryIO]:
        """Open a file that appears under its name once it is complete, and never in part."""
        handle, name = tempfile.mkstemp(dir=self._partials)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)

    def delete(self, path: Path) -> None:
        path.unlink()
        self._checksums.pop(path, None)

    async def adler32(self, path: Path) -> str:
        """Return the checksum of a file, which is read once."""
        identity = _identity(path)
        last_identity, checksum = self._checksums.get(path, ((), ""))
        if last_identity != identity:
            checksum = await asyncio.to_thread(_adler32, path)
            self._checksums[path] = (identity, checksum)
        return checksum


def _identity(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _adler32(path: Path) -> str:
    value = 1
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES.stop):
            value = zlib.adler32(data, value)
    return f"{value:08x}"


def not_there(name: str) -> web.HTTPNotFound:
    return web.HTTPNotFound(text=f"Unable to open {name}; no such file or directory\n")


def no_parent(name: str) -> str:
    return f"Unable to create {name}; no such file or directory\n"
