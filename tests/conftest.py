"""What every test may use."""

from __future__ import annotations

import atexit
import gc
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from cachetools import LRUCache
from django.db import connection
from django.test import TransactionTestCase, override_settings
from django.utils import timezone
from hypothesis import HealthCheck
from pytest_django import DjangoDbBlocker, Settings

from sonar.movers.catalogue import Program
from tests import handlers
from tests.matrix import world

if TYPE_CHECKING:  # its library comes with a web framework, which few tests need
    from tests.provider import Provider

# The worlds of the tests stand still in these months, whenever they run.
MONTHS = [datetime(2026, month, 1, tzinfo=UTC) for month in (10, 11, 12)]


# How many examples Hypothesis tries. `quick` and `thorough`, CI's, take the same ones each time, so
# that what has passed passes again; `searching` looks for new ones, for whoever has the time.
# Nothing is timed: the machine may be busy. That fixtures stay from one example to the next is on
# purpose.
COMMON = hypothesis.settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
hypothesis.settings.register_profile("searching", COMMON, max_examples=400)
hypothesis.settings.register_profile("thorough", COMMON, max_examples=30, derandomize=True)
hypothesis.settings.register_profile("quick", COMMON, max_examples=15, derandomize=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "quick")

# Files are served as they are, as hashed names need a collectstatic first; and who logs in does not
# wait for a hash that is slow on purpose.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


# Of objects beyond those that were freed: most of a request are, before anybody looks.
YOUNG = 50_000


def pytest_collection_finish() -> None:
    """Let the collector of garbage, off until now, pass by what was imported.

    To look at that costs a tenth; to look for more every 700 objects, as Python does, a twentieth.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 20)
    gc.enable()
    # Extensions look for what has leaked as the process ends; before, pytest collects once more.
    atexit.register(gc.unfreeze)


@pytest.fixture(scope="session", autouse=True)
def _settings_of_tests() -> Iterator[None]:
    # Processes that tests start look for incidents less often (tests/servers.py) than this says.
    often = {"SONAR_INCIDENTS_SECONDS": 60}
    with override_settings(STORAGES=STORAGES, PASSWORD_HASHERS=HASHERS, **often), handlers.shared():
        yield


@pytest.fixture(scope="session", autouse=True)
def _localhost_without_a_file_of_hosts() -> Iterator[None]:
    """Let localhost be 127.0.0.1 for this process where no /etc/hosts says so, as in a chroot."""
    look_up = socket.getaddrinfo

    def at_home(host: Any, *rest: Any, **named: Any) -> Any:
        return look_up("127.0.0.1" if host == "localhost" else host, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        try:
            look_up("localhost", 80)
        except socket.gaierror:
            patch.setattr(socket, "getaddrinfo", at_home)
        yield


@pytest.fixture(scope="session", autouse=True)
def _patience() -> Iterator[None]:
    """Wait long for servers of the tests, which answer late on a busy machine."""
    from django.conf import settings

    from matrix.answers.status import health
    from matrix.http import throttling
    from sonar.database import tables
    from sonar.people import issuer
    from sonar.processes import full_disk
    from sonar.scheduler import waiting

    with pytest.MonkeyPatch.context() as patch:
        for module in (tables, health):
            patch.setattr(module, "LONGEST_SECONDS", 60)
        for module in (full_disk, throttling, issuer):
            patch.setattr(module, "ANSWER_SECONDS", 60)
        for module in (issuer, waiting):
            patch.setattr(module, "LONGEST_WAIT_SECONDS", 60)
        patch.setattr(issuer, "CONNECT_SECONDS", 60)
        patch.setattr(throttling, "counts", throttling.Counts(settings.REDIS_URL))
        yield


@pytest.fixture(scope="session", autouse=True)
def _brief_flush() -> Iterator[None]:
    from tests import flush

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", flush.empty)
        yield


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget answers: in another database the same version may stand for something else.

    Pages read every few seconds whether all tests are stopped: here only after it was changed, so
    that they take the same number of statements each time.
    """
    from matrix.http import questions
    from matrix.store import registry
    from matrix.store.cache import ANSWERS, STANDINGS, Kept
    from sonar.models import AllTests

    not_stopped = Kept[AllTests](LRUCache(1))
    not_stopped.get("", lambda: AllTests(id=1))
    monkeypatch.setattr(registry, "_stopped", not_stopped)

    ANSWERS.forget()
    STANDINGS.forget()
    questions.forget()


@pytest.fixture(autouse=True)
def _year_of_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write times as in the year of the world, whenever the tests run."""
    from sonar.notation import windows

    monkeypatch.setattr(windows, "this_year", lambda: world.NOW.year)


@pytest.fixture(autouse=True)
def _nobody_counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count requests and wrong passwords for each test apart: Redis keeps them for minutes."""
    from matrix.http import throttling

    digest = throttling.digest
    monkeypatch.setattr(throttling, "digest", lambda name: digest(f"{request.node.nodeid} {name}"))


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Take the database that is there already, with its tables (template.py)."""
    return True


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Make the partitions for tests that write transfers past the door."""
    from sonar.results import store

    with django_db_blocker.unblock():
        store.make_months(MONTHS)


@pytest.fixture
def real_commits(transactional_db: None) -> None:
    """A database that other threads and processes see, with the default size classes."""
    from tests import flush

    assert not connection.in_atomic_block, "a scene of the module stands in a transaction"
    flush.add_size_classes()


@pytest.fixture
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process, a server in one of its threads too, live at the world's noon."""
    monkeypatch.setattr(timezone, "now", lambda: world.NOW)


@pytest.fixture
def small_world(db: None) -> world.World:
    """Return three sites, their endpoints, and a mesh over all links; nothing is measured."""
    return world.make()


@pytest.fixture(scope="session")
def one_provider() -> Iterator[Provider]:
    """Run an OpenID provider as long as anybody may ask it."""
    from tests.provider import provider

    with provider() as running:
        yield running


@pytest.fixture
def provider(one_provider: Provider, settings: Settings) -> Provider:
    """A provider that people of this Sonar log in at; it does not lie yet."""
    one_provider.honest()
    for name, value in one_provider.settings().items():
        setattr(settings, name, value)
    return one_provider


@pytest.fixture
def every_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every mover believe that its programs are there: for tests that start none of them."""
    monkeypatch.setattr(Program, "missing", lambda program: "")


@pytest.fixture
def unknown_host(monkeypatch: pytest.MonkeyPatch) -> str:
    """Give a host name of which this process is told at once that nobody knows it.

    A real name server may be silent for longer than a test has time.
    """
    name, look_up = "no-such-host.invalid", socket.getaddrinfo

    def refuse(host: Any, *rest: Any, **named: Any) -> Any:
        if host == name:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return name
