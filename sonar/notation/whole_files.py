"""Files that appear under their names once they are whole, and never in part.

Each is written beside its place, under a lock that goes with the process. What a process leaves
that was killed meanwhile is overwritten by the next that writes there, or removed by `forget`.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

SUFFIX = ".part"
FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
PRIVATE = 0o600


@contextmanager
def written(path: Path, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """Open a file that takes its place when this ends well; waits while another process does.

    Raises OSError, and then nothing has changed and nothing is left.
    """
    part = path.with_name(f".{path.name}{SUFFIX}")
    with _opened(part, mode) as file:
        try:
            yield file
            file.flush()
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def forget(directory: Path) -> None:
    """Remove what was left in a directory by processes that were killed; others' stay."""
    for part in directory.glob(f".*{SUFFIX}"):
        with suppress(FileNotFoundError, BlockingIOError), os.fdopen(os.open(part, FLAGS)) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file.fileno(), part):
                part.unlink()


def _opened(part: Path, mode: int) -> BinaryIO:
    """Open a part that nobody else writes, empty."""
    while True:
        file = os.fdopen(os.open(part, FLAGS | os.O_CREAT, mode), "wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file.fileno(), part):  # and was not put in its place, or removed, meanwhile
                file.truncate(0)
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
