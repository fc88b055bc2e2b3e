"""The way back from a backup, in one transaction: all of it is there afterwards, or nothing.

psql runs what pg_restore writes, between a BEGIN and a COMMIT that are sent here. The COMMIT is
sent only once pg_restore has ended well, so whoever dies meanwhile leaves all as it was.
"""

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from django.db import connection

import sonar
from sonar.database import tables
from sonar.database.backups import programs
from sonar.database.backups.contents import OWN_OBJECTS
from sonar.database.backups.label import Label
from sonar.database.backups.programs import BackupError, Programs

PIECE_BYTES = 1 << 20
NEWER = (
    "{path} was made by Sonar {sonar}; this is Sonar {own}. It lacks migrations of the backup "
    "(newest: {last}; count: {count}). Install Sonar {sonar} or newer to restore it."
)
FAILED = "The restore failed. The database was not changed."
# Tables first: much of the rest goes with them, and a sequence of theirs goes no other way.
EMPTY = f"""
DO $empty$ DECLARE statement text; BEGIN
FOREACH statement IN ARRAY coalesce((
    SELECT array_agg(format('DROP %s IF EXISTS %s CASCADE', kind, name) ORDER BY kind <> 'TABLE')
    FROM ({OWN_OBJECTS}) own
), '{{}}') LOOP EXECUTE statement; END LOOP; END $empty$;
"""  # noqa: S608
CHECK = """
DO $check$ DECLARE noted record; there bigint; BEGIN
FOR noted IN SELECT key, value::bigint FROM jsonb_each_text({counts}) LOOP
    EXECUTE 'SELECT count(*) FROM ' || noted.key::regclass INTO there;
    IF there <> noted.value THEN
        RAISE EXCEPTION '% has % rows, and the backup noted %', noted.key, there, noted.value;
    END IF;
END LOOP; END $check$;
"""
Count = Callable[[int], None]
"""Is told now and then how many bytes PostgreSQL was given."""


def check_migrations(path: Path, label: Label) -> None:
    """Raise BackupError for a backup that is newer than this code."""
    if unknown := frozenset(label.migrations) - tables.of_this_code():
        last = ".".join(max(unknown))
        raise BackupError(
            NEWER.format(
                path=path,
                sonar=label.sonar,
                own=sonar.__version__,
                last=last,
                count=len(unknown),
            )
        )


def run(path: Path, label: Label, chosen: Programs, *, empty_first: bool, count: Count) -> None:
    """Restore a backup whose label was read; BackupError, and then nothing has changed."""
    connection.close()
    command = chosen.command(
        *("psql", "--no-psqlrc", "--no-password", "--quiet", "--set=ON_ERROR_STOP=1"),
        *("--file=-", f"--dbname={programs.address()}"),
    )
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with (
        programs.running(command, FAILED, stdin=pipe, stdout=nowhere) as session,
        # psql has ended, and says why.
        suppress(BrokenPipeError),
    ):
        descriptor = cast("IO[bytes]", session.stdin).fileno()
        _send(descriptor, b"BEGIN;\n" + (EMPTY.encode() if empty_first else b""))
        _relay(path, chosen, descriptor, count)
        _send(descriptor, _check_of(label).encode() + b"COMMIT;\n")


def _relay(path: Path, chosen: Programs, descriptor: int, count: Count) -> None:
    """Send what pg_restore writes; BackupError if it does not come to its end."""
    command = chosen.command(
        *("pg_restore", "--exit-on-error", "--no-owner", "--no-privileges", "--no-publications"),
        *("--no-subscriptions", "--file=-", str(path)),
    )
    sent = 0
    with programs.running(command, FAILED, stdout=subprocess.PIPE) as process:
        statements = cast("IO[bytes]", process.stdout)
        while piece := statements.read(PIECE_BYTES):
            _send(descriptor, piece)
            sent += len(piece)
            count(sent)


def _send(descriptor: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _check_of(label: Label) -> str:
    counts = json.dumps(label.rows).replace("'", "''")
    return CHECK.format(counts=f"'{counts}'")
