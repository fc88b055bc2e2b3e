"""The grid of docs/a-grid.md: its files, its commands, and a storage that stands for RAL's."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import dav

PAGE = Path(__file__).resolve().parents[1] / "docs/a-grid.md"
RAL = "davs://se.ral.example.org"
FILE = re.compile(r"^`([\w.]+)`[^\n]*:\n\n```\w+\n(.*?)```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"```console\n\$ manage\.py ([^\n]*)\n(.*?)```", re.DOTALL)


def commands() -> list[tuple[list[str], str]]:
    """Return the commands of the page as words, and what each says."""
    return [(words.split(), said) for words, said in COMMAND.findall(PAGE.read_text())]


def write(folder: Path, storage: str) -> None:
    """Write the files of the page, in which RAL's endpoint is at this storage."""
    for name, content in FILE.findall(PAGE.read_text()):
        (folder / name).write_text(content.replace(f"{RAL}:443", storage))


@contextmanager
def storage() -> Iterator[str]:
    """Let a storage run; give the beginning of its URLs."""
    with dav.serving() as server:
        server.directories.add("/atlas/datadisk")
        yield f"dav://127.0.0.1:{server.port}"
