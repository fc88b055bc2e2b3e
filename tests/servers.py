"""The servers of the test run, as a pytest plugin: an own PostgreSQL and Redis, real ones.

A plugin and not a conftest, because they must run before pytest-django reads the settings.
"""

import gc
import os
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sonar.sandbox import embedded
from tests import needs, template

# Until all is imported, of which nothing goes away (conftest.py).
gc.disable()

# The suite is about what PostgreSQL does, not about surviving a power cut.
FAST_AND_LOSSY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")

_running = ExitStack()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    """Start the services and point the settings at them."""
    home = Path(_running.enter_context(tempfile.TemporaryDirectory(prefix="sonar-tests-")))
    home.chmod(0o755)
    (home / "static").mkdir()
    needs.hide_programs(home / "bin")
    sockets = _running.enter_context(embedded.socket_directory())
    os.environ["SONAR_HOME"] = str(home)
    os.environ["SONAR_SECRET_KEY"] = "only-for-tests"
    # What looks at all newest tests loads numpy: a test that wants it looks by itself.
    os.environ["SONAR_INCIDENTS_SECONDS"] = "3600"
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright's loop and Django's ORM
    template.copy_to(home / "postgres", *FAST_AND_LOSSY)
    database = embedded.postgres(home / "postgres", sockets, home / "pg.log", *FAST_AND_LOSSY)
    os.environ["DATABASE_URL"] = _running.enter_context(database)
    queue = embedded.redis_server(home / "redis", sockets, home / "redis.log")
    os.environ["REDIS_URL"] = _running.enter_context(queue)
    return (yield)


def pytest_unconfigure() -> None:
    _running.close()
