"""Ports on loopback, and Sonar's own web server on one of them."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import urllib3

from sonar.sandbox.processes import start, stop, wait_until

# As docker-compose.yml runs it, with its pool of connections; one worker, as the contests ask
# one question at a time.
GUNICORN = ["-m", "gunicorn", "sonar.wsgi", "--worker-class=gthread", "--workers=1", "--threads=8"]
POOL = {"SONAR_DATABASE_POOL": "8"}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Web:
    """Sonar's web server, over one kept connection."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.pool = urllib3.PoolManager(retries=False, timeout=600)

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
def sonar(home: Path, environment: dict[str, str]) -> Iterator[Web]:
    """Run Sonar's web server on the database that the environment names."""
    (home / "static").mkdir(exist_ok=True)
    port = free_port()
    command = [sys.executable, *GUNICORN, f"--bind=127.0.0.1:{port}"]
    process = start(command, home / "gunicorn.log", {**os.environ, **POOL, **environment})
    web = Web(f"http://127.0.0.1:{port}")
    try:
        wait_until(web.answers, process, "gunicorn", home / "gunicorn.log")
        yield web
    finally:
        stop(process)
