"""What tests of the matrix share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client

from matrix.answers.status import figures
from sonar.roles import Role
from tests.benchmarks import loopback
from tests.matrix.registry import caller
from tests.matrix.world import World

Web = Callable[..., loopback.Web]


@pytest.fixture
def fresh_status(at_noon: None) -> None:
    """At noon nothing is remembered of the status, which is kept for some seconds."""
    figures.forget()


@pytest.fixture
def root(small_world: World) -> Client:
    """Return a client that is logged in as an administrator."""
    return caller(Role.ADMINISTRATOR, name="root")


@pytest.fixture
def web(real_commits: None, tmp_path: Path) -> Iterator[Web]:
    """Start Sonar's own web server on the database of this test, with these settings."""
    base = os.environ["DATABASE_URL"].rpartition("/")[0]
    url = f"{base}/{connection.settings_dict['NAME']}"
    with ExitStack() as stack:

        def started(**settings: str) -> loopback.Web:
            return stack.enter_context(loopback.sonar(tmp_path, {"DATABASE_URL": url} | settings))

        yield started
