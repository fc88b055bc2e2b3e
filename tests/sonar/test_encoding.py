"""A database that keeps text in anything but UTF-8 gets a sentence, wherever it would be met."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from django.test import Client

from tests.starting import LOOK, MIGRATE, RUN, all_end_with, readyz_says

NAME = "sonar_of_bytes"
SENTENCE = (
    "The database keeps text as {}, and Sonar needs UTF8. Make another one (CREATE DATABASE sonar "
    "ENCODING 'UTF8' TEMPLATE template0), and let DATABASE_URL name it."
)


both = pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"], indirect=True)
# What a database that was made without thought has on some machines.
common = pytest.mark.parametrize("encoding", ["SQL_ASCII"], indirect=True)


@pytest.fixture
def encoding(request: pytest.FixtureRequest) -> Iterator[str]:
    """Make a database with this encoding."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as session:
        kept = f"ENCODING '{request.param}' LC_COLLATE 'C' LC_CTYPE 'C'"
        session.execute(f"CREATE DATABASE {NAME} {kept} TEMPLATE template0")
        yield request.param
        session.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


@both
@pytest.mark.django_db
def test_readyz_says_it_and_not_that_migrations_are_missing(
    client: Client, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    readyz_says(SENTENCE.format(encoding), NAME, client, monkeypatch)


@common
def test_what_looks_at_the_database_before_it_makes_tables_ends_with_it(
    tmp_path: Path, encoding: str
) -> None:
    address = os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{NAME}"
    all_end_with(SENTENCE.format(encoding), address, tmp_path, [MIGRATE, LOOK, RUN])
    with psycopg.connect(address) as session:
        assert session.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").rowcount == 0


@pytest.mark.django_db
def test_a_database_of_utf_8_is_as_it_should_be() -> None:
    from sonar.database import tables

    assert tables.encoding_problem(connection.connection) is None
