"""A database with all tables, made once for each state of the code and copied for each test run.

To make a cluster and to migrate takes three seconds of a processor, which a dozen runs of pytest
side by side would each take again. Django migrates each copy further, if there is anything to do.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import psycopg

from sonar.sandbox import embedded

PROJECT = Path(__file__).resolve().parent.parent
PLACE = PROJECT / ".pytest_cache" / "databases"
NAME = "test_postgres"
"""As Django calls the database of tests beside one that is called postgres."""
MIGRATE = [sys.executable, str(PROJECT / "manage.py"), "migrate", "--skip-checks", "--verbosity=0"]


def copy_to(data: Path, *options: str) -> None:
    """Make a directory for PostgreSQL that has the tables; make what it is copied from, too."""
    with locked():
        made = PLACE / state()
        if not made.exists():
            make(made, *options)
        subprocess.run(["cp", "-a", "--reflink=auto", made, data], check=True)


def with_tables(url: str) -> str:
    """Return the address of the database with tables, beside the empty one of this address."""
    return f"{url.rpartition('/')[0]}/{NAME}"


@contextmanager
def locked() -> Iterator[None]:
    """Let others wait, which would make the same."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def state() -> str:
    """Return a name for what the tables and their first rows are made by."""
    told = sha256()
    paths = [PROJECT / "requirements.txt", Path(__file__), *(PROJECT / "sonar").rglob("*.py")]
    for path in sorted(paths):
        told.update(path.read_bytes())
    return f"{os.geteuid()}-{told.hexdigest()[:16]}"


def make(made: Path, *options: str) -> None:
    """Migrate a new database, beside its place; those of other states go."""
    for old in PLACE.glob(f"{os.geteuid()}-*"):
        shutil.rmtree(old)
    begun = made.with_name(f"{made.name}.begun")
    with (
        embedded.socket_directory() as sockets,
        embedded.postgres(begun, sockets, PLACE / "postgres.log", *options) as url,
    ):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {NAME}")
        env = os.environ | {"DATABASE_URL": with_tables(url)}
        env |= {"REDIS_URL": "redis://", "SONAR_SECRET_KEY": "only-for-tests"}
        subprocess.run(MIGRATE, env=env, check=True)
    begun.rename(made)
