"""A PostgreSQL of a test's own with a Sonar in it, and commands that are sent to its databases."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote, urlsplit

import psycopg
import pytest
from django.db import connection
from psycopg import sql
from pytest_django import DjangoDbBlocker

from sonar.sandbox import embedded
from tests import servers, template


class Cluster:
    """Databases beside each other, each by its name."""

    def __init__(self, url: str, blocker: DjangoDbBlocker) -> None:
        self.url, self._blocker = url, blocker

    def address(self, name: str) -> str:
        return f"{self.url.rpartition('/')[0]}/{name}"

    def make(self, name: str, template: str = "template0") -> str:
        """Make a database anew, as a copy of another."""
        create = "CREATE DATABASE {} TEMPLATE {}"
        with psycopg.connect(self.url, autocommit=True) as session:
            names = [sql.Identifier(one) for one in (name, template)]
            session.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(names[0]))
            session.execute(sql.SQL(create).format(*names))
        return name

    @contextmanager
    def inside(self, name: str, **values: Any) -> Iterator[None]:
        """Let Django work with one of the databases meanwhile."""
        host = unquote(urlsplit(self.url).hostname or "")
        place = {"NAME": name, "HOST": host, "USER": "sonar", **values}
        connection.close()
        with self._blocker.unblock(), patch.dict(connection.settings_dict, place):
            try:
                yield
            finally:
                connection.close()

    def ask(self, name: str, statement: str) -> Any:
        """Return the first value that a statement gives in one of them."""
        with psycopg.connect(self.address(name), autocommit=True) as session:
            cursor = session.execute(statement)
            return (cursor.fetchone() or [None])[0] if cursor.description else None


@contextmanager
def cluster(directories: pytest.TempPathFactory, blocker: DjangoDbBlocker) -> Iterator[Cluster]:
    """Run one; its database `test_postgres` has the tables of Sonar, and no rows."""
    place = directories.mktemp("cluster")
    place.chmod(0o755)
    template.copy_to(place / "postgres", *servers.FAST_AND_LOSSY)
    log = place / "postgres.log"
    with (
        embedded.socket_directory() as sockets,
        embedded.postgres(place / "postgres", sockets, log, *servers.FAST_AND_LOSSY) as url,
    ):
        yield Cluster(url, blocker)
