"""What starts on a database that is newer than the code, or half upgraded, says so and ends."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.test import Client

from sonar.database import tables
from tests.starting import BEAT, MIGRATE, RUN, WEB, WORKER, all_end_with, readyz_says

NAME = "sonar_of_another_time"
KNOWN = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
LAST, TO_COME = max(KNOWN), ("sonar", "9999_of_the_future")
NEWER = (
    "The database is newer than this Sonar: it has migrations that this code does not know "
    "(sonar.9999_of_the_future, 1 in all). Start the newer Sonar, or go back by restoring a backup "
    "(docs/operations.md)."
)
HALF = (
    f"The database lacks migrations of this Sonar (sonar.{LAST[1]}, 1 in all): "
    "run manage.py migrate."
)
MIGRATIONS = "CREATE TABLE django_migrations (app text, name text)"
LOAD = ["manage.py", "load_registry", "none.yaml"]
PASSWORD = ["manage.py", "changepassword", "nobody"]


@pytest.fixture
def of_another_time(request: pytest.FixtureRequest) -> Iterator[str]:
    """Make a database that holds no more than which migrations it has had; give its address."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as session:
        session.execute(f"CREATE DATABASE {NAME}")
        address = os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{NAME}"
        with psycopg.connect(address) as there:
            there.execute(MIGRATIONS)
            values = "INSERT INTO django_migrations VALUES (%s, %s)"
            there.cursor().executemany(values, sorted(request.param))
        yield address
        session.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


newer = pytest.mark.parametrize("of_another_time", [KNOWN | {TO_COME}], indirect=True, ids=[""])
half = pytest.mark.parametrize("of_another_time", [KNOWN - {LAST}], indirect=True, ids=[""])


@pytest.mark.long
@newer
def test_whatever_starts_on_a_newer_database_says_so_and_ends(
    of_another_time: str, tmp_path: Path
) -> None:
    commands = [WEB, WORKER, BEAT, LOAD, PASSWORD, MIGRATE, RUN]
    all_end_with(NEWER, of_another_time, tmp_path, commands)


@half
def test_whatever_starts_before_migrate_has_ended_says_so_and_ends(
    of_another_time: str, tmp_path: Path
) -> None:
    """A beat looks as a worker does, which the test above shows."""
    all_end_with(HALF, of_another_time, tmp_path, [WEB, WORKER, LOAD])


@newer
@pytest.mark.django_db
def test_readyz_says_that_the_database_became_newer(
    client: Client, monkeypatch: pytest.MonkeyPatch, of_another_time: str
) -> None:
    readyz_says(NEWER, NAME, client, monkeypatch)


def test_a_database_that_is_away_keeps_nothing_from_starting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tables, "quickly", lambda: {"host": "127.0.0.1", "port": 1})
    assert tables.problem_at_start() is None
    assert "the database does not say" in caplog.text


@pytest.mark.django_db
def test_the_tables_of_this_code_fit() -> None:
    assert tables.problem_at_start() is None


@pytest.mark.django_db
@pytest.mark.parametrize("target", ["0007", "zero"])
def test_migrate_undoes_nothing_and_says_how_to_go_back(target: str) -> None:
    with pytest.raises(CommandError, match="restore a backup of its time"):
        call_command("migrate", "sonar", target, verbosity=0)
    assert LAST in MigrationExecutor(connection).loader.applied_migrations
