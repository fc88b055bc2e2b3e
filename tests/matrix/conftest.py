"""What tests of the matrix share."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from pytest_django import DjangoDbBlocker

from matrix.answers.status import figures
from sonar.models import Site
from sonar.ordering import request_probes
from sonar.people.roles import Role
from tests.accounts import account
from tests.benchmarks import loopback
from tests.matrix import world
from tests.matrix.registry import caller
from tests.matrix.world import World
from tests.scenes import standing

Web = Callable[..., loopback.Web]


def _uses(item: pytest.Item, fixture: str) -> bool:
    return fixture in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make the small world once for a module, after the tests that must not see it.

    Where a test of the module really commits, it would not see it: there each has its own.
    """
    committing = {item.path for item in items if _uses(item, "transactional_db")}
    here = Path(__file__).parent
    for item in items:
        if _uses(item, "small_world") and item.path.parent == here and item.path not in committing:
            # Before the transaction of the test, which ends before that of the world.
            item.fixturenames.insert(0, "standing_world")  # type: ignore[attr-defined]
    modules = groupby(items, attrgetter("path"))
    stands = partial(_uses, fixture="standing_world")
    items[:] = chain.from_iterable(sorted(tests, key=stands) for _, tests in modules)


@pytest.fixture(scope="module")
def standing_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with standing(django_db_blocker, world.make) as made:
        yield made


@pytest.fixture
def small_world(request: pytest.FixtureRequest, db: None) -> World:
    """Return three sites, their endpoints, and a mesh over all links; nothing is measured."""
    if "standing_world" not in request.fixturenames:
        return world.make()
    # For each test a version that nothing is known of yet, and objects that it may change.
    Site.objects.filter(pk=0).update(tier=0)
    return deepcopy(request.getfixturevalue("standing_world"))


@pytest.fixture
def fresh_status(at_noon: None) -> None:
    """At noon nothing is remembered of the status, which is kept for some seconds."""
    figures.forget()


@pytest.fixture
def root(small_world: World) -> Client:
    """Return a client that is logged in as an administrator."""
    return caller(Role.ADMINISTRATOR, name="root")


@pytest.fixture
def operator(client: Client, small_world: World) -> Client:
    client.force_login(account(Role.OPERATOR))
    return client


@pytest.fixture
def nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are told nothing of tests that are ordered."""
    monkeypatch.setattr(request_probes, "send", lambda ids: None)


@pytest.fixture
def web(real_commits: None, tmp_path: Path) -> Iterator[Web]:
    """Start Sonar's own web server on the database of this test, with these settings."""
    base = os.environ["DATABASE_URL"].rpartition("/")[0]
    url = f"{base}/{connection.settings_dict['NAME']}"
    with ExitStack() as stack:

        def started(**settings: str) -> loopback.Web:
            return stack.enter_context(loopback.sonar(tmp_path, {"DATABASE_URL": url} | settings))

        yield started
