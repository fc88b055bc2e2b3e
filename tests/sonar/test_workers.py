"""Real workers, started as the README says: how they end, and what they cost the database."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path

import pytest
from celery import VERSION_BANNER
from django.db import connection
from django.utils import timezone

from sonar import tasks
from sonar.__main__ import with_own_name
from sonar.models import Endpoint, Leftover, Probe, SignOfLife, Transfer
from sonar.movers import catalogue
from sonar.movers.base import aside
from sonar.ordering import request_probes
from sonar.work import cleanup, transfer_request
from tests.sonar import world
from tests.sonar.odd_worker import NO_WAY_BACK, NOTES, ODD

pytestmark = pytest.mark.usefixtures("real_commits")

PROJECT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 2
SOON = 180.0  # what a loaded machine may take to start or end a process


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (["worker", "-Q", "transfers", "-c", "9"], ["-n", "transfers-7@%h"]),
        (["worker", "--queues=control,cleanup@cern"], ["-n", "control-cleanup-cern-7@%h"]),
        (["worker", "--pool=threads"], ["-n", "worker-7@%h"]),
        (["worker", "-Q", "transfers", "-n", "mine@%h"], []),
        (["worker", "--hostname=mine@%h"], []),
        (["beat"], []),
    ],
)
def test_a_worker_without_a_name_gets_one_that_no_other_has(given: list[str], name: list[str]):
    assert with_own_name(given, 7) == [*given, *name]


class Worker:
    """One worker for a queue, with nothing set but what it must know."""

    def __init__(self, log: Path, queue: str) -> None:
        self.log = log
        readme = (PROJECT / "README.md").read_text()
        (line,) = re.findall(rf"python -m sonar (worker .* -Q {queue} .*)", readme)
        options = line.partition("#")[0].split()
        kept = {name: os.environ[name] for name in ("PATH", "REDIS_URL", "SONAR_HOME")}
        url = os.environ["DATABASE_URL"].rpartition("/")[0]
        kept["DATABASE_URL"] = f"{url}/{connection.settings_dict['NAME']}"
        kept["SONAR_SECRET_KEY"] = "only-for-tests"
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sonar", "-A", "tests.sonar.odd_worker", *options],
                cwd=PROJECT,
                env=kept | {"SONAR_STOP_SECONDS": str(STOP_SECONDS)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    def wait_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SOON
        while not done():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)


@pytest.fixture(autouse=True)
def _odd_movers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MOVERS", catalogue.MOVERS + ODD)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    started = Worker(tmp_path / "worker.log", "transfers")
    yield started
    if started.process.poll() is None:
        started.process.kill()
        started.process.wait()


def queued(*movers: str) -> list[Probe]:
    """Queue a probe for each, of as many links, and send them to the workers."""
    before = Endpoint.objects.count()
    ends = [world.endpoint(f"END-{before + number}") for number in range(11)]
    made = [
        world.queued(*link, mover=mover)
        for mover, link in zip(movers, permutations(ends, 2), strict=False)
    ]
    for probe in made:
        tasks.transfer.delay(str(probe.id))
    return made


@pytest.mark.long
def test_a_worker_whose_transfers_never_end_hands_them_back_and_ends_in_time(worker: Worker):
    probes = queued(*["deaf"] * 92)
    # What has been claimed and does not move yet would still hear that it is to stop.
    worker.wait_until(lambda: worker.said.count(NO_WAY_BACK) == len(probes))
    # All connections of its pool are in use then, as while hundreds of tests record their ends.
    probes += queued(*["greedy"] * 8)
    worker.wait_until(lambda: worker.said.count(NO_WAY_BACK) == len(probes))
    for _ in range(3):  # as the death of a launcher adds one to that of an operator
        worker.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    assert worker.process.wait(SOON) == 0
    assert "100 tests did not stop in time and were queued again" in worker.said
    assert "Traceback" not in worker.said
    assert set(Probe.objects.values_list("state", "started_at")) == {("queued", None)}
    assert Probe.objects.count() == len(probes)
    assert not Transfer.objects.exists()
    left = {f"{one.endpoint.base_url}/{one.path}" for one in Leftover.objects.all()}
    ordered = [transfer_request.order_for(probe) for probe in Probe.objects.all()]
    assert left == {url for one in ordered for url in (one.destination.url, aside(one).url)}
    # A server may yet create a file.
    assert cleanup.due_by_vantage(timezone.now()).get("", []) == []


@pytest.mark.long
def test_a_worker_ends_a_test_that_is_cancelled_and_goes_on_with_the_others(worker: Worker):
    cancelled, other = queued("slow", "slow")
    worker.wait_until(lambda: Probe.objects.filter(state="running").count() == 2)
    assert request_probes.cancel(cancelled.id, timezone.now()) is True
    worker.wait_until(Transfer.objects.exists)
    ended = Transfer.objects.get()
    assert (ended.id, ended.error) == (
        cancelled.id,
        "cancelled by an operator while the test was running",
    )
    assert Probe.objects.get().id == other.id


@pytest.mark.long
def test_a_worker_shares_connections_says_what_broke_and_ends_by_itself(worker: Worker):
    worker.wait_until(SignOfLife.objects.exists)
    before = sessions()
    talkative = queued(*["talkative"] * 4)
    worker.wait_until(lambda: Transfer.objects.count() == len(talkative))
    handless, broken = queued("handless", "broken")
    worker.wait_until(lambda: Transfer.objects.count() == len(talkative) + 2)
    worker.process.terminate()
    assert worker.process.wait(SOON) == 0
    assert "asked to stop" not in worker.said  # as it had nothing to do
    # Each probe notes its progress about four times; without a pool each note is a connection.
    assert NOTES > 30
    assert sessions() - before <= 8
    # It says which mover it cannot run.
    missing = "the program no-such-program (Debian package no-such-package) is not on the PATH"
    assert f"this worker cannot run the transfer tool handless: {missing}" in worker.said
    assert "run the transfer tool deaf" not in worker.said
    assert (
        failure_of(handless) == f"the transfer tool handless cannot run on this worker: {missing}"
    )
    # And what breaks: a traceback for whoever mends it, and a sentence for all.
    assert (
        failure_of(broken) == "internal error in Sonar (ValueError): see the worker log for details"
    )
    assert "Traceback (most recent call last)" in worker.said
    assert "ValueError: Invalid header value b'Bearer ***" in worker.said
    assert "sesame" not in worker.said
    assert not Probe.objects.exists()


def failure_of(probe: Probe) -> str:
    transfer = Transfer.objects.get(id=probe.id)
    assert (transfer.state, transfer.error_where) == ("failed", "control")
    return transfer.error


def sessions() -> int:
    """Return how many connections this database has ever been asked for."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT sessions FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


LOADED = """
import runpy, sys
sys.argv[1:] = ["--version"]
try:
    runpy.run_module("sonar", run_name="__main__")
except SystemExit:
    pass
from sonar.celery import app
app.loader.import_default_modules()
from sonar.database import tables
tables.of_this_code()
print(*app.tasks, *sys.modules)
import matrix.api.matrix_formats
print(*sys.modules)
"""


@pytest.mark.long
def test_a_worker_loads_no_page_and_who_writes_a_grid_nothing_of_the_schema():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], check=True, capture_output=True, text=True
    )
    version, *loaded = done.stdout.splitlines()
    assert version == VERSION_BANNER
    worker, grid = (set(line.split()) for line in loaded)
    assert "celery.bin.worker" in worker
    # Of shells, and of tables that are made: 10 MB.
    shells = {"click_repl", "prompt_toolkit", "pygments"}
    assert not worker & (shells | {"sonar.migrations.0001_initial"})
    assert {"sonar.tasks.transfer", "matrix.tasks.assess", "sonar.tasks"} <= worker
    others = {"numpy", "pandas", "pydantic", "cryptography"}
    others |= {"sonar.urls", "matrix.answers", "matrix.pages"}
    assert worker & others == set()
    assert grid & {"pydantic", "drf_spectacular.plumbing", "plotly", "matrix.plots"} == set()
