"""A whole Sonar without storage, for tests: each part can be taken away and put back."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import urllib3

from sonar.sandbox import processes
from tests.storage.services import Database, Queue
from tests.storage.workers import BEAT, worker
from tests.waiting import SOON, wait_for

COMMANDS = {name: worker(name, 2) for name in ("transfers", "control", "cleanup")}
COMMANDS["beat"] = BEAT
SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "tests.storage.plain_static",
    "SONAR_PLAN_SECONDS": "1",
    "SONAR_COMPACTION_SECONDS": "1",
    "SONAR_HEARTBEAT_SECONDS": "1",
    "SONAR_RATE_ANONYMOUS": "off",
    "SONAR_RATE_ACCOUNT": "off",
}


class Sonar:
    """A whole Sonar without storage: each part can be taken away and put back."""

    def __init__(self, place: Path, sockets: Path) -> None:
        self.place = place
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.database, self.redis = Database(place, sockets), Queue(place, sockets)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = listening.getsockname()[1]

    def start(self) -> None:
        """Start the web, PostgreSQL and Redis."""
        self.database.start()
        self.redis.start()
        self.env = os.environ | SETTINGS | {"SONAR_HOME": str(self.place)}
        self.env |= {"DATABASE_URL": self.database.url, "REDIS_URL": self.redis.url}
        bind = f"127.0.0.1:{self.port}"
        gunicorn = ["-m", "gunicorn", "--config=python:sonar.gunicorn_conf", "--workers=1"]
        self.run("web", *gunicorn, "--threads=4", "--bind", bind)

    def run(self, name: str, *arguments: str) -> None:
        log = self.place / f"{name}.log"
        command = [sys.executable, *arguments] if arguments else list(COMMANDS[name])
        if name == "beat":
            command += ["--schedule", str(self.place / "beat-schedule")]
        self.running[name] = processes.start(command, log, self.env)

    def start_senders(self) -> None:
        """Start the workers and the beat."""
        for name in COMMANDS:
            self.run(name)

    def end_senders(self) -> None:
        """End all of them that run."""
        running = COMMANDS.keys() & self.running.keys()
        processes.stop_together([self.running.pop(name) for name in running])

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        processes.stop(self.running.pop(name), how)

    def close(self) -> None:
        processes.stop_together([*self.running.values()])
        self.redis.stop()
        self.database.stop()

    def get(self, path: str) -> urllib3.BaseHTTPResponse:
        url = f"http://127.0.0.1:{self.port}{path}"
        return urllib3.request("GET", url, timeout=60, retries=False)

    def missing(self) -> dict[str, str]:
        """Return what /readyz says of the parts that do not work; its status must agree."""
        answer = self.get("/readyz")
        told: dict[str, Any] = answer.json()
        assert answer.status == (200 if told["ready"] else 503)
        return {name: part["detail"] for name, part in told["parts"].items() if not part["ok"]}

    def metric(self, name: str) -> float | None:
        """Return a sample of /metrics by its name and labels as they stand there."""
        answer = self.get("/metrics")
        assert answer.status == 200, answer.data
        found = [line for line in answer.data.decode().splitlines() if line.startswith(f"{name} ")]
        return float(found[0].rpartition(" ")[2]) if found else None

    def wait_until(self, missing: set[str], seconds: float = SOON) -> dict[str, str]:
        self.wait_for(lambda: set(self.missing()) == missing, seconds)
        return self.missing()

    def wait_for(self, done: Callable[[], bool], seconds: float = SOON) -> None:
        assert wait_for(done, seconds, pause=0.1), (self.missing(), self.words())

    def words(self) -> str:
        return "\n".join(processes.tail(self.place / f"{name}.log", 20) for name in COMMANDS)


def answers(sonar: Sonar) -> bool:
    try:
        return sonar.get("/healthz").status == 200
    except urllib3.exceptions.HTTPError:
        return False
