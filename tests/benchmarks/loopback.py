"""Sonar's own web server on a port of loopback."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen

import psutil
import urllib3

from sonar import gunicorn_conf
from sonar.sandbox.processes import start, stop, wait_until
from tests.benchmarks import server
from tests.benchmarks.bench import Bench
from tests.ports import free_port

# As docker-compose.yml runs it, with its pool of connections; one worker, unless said otherwise,
# as the contests ask one question at a time.
GUNICORN = ["-m", "gunicorn", "--config=python:sonar.gunicorn_conf"]
ENVIRONMENT = {
    "SONAR_DATABASE_POOL": "8",
    "SONAR_RATE_ANONYMOUS": "off",
    "SONAR_RATE_ACCOUNT": "off",
}


class Web:
    """Sonar's web server, over one kept connection."""

    def __init__(self, url: str, process: Popen[bytes]) -> None:
        self.url = url
        self._process = process
        self.pool = urllib3.PoolManager(retries=False, timeout=600)

    def workers(self) -> list[int]:
        """Return the processes that answer."""
        return [child.pid for child in psutil.Process(self._process.pid).children()]

    def answers(self) -> bool:
        try:
            return self.pool.request("GET", f"{self.url}/api/v1/matrix/").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def get(
        self, path: str, query: dict[str, str], headers: dict[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        return self.pool.request("GET", f"{self.url}{path}", fields=query, headers=headers)

    def matrix(self, query: dict[str, str]) -> bytes:
        """Return the body of a matrix answer as it comes."""
        response = self.get("/api/v1/matrix/", query)
        if response.status != 200:
            raise RuntimeError(f"Sonar answered {response.status}: {response.data[:200]!r}")
        return response.data


@contextlib.contextmanager
def sonar(home: Path, environment: dict[str, str], workers: int = 1) -> Iterator[Web]:
    """Run Sonar's web server on the database that the environment names."""
    (home / "static").mkdir(exist_ok=True)
    port = free_port()
    command = [sys.executable, *GUNICORN, f"--bind=127.0.0.1:{port}", f"--workers={workers}"]
    process = start(command, home / "gunicorn.log", {**os.environ, **ENVIRONMENT, **environment})
    web = Web(f"http://127.0.0.1:{port}", process)
    try:
        wait_until(web.answers, process, "gunicorn", home / "gunicorn.log")
        yield web
    finally:
        stop(process, signal.SIGINT)  # at once: to SIGTERM it waits for who keeps a connection


def as_it_runs(bench: Bench) -> AbstractContextManager[Web]:
    """Run it with as many processes as `make run` does, on the data of the benchmarks."""
    environment = server.environment(bench.home, bench.url)
    return sonar(bench.home, environment, workers=gunicorn_conf.workers)
