"""A mover as a newcomer writes one: between directories of this machine, with the program `cp`.

With its entry of the catalogue it is all that Sonar needs: docs/extending.md has the recipe.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

from sonar.movers.base import End, FileInfo, MoverError, Order, Receipt, Watch, Where, aside
from sonar.movers.content import TestFile, adler32


class DiskFiles:
    """Files of this machine; the path of a URL is theirs."""

    def stat(self, end: End, order: Order) -> FileInfo | None:
        file = path(end)
        return FileInfo(file.stat().st_size) if file.exists() else None

    def checksum(self, end: End, order: Order, seconds: float) -> str:
        return adler32(path(end).stat().st_size)

    def put(self, order: Order, watch: Watch) -> None:
        part, content = path(aside(order)), TestFile(order.bytes)
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            while chunk := content.read():
                watch.check()
                file.write(chunk)
        part.rename(path(order.source))

    def delete(self, end: End, order: Order) -> None:
        path(end).unlink(missing_ok=True)


class DiskMover:
    """Copies with `cp`."""

    def __init__(self) -> None:
        self.files = DiskFiles()

    def move(self, order: Order, watch: Watch) -> Receipt:
        target, began = path(order.destination), time.monotonic()
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["cp", str(path(order.source)), str(target)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise MoverError(Where.TRANSFER, done.stderr.strip())
        return Receipt(order.bytes, time.monotonic() - began, streams_used=1)


def path(end: End) -> Path:
    return Path(urlsplit(end.url).path)
