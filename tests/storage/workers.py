"""Celery processes of tests, with real queues and a real database."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from django.db import connection

from tests.waiting import wait_for

LONGEST_SECONDS = 240.0

CELERY = [sys.executable, "-m", "sonar"]
WORKER = [*CELERY, "worker", "--pool=threads", "--loglevel=INFO"]
BEAT = [*CELERY, "beat", "--loglevel=INFO", "--pidfile="]


def worker(queue: str, threads: int, name: str = "") -> list[str]:
    """Return the command of a worker of one queue."""
    options = ["-c", str(threads), "-Q", queue, "-n", f"{name or queue}@%h"]
    return [*WORKER, *options]


class Processes:
    """Celery processes on the database of this test."""

    def __init__(self, place: Path, settings: dict[str, str]) -> None:
        self.place = place
        self.running: list[subprocess.Popen[bytes]] = []
        name = connection.settings_dict["NAME"]
        url = os.environ["DATABASE_URL"].rpartition("/")[0]
        self.env = os.environ | {"DATABASE_URL": f"{url}/{name}"} | settings

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = self.place / f"{len(self.running)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*CELERY, *arguments], env=self.env, stdout=output, stderr=subprocess.STDOUT
            )
        self.running.append(process)
        return process

    @property
    def logs(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.place.glob("*.log")))

    def wait_for(self, done: Callable[[], bool], seconds: float = LONGEST_SECONDS) -> None:
        assert wait_for(done, seconds), self.logs[-4000:]

    def close(self) -> None:
        for process in reversed(self.running):
            if process.poll() is None:
                process.terminate()
        for process in self.running:
            process.wait(120)
