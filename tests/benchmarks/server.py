"""The PostgreSQL of the benchmarks: an embedded one with generous settings."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg

from sonar.sandbox import embedded
from tests import template
from tests.benchmarks.scale import Scale

DATABASE = "bench"
# Nobody is there: nothing may queue.
NO_REDIS = "redis://localhost:1/0"

# fsync and synchronous_commit stay as they are by default: writers are measured here too.
OPTIONS = (
    "work_mem=256MB",
    "maintenance_work_mem=1GB",
    "jit=off",
    "max_parallel_workers_per_gather=2",
    "max_wal_size=4GB",
    "checkpoint_timeout=30min",
    "wal_level=minimal",
    "max_wal_senders=0",
    "autovacuum=off",  # tables are vacuumed after loading; nothing may start in between
)


@contextlib.contextmanager
def home_directory(kept: str | None, scale: Scale) -> Iterator[Path]:
    """Give the directory of this scale's data: a kept one, or one that goes in the end."""
    if kept:
        home = Path(kept).resolve() / scale.name
        home.mkdir(parents=True, exist_ok=True)
        yield home
        return
    with temporary_directory() as home:
        yield home


@contextlib.contextmanager
def temporary_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sonar-bench-") as name:
        Path(name).chmod(0o755)  # PostgreSQL may run as another user
        yield Path(name)


@contextlib.contextmanager
def postgres(home: Path, scale: Scale) -> Iterator[str]:
    """Run PostgreSQL on this directory and point the settings at it; give its URL.

    Tables are there, in a database of the run and in the one that others are copied from.
    """
    options = (*OPTIONS, f"shared_buffers={scale.shared_buffers}")
    is_new = not (home / "postgres").exists()
    if is_new:
        template.copy_to(home / "postgres")
    with (
        embedded.socket_directory() as sockets,
        embedded.postgres(home / "postgres", sockets, home / "pg.log", *options) as server,
    ):
        if is_new:
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {DATABASE} TEMPLATE {template.NAME}")
        url = f"{server.rpartition('/')[0]}/{DATABASE}"
        os.environ |= environment(home, url)
        yield url


def environment(home: Path, url: str, redis: str = NO_REDIS) -> dict[str, str]:
    """Return the variables with which Sonar's own processes find this database."""
    return {
        "DJANGO_SETTINGS_MODULE": "sonar.settings",
        "SONAR_HOME": str(home),
        "SONAR_SECRET_KEY": "only-for-benchmarks",
        "DATABASE_URL": url,
        "REDIS_URL": redis,
    }
