"""Three Sentinels, a Redis and its replica, real ones: all goes on after a failover."""

import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from matrix.answers.status import health
from matrix.http.throttling import Counts
from sonar.models import SignOfLife
from sonar.processes.redis_client import client_of
from sonar.sandbox import embedded, processes
from sonar.settings.queues import is_redis
from tests.ports import free_port
from tests.storage.workers import BEAT, CELERY, Processes, worker
from tests.waiting import wait_for

pytestmark = pytest.mark.long

NAME = "sonar"
NO_END = 10**10
"""Seconds of a period that does not end while this runs."""
WATCHING = """
bind 127.0.0.1
port {port}
sentinel monitor {name} 127.0.0.1 {master} 2
sentinel down-after-milliseconds {name} 3000
sentinel failover-timeout {name} 15000
"""


class Sentinels:
    """A Redis that three Sentinels watch, and one that follows it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.master, self.replica = free_port(), free_port()
        self.ports = [free_port() for _ in range(3)]
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        return ";".join(f"sentinel://127.0.0.1:{port}/0" for port in self.ports)

    def start(self) -> None:
        self.serve(self.master)
        self.serve(self.replica, "--replicaof", "127.0.0.1", str(self.master))
        for port in self.ports:
            config = self.place / f"{port}.conf"
            config.write_text(WATCHING.format(port=port, name=NAME, master=self.master))
            self.run(port, str(config), "--sentinel")

    def serve(self, port: int, *options: str) -> None:
        place = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(self.place)]
        self.run(port, *place, "--repl-diskless-sync-delay", "0", *options)

    def run(self, port: int, *arguments: str) -> None:
        log = self.place / f"{port}.log"
        command = [embedded.redis_binary(), *arguments]
        self.running[port] = processes.start(command, log, processes.plain())
        url = f"redis://127.0.0.1:{port}"
        processes.wait_until(lambda: embedded.redis_answers(url), self.running[port], "Redis", log)

    def close(self) -> None:
        processes.stop_together([*self.running.values()])


@pytest.fixture
def sentinels(tmp_path: Path, settings: Settings) -> Iterator[Sentinels]:
    settings.SONAR_REDIS_MASTER = NAME
    made = Sentinels(tmp_path)
    try:
        made.start()
        settings.REDIS_URL = made.url
        yield made
    finally:
        made.close()


def planned_after(moment: object) -> bool:
    return SignOfLife.objects.filter(name="planner", seen_at__gt=moment).exists()


def test_all_goes_on_after_a_failover(
    sentinels: Sentinels, real_commits: None, tmp_path: Path
) -> None:
    counts = Counts(sentinels.url)
    assert wait_for(lambda: counts.add("one", NO_END) > counts._own.get("one", NO_END) == 0, 120)
    settings = {"REDIS_URL": sentinels.url, "SONAR_REDIS_MASTER": NAME, "SONAR_PLAN_SECONDS": "1"}
    started = Processes(tmp_path, settings)
    try:
        started.start(*worker("control", 2)[len(CELERY) :])
        started.start(*BEAT[len(CELERY) :], "--schedule", str(tmp_path / "schedule"))
        started.wait_for(lambda: planned_after(timezone.now() - timedelta(seconds=2)))
        before = counts.get("one", NO_END)
        with client_of(sentinels.url) as client:
            assert wait_for(lambda: client.info("replication")["connected_slaves"] == 1, 120)

        processes.stop(sentinels.running[sentinels.master], signal.SIGKILL)
        died = timezone.now()
        assert wait_for(lambda: not health.look_at_redis().ok, 120, 0.05)
        started.wait_for(lambda: health.look_at_redis().ok)
        started.wait_for(lambda: planned_after(died + timedelta(seconds=5)))
        assert wait_for(lambda: counts.get("one", NO_END) == before, 120)
        with client_of(sentinels.url) as client:
            assert client.info("server")["tcp_port"] == sentinels.replica
        assert all(process.poll() is None for process in started.running), started.logs
        assert "Traceback" not in started.logs
    finally:
        started.close()


@pytest.mark.parametrize("url", ["sentinel://a;redis://b", "sentinel://", "sentinel://a:x/0"])
def test_other_addresses_are_refused(url: str) -> None:
    assert not is_redis(url)
    assert is_redis("sentinel://:secret@s1.example.org:26379/0;sentinel://[2001:db8::1]")
