"""A database that keeps text in anything but UTF-8 gets a sentence, wherever it would be met."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from django.test import Client

from matrix.answers.status import health
from tests.ports import free_port

PROJECT = Path(__file__).resolve().parent.parent.parent
NAME = "sonar_of_bytes"
SENTENCE = (
    "The database keeps text as {}, and Sonar needs UTF8: make another one (CREATE DATABASE sonar "
    "ENCODING 'UTF8' TEMPLATE template0), and let DATABASE_URL name it."
)


@pytest.fixture(params=["SQL_ASCII", "LATIN1"])
def encoding(request: pytest.FixtureRequest) -> Iterator[str]:
    """Make a database with this encoding."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as session:
        kept = f"ENCODING '{request.param}' LC_COLLATE 'C' LC_CTYPE 'C'"
        session.execute(f"CREATE DATABASE {NAME} {kept} TEMPLATE template0")
        yield request.param
        session.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


def run(*command: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a module of Python on that database."""
    url = os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{NAME}"
    env = os.environ | {"DATABASE_URL": url, "SONAR_HOME": str(home), "PORT": str(free_port())}
    return subprocess.run(
        [sys.executable, *command],
        cwd=PROJECT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.django_db
def test_readyz_says_it_and_not_that_migrations_are_missing(
    client: Client, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    there = health.quickly() | {"dbname": NAME}
    monkeypatch.setattr(health, "quickly", lambda: there)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    told = {"ok": False, "detail": SENTENCE.format(encoding)}
    assert answer.json()["parts"]["database"] == told


@pytest.mark.parametrize("command", [["migrate"], ["check", "--database", "default"]])
def test_a_command_that_looks_at_the_database_ends_with_it(
    tmp_path: Path, encoding: str, command: list[str]
) -> None:
    ended = run("manage.py", *command, home=tmp_path)
    assert ended.returncode != 0
    assert SENTENCE.format(encoding) in one_line(ended.stderr)
    assert "Traceback" not in ended.stderr
    with psycopg.connect(os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{NAME}") as session:
        assert session.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").rowcount == 0


def test_a_first_start_ends_with_it(tmp_path: Path, encoding: str) -> None:
    ended = run("-m", "sonar.sandbox", home=tmp_path)
    assert ended.returncode == 1
    assert SENTENCE.format(encoding) in one_line(ended.stdout)
    assert "Traceback" not in ended.stdout + ended.stderr


@pytest.mark.django_db
def test_a_database_of_utf_8_is_as_it_should_be() -> None:
    from sonar import encodings

    assert encodings.problem(connection.connection) is None
