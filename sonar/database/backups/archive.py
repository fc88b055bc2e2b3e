"""Reading the archive of a backup with pg_restore: what is in it is what its label says."""

import os
import re
import subprocess
from collections.abc import Iterable
from typing import IO, BinaryIO, cast

from sonar.database.backups import programs
from sonar.database.backups.label import Label
from sonar.database.backups.programs import BackupError, Programs

BEGIN = re.compile(rb"COPY (\S+) \(.*\) FROM stdin;\n")
END = b"\\.\n"
UNREADABLE = "pg_restore cannot read the backup. The file was discarded."


def check(file: BinaryIO, label: Label, chosen: Programs) -> None:
    """Read a whole archive; BackupError if it does not hold the rows that its label counts."""
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    command = chosen.command("pg_restore", "--data-only", "--file=-")
    pipe = subprocess.PIPE
    with programs.running(command, UNREADABLE, stdin=file, stdout=pipe) as process:
        output = cast("IO[bytes]", process.stdout).fileno()
        with open(output, "rb", closefd=False) as text:
            rows = count(text)
    if rows != label.rows:
        raise BackupError(_other_rows(rows, label.rows))


def count(lines: Iterable[bytes]) -> dict[str, int]:
    """Return how many rows of each table an archive has, of its text by pg_restore."""
    rows: dict[str, int] = {}
    table = ""
    for line in lines:
        if table:
            if line == END:
                table = ""
            else:
                rows[table] += 1
        elif line.startswith(b"COPY ") and (begun := BEGIN.fullmatch(line)):
            table = begun[1].decode()
            rows[table] = 0
    return rows


def _other_rows(rows: dict[str, int], noted: dict[str, int]) -> str:
    differences = [
        f"{name}: {rows.get(name, 0):,} rows of {noted.get(name, 0):,}"
        for name in sorted(rows.keys() | noted.keys())
        if rows.get(name, 0) != noted.get(name, 0)
    ]
    return "\n".join(["The backup does not match the database.", *differences])
