"""A second database on the server of the run, filled by a program of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import environ

from django.db import connection

from tests import template
from tests.benchmarks import server
from tests.benchmarks.bench import Bench


@contextmanager
def another(bench: Bench, name: str, argument: object) -> Iterator[str]:
    """Make it, let tests.benchmarks.fill fill it, and give its URL."""
    url = bench.url.rpartition("/")[0] + f"/{name}"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {name} TEMPLATE {template.NAME}")
    command = [sys.executable, "-m", "tests.benchmarks.fill", name, str(argument)]
    with bench.at_work(f"Filling the database {name}"):
        variables = {**environ, **server.environment(bench.home, url)}
        subprocess.run(command, check=True, env=variables)
    yield url
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
