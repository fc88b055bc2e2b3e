"""Making a backup: pg_dump and the counts beside it see one snapshot, while Sonar goes on."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

import sonar
from sonar.database import tables
from sonar.database.backups import archive, label, programs
from sonar.database.backups.label import Label
from sonar.database.backups.programs import Programs
from sonar.notation import whole_files

# What no backup has, by table: why, as `backup` says it. A name may have pg_dump's wildcards.
LEFT_OUT = {
    "django_session": "sessions: all users must log in again",
    "sonar_signoflife": "heartbeats of running processes",
    "sonar_*secret*": "uploaded secrets of credentials",
}
FILES = ("credential files and settings: back them up separately",)
FAILED = "pg_dump failed; nothing was written."
LOOK_SECONDS = 0.2
PIECE_BYTES = 1 << 20
OWN_TABLES = """
SELECT format('%%I.%%I', nspname, relname) FROM pg_class
JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind = 'r' AND nspname = current_schema() AND NOT relname LIKE ANY(%s)
AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
                AND objid = pg_class.oid AND deptype = 'e')
ORDER BY 1
"""
SPAN = "SELECT min(started_at), max(started_at) FROM sonar_transfer"

Count = Callable[[int], None]
"""Is told now and then how many bytes there are."""


def write(path: Path, chosen: Programs, count: Count) -> Label:
    """Write a backup that appears under its name when it is whole and read back, mode 0600.

    Raises BackupError or OSError; then nothing has changed and nothing is left.
    """
    with whole_files.written(path) as file:
        whole = _pour(chosen, file, lambda process: _watch(process, file, count))
        size = file.seek(0, os.SEEK_END)
        whole = replace(whole, archive_bytes=size, sha256=_sum_of(file, size))
        file.write(whole.written())
        file.flush()
        os.fsync(file.fileno())
        archive.check(file, whole, chosen)
    _sync_directory(path.parent)
    return whole


def stream(out: IO[bytes], chosen: Programs) -> Label:
    """Write a backup to a stream, where nobody can read it back."""
    total, sizes = sha256(), [0]

    def relay(process: subprocess.Popen[bytes]) -> None:
        archived = cast("IO[bytes]", process.stdout)
        while piece := archived.read(PIECE_BYTES):
            total.update(piece)
            sizes.append(len(piece))
            out.write(piece)

    whole = _pour(chosen, subprocess.PIPE, relay)
    whole = replace(whole, archive_bytes=sum(sizes), sha256=total.hexdigest())
    out.write(whole.written())
    return whole


def _pour(
    chosen: Programs, out: int | IO[bytes], follow: Callable[[subprocess.Popen[bytes]], None]
) -> Label:
    """Run pg_dump on a snapshot; return what that snapshot holds."""
    with _snapshot() as (name, cursor):
        command = chosen.command(
            *("pg_dump", "--format=custom", "--no-password", f"--snapshot={name}"),
            # Those of others, such as pg_stat_statements, only administrators could restore.
            "--extension=plpgsql",
            *(f"--exclude-table-data={table}" for table in LEFT_OUT),
            f"--dbname={programs.address()}",
        )
        with programs.running(command, FAILED, stdout=out) as process:
            whole = _read_label(cursor, chosen)
            follow(process)
    return whole


@contextmanager
def _snapshot() -> Iterator[tuple[str, CursorWrapper]]:
    """Hold a snapshot that others may read, too; give its name."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute("SELECT pg_export_snapshot()")
        (name,) = cast("tuple[str]", cursor.fetchone())
        yield name, cursor


def _read_label(cursor: CursorWrapper, chosen: Programs) -> Label:
    cursor.execute("SELECT now()")
    (now,) = cast("tuple[Any]", cursor.fetchone())
    cursor.execute(OWN_TABLES, [[name.replace("_", r"\_").replace("*", "%") for name in LEFT_OUT]])
    names = [name for (name,) in cursor.fetchall()]
    rows = {name: _rows(cursor, name) for name in names}
    cursor.execute(SPAN)
    first, last = cast("tuple[Any, Any]", cursor.fetchone())
    return Label(
        sonar=sonar.__version__,
        postgres=tables.session_of().info.server_version // 10_000,
        programs=chosen.major,
        begun_at=now.isoformat(),
        migrations=tuple(sorted(tables.of_database(tables.session_of()))),
        rows=rows,
        first=first and first.isoformat(),
        last=last and last.isoformat(),
        left_out=tuple(LEFT_OUT.values()),
    )


def _rows(cursor: CursorWrapper, name: str) -> int:
    cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.SQL(name)))
    (rows,) = cast("tuple[int]", cursor.fetchone())
    return rows


def _watch(process: subprocess.Popen[bytes], file: BinaryIO, count: Count) -> None:
    """Wait for pg_dump, and tell how large its file is."""
    while process.poll() is None:
        count(os.fstat(file.fileno()).st_size)
        time.sleep(LOOK_SECONDS)


def _sum_of(file: BinaryIO, size: int) -> str:
    with open(file.fileno(), "rb", closefd=False) as reading:
        reading.seek(0)
        total = label.sum_of(reading, size)
    file.seek(size)
    return total


def _sync_directory(directory: Path) -> None:
    """Make a new name as lasting as what it names."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
