"""What starts on a database that does not fit says so and ends: newer, half upgraded, no UTF-8."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.test import Client
from pytest_django import DjangoDbBlocker

from sonar.database import tables
from tests.clusters import Cluster
from tests.starting import BEAT, LOOK, MIGRATE, RUN, WEB, WORKER, all_end_with, readyz_says

NAME = "sonar_of_another_time"
KNOWN = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
LAST, TO_COME = max(KNOWN), ("sonar", "9999_of_the_future")
NEWER = (
    "The database is newer than this version of Sonar, which lacks some of its migrations (newest: "
    "sonar.9999_of_the_future; count: 1). Start the newer version, or restore an older backup "
    "(docs/operations.md)."
)
HALF = (
    f"The database lacks migrations of this version of Sonar (newest: sonar.{LAST[1]}; count: 1): "
    "run manage.py migrate."
)
MIGRATIONS = "CREATE TABLE django_migrations (app text, name text)"
LOAD = ["manage.py", "load_registry", "none.yaml"]
PASSWORD = ["manage.py", "changepassword", "nobody"]


NO_UTF_8 = (
    "The database has the encoding {}, but Sonar needs UTF8. Create another database (CREATE "
    "DATABASE sonar ENCODING 'UTF8' TEMPLATE template0) and set DATABASE_URL to it."
)
ADDRESS = os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{NAME}"


@contextmanager
def database(options: str = "") -> Iterator[None]:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as session:
        session.execute(f"CREATE DATABASE {NAME} {options}")
        yield
        session.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@contextmanager
def of_another_time(migrations: set[tuple[str, str]]) -> Iterator[None]:
    """Make a database that holds no more than which migrations it has had."""
    with database():
        with psycopg.connect(ADDRESS) as there:
            there.execute(MIGRATIONS)
            values = "INSERT INTO django_migrations VALUES (%s, %s)"
            there.cursor().executemany(values, sorted(migrations))
        yield


@contextmanager
def of_bytes(encoding: str) -> Iterator[None]:
    with database(f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"):
        yield


@pytest.fixture
def databases(django_db_blocker: DjangoDbBlocker) -> Cluster:
    return Cluster(os.environ["DATABASE_URL"], django_db_blocker)


def said_at_start(databases: Cluster) -> str | None:
    with databases.inside(NAME):
        return tables.problem_at_start()


@pytest.mark.long
def test_whatever_starts_on_a_newer_database_says_so_and_ends(
    databases: Cluster, tmp_path: Path
) -> None:
    """What refuses a half upgraded one, as the next test shows, asks by the same function."""
    with of_another_time(KNOWN | {TO_COME}):
        assert said_at_start(databases) == NEWER
        all_end_with(NEWER, ADDRESS, tmp_path, [BEAT, PASSWORD, MIGRATE, RUN])


@pytest.mark.long
def test_whatever_starts_before_migrate_has_ended_says_so_and_ends(
    databases: Cluster, tmp_path: Path
) -> None:
    """A beat looks as a worker does, which the test above shows."""
    with of_another_time(KNOWN - {LAST}):
        assert said_at_start(databases) == HALF
        all_end_with(HALF, ADDRESS, tmp_path, [WEB, WORKER, LOAD])


@pytest.mark.long
def test_what_looks_at_the_database_before_it_makes_tables_ends_with_its_encoding(
    databases: Cluster, tmp_path: Path
) -> None:
    """One that a database has which was made without thought on some machines."""
    with of_bytes("SQL_ASCII"):
        sentence = NO_UTF_8.format("SQL_ASCII")
        all_end_with(sentence, ADDRESS, tmp_path, [LOOK, RUN])
        with (
            databases.inside(NAME),
            pytest.raises(SystemCheckError, match=re.escape(sentence)),
        ):
            call_command("migrate", skip_checks=False, verbosity=0)
        with psycopg.connect(ADDRESS) as session:
            made = session.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")
            assert made.rowcount == 0


@pytest.mark.django_db
def test_readyz_says_what_does_not_fit_first_of_all(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for made, sentence in (
        (of_another_time(KNOWN | {TO_COME}), NEWER),
        (of_bytes("SQL_ASCII"), NO_UTF_8.format("SQL_ASCII")),
        (of_bytes("LATIN1"), NO_UTF_8.format("LATIN1")),
    ):
        with made:
            readyz_says(sentence, NAME, client, monkeypatch)


def test_a_database_that_is_away_keeps_nothing_from_starting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tables, "quickly", lambda: {"host": "127.0.0.1", "port": 1})
    assert tables.problem_at_start() is None
    assert "cannot check whether the database matches" in caplog.text


def test_the_migrations_of_this_code_are_those_that_django_loads() -> None:
    loaded = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    assert tables.of_this_code() == frozenset(loaded)
    assert ("sonar", "0001_initial") in loaded


@pytest.mark.django_db
def test_the_tables_of_this_code_fit() -> None:
    assert tables.problem_at_start() is None
    assert tables.encoding_problem(connection.connection) is None


@pytest.mark.django_db
@pytest.mark.parametrize("target", ["0007", "zero"])
def test_migrate_undoes_nothing_and_says_how_to_go_back(target: str) -> None:
    with pytest.raises(CommandError, match="restore a backup made with that version"):
        call_command("migrate", "sonar", target, verbosity=0)
    assert LAST in MigrationExecutor(connection).loader.applied_migrations
