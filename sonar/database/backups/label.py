"""What a backup says of itself, behind the archive of pg_dump, where pg_restore does not look.

The counts are those of the snapshot that pg_dump reads: they are not known before it exists,
and so cannot be among the rows. The checksum is that of the archive.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from sonar.database.backups.programs import BackupError

MAGIC = b"PGDMP"
MARK = b"SONAR-BACKUP-1"
# The end of the file: the mark, and how many bytes before it the label has.
FOOTER = len(MARK) + 14
PIECE_BYTES = 1 << 20
RESULTS = "sonar_transfer_"
"""The tables of results are called so, one for each month."""


@dataclass(frozen=True)
class Label:
    """Where a backup comes from and what it holds; times are UTC, sizes are bytes."""

    sonar: str
    postgres: int
    programs: int
    begun_at: str
    migrations: tuple[tuple[str, str], ...]
    rows: dict[str, int]
    first: str | None
    last: str | None
    left_out: tuple[str, ...]
    archive_bytes: int = 0
    sha256: str = ""

    @property
    def migration(self) -> str:
        """The newest migration of Sonar's own."""
        return max((name for app, name in self.migrations if app == "sonar"), default="none")

    @property
    def months(self) -> dict[str, int]:
        """The results of each month, by YYYY_MM."""
        return {
            name.partition(RESULTS)[2]: count
            for name, count in sorted(self.rows.items())
            if RESULTS in name
        }

    @property
    def results(self) -> int:
        return sum(self.months.values())

    def count(self, table: str) -> int:
        return sum(rows for name, rows in self.rows.items() if name.endswith(f".{table}"))

    def written(self) -> bytes:
        """Return the end of the file."""
        text = json.dumps(asdict(self)).encode()
        return b"\n" + text + b"%s%013d\n" % (MARK, len(text))


def sum_of(file: BinaryIO, size: int) -> str:
    """Return the SHA-256 of the first bytes of a file."""
    total = sha256()
    for piece in _pieces(file, size):
        total.update(piece)
    return total.hexdigest()


def read(path: Path) -> Label:
    """Return the label of a backup whose archive is whole; BackupError says what is wrong."""
    try:
        with path.open("rb") as file:
            label = _at_the_end(path, file)
            file.seek(0)
            if sum_of(file, label.archive_bytes) != label.sha256:
                raise BackupError(
                    f"{path} is damaged: its checksum does not match. Use another backup. "
                    "Nothing was changed."
                )
    except OSError as error:
        raise BackupError(f"Cannot read {path}: {error.strerror}.") from error
    return label


def _at_the_end(path: Path, file: BinaryIO) -> Label:
    beginning = file.read(len(MAGIC))
    size = file.seek(0, 2)
    file.seek(max(size - FOOTER, 0))
    mark, length = file.read(len(MARK)), file.read().strip()
    if mark != MARK or not length.isdigit():
        raise BackupError(_no_backup(path, beginning))
    file.seek(size - FOOTER - int(length))
    values: dict[str, Any] = json.loads(file.read(int(length)))
    values["migrations"] = tuple((app, name) for app, name in values["migrations"])
    return Label(**values | {"left_out": tuple(values["left_out"])})


def _no_backup(path: Path, beginning: bytes) -> str:
    if beginning != MAGIC:
        return f"{path} is not a Sonar backup. Specify a file made with manage.py backup."
    return (
        f"{path} is a pg_dump archive without the label that manage.py backup adds: it was "
        "truncated or made with another program. Use a complete backup, or restore this file with "
        "pg_restore (docs/deployment.md)."
    )


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size and (piece := file.read(min(PIECE_BYTES, size))):
        size -= len(piece)
        yield piece
