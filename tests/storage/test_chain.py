"""The whole chain on real parts: beat, planner, Redis, Celery worker, XRootD, PostgreSQL, page."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from django.utils import timezone

from sonar import tasks
from sonar.models import Endpoint, Leftover, Probe, Schedule, SizeClass, Transfer
from sonar.registry import file
from sonar.work import cleanup, probes, transfer_request
from tests.sonar.world import queued
from tests.storage.conftest import Pair
from tests.storage.workers import Processes
from tests.storage.xrootd import give_to_server

pytestmark = pytest.mark.usefixtures("real_commits")

SLOW = 1e6  # bytes per second: 12 MB take twelve seconds, time enough to interrupt them
WORKER = ["worker", "--pool=threads", "-c", "8", "--loglevel=INFO"]

REGISTRY = """
size_classes:
  - {{name: small, from_bytes: 0, test_bytes: 200000}}
  - {{name: medium, from_bytes: 1000000, test_bytes: 2000000}}
  - {{name: large, from_bytes: 10000000, test_bytes: 12000000}}
sites: [{{name: A, tier: 1}}, {{name: B, tier: 2}}]
credentials:
  - {{name: token_a, hosts: [127.0.0.1, localhost]}}
  - {{name: token_b, hosts: [127.0.0.1, localhost]}}
  - {{name: reads_a, hosts: [127.0.0.1, localhost]}}
endpoints:
  - name: A_DATADISK
    site: A
    base_url: "{a}/base"
    credential: "{token_a}"
    credential_lent: "{reads_a}"
  - name: B_DATADISK
    site: B
    base_url: "{b}/base"
    credential: "{token_b}"
    lend_credential: true
meshes:
  - {{name: pull, every: {{small: 1h, medium: 1h, large: 1h}}}}
  - {{name: push, mode: push, sources: [A_DATADISK], every: {{small: 1h}}}}
"""


def start_all(processes: Processes) -> None:
    processes.start(*WORKER, "-Q", "transfers", "-n", "transfers@%h")
    processes.start(*WORKER, "-Q", "control,cleanup", "-n", "control@%h")
    processes.start("beat", "--pidfile=", "--schedule", str(processes.place / "beat"))


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    settings = {
        "SONAR_PLAN_SECONDS": "1",
        "SONAR_RECOVERY_SECONDS": "1",
        "SONAR_CLEANUP_SECONDS": "1",
        "SONAR_RESEND_SECONDS": "2",
        "SONAR_DATABASE_POOL": "4",
        "SONAR_CREDENTIALS_DIR": str(tmp_path / "credentials"),
    }
    (tmp_path / "credentials").mkdir()
    started = Processes(tmp_path, settings)
    yield started
    started.close()


def register(pair: Pair, processes: Processes, source_url: str = "") -> None:
    """Load a registry of these two servers, the first by way of another address if given."""
    credentials = Path(processes.env["SONAR_CREDENTIALS_DIR"])
    names = {"token_a": pair.source_token, "token_b": pair.destination_token, "reads_a": ""}
    if pair.source_token:
        names["reads_a"] = pair.source.macaroon("DOWNLOAD")
    for name, token in names.items():
        if token:
            (credentials / name).write_text(token)
    file.load(
        REGISTRY.format(
            a=source_url or pair.source.url,
            b=pair.destination.url,
            **{name: name if token else "" for name, token in names.items()},
        )
    )


def files_left(pair: Pair) -> list[Path]:
    return [
        path
        for server in (pair.source, pair.destination)
        for path in server.data.rglob("incoming/*")
        if path.is_file()
    ]


def test_due_tests_over_tls_with_tokens_show_on_the_page_and_no_token_reaches_a_log(
    guarded, processes, live_server
):
    processes.env["SONAR_CA_BUNDLE"] = str(guarded.source.authority.bundle)
    register(guarded, processes)
    start_all(processes)
    processes.wait_for(lambda: Transfer.objects.count() >= 7)
    assert list(Transfer.objects.exclude(state="done").values_list("error", flat=True)) == []
    modes = sorted(Transfer.objects.values_list("profile__mode", flat=True))
    assert modes == ["pull"] * 6 + ["push"]
    assert files_left(guarded) == []
    for size in ("small", "medium", "large"):
        answer = requests.get(f"{live_server.url}/api/v1/matrix/", {"size": size}, timeout=180)
        cells = answer.json()["cells"]
        assert cells["state"] == [["not_applicable", "measured"], ["measured", "not_applicable"]]
        done = Transfer.objects.filter(size_class__name=size, source__name="A_DATADISK")
        rates = [one.bytes / one.seconds / 1e6 for one in done]
        assert cells["value"][0][1] == pytest.approx(sum(rates) / len(rates), rel=1e-3)
    page = requests.get(live_server.url, timeout=180).text
    assert "A_DATADISK" in page
    for token in (guarded.source_token, guarded.destination_token):
        assert token not in processes.logs


def running_large() -> bool:
    """Say whether the one runs that the slow road makes last: towards A the bytes pass it by."""
    large = Probe.objects.filter(state="running", size_class__name="large")
    return large.filter(source__name="A_DATADISK").exists()


@pytest.mark.long
def test_a_worker_that_stops_hands_its_tests_back_and_a_killed_one_loses_them_once(
    mortal, slow_road, processes
):
    """No file is left: the first deletes its own, and recovery those of the second."""
    road = slow_road(mortal.source, SLOW)
    register(mortal, processes, road.url)
    start_all(processes)
    processes.wait_for(running_large)
    time.sleep(0.5)
    worker = processes.running[0]
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(120) == 0
    assert not Probe.objects.filter(state="running").exists()
    assert Probe.objects.filter(state="queued", size_class__name="large").exists()
    assert files_left(mortal) == []
    road.hurries = True
    worker = processes.start(*WORKER, "-Q", "transfers", "-n", "again@%h")
    processes.wait_for(lambda: not Probe.objects.exists())
    assert set(Transfer.objects.values_list("state", flat=True)) == {"done"}

    road.hurries = False
    Schedule.objects.update(next_due=timezone.now())
    processes.wait_for(running_large)
    time.sleep(0.5)
    worker.kill()
    worker.wait()
    running = set(Probe.objects.filter(state="running").values_list("id", flat=True))
    assert running
    past = Probe.objects.filter(state="running").update(deadline="2000-01-01T00:00:00Z")
    assert past == len(running)
    processes.wait_for(lambda: not Probe.objects.filter(id__in=running).exists())
    lost = Transfer.objects.filter(id__in=running)
    assert {(one.state, one.error_where) for one in lost} == {("lost", "control")}
    assert lost.count() == len(running)
    processes.wait_for(lambda: files_left(mortal) == [])
    processes.wait_for(lambda: not Leftover.objects.exists())


@pytest.mark.long
def test_what_a_first_run_left_is_cleaned_while_a_second_run_is_under_way(
    mortal, slow_road, processes
):
    road = slow_road(mortal.source, SLOW / 2)
    register(mortal, processes, road.url)
    probe = one_probe("large")
    first = probes.claim(probe.id, timezone.now())
    left = mortal.destination.data / "base" / transfer_request.incoming_path(first)
    left.parent.mkdir(parents=True)
    give_to_server(left.parent.parent)
    give_to_server(left.parent)
    left.write_bytes(b"half of it")
    give_to_server(left)
    assert probes.abandon({first: ""}, "told to stop")
    tasks.transfer.delay(str(probe.id))
    processes.start(*WORKER, "-Q", "transfers", "-n", "transfers@%h")
    second = left.with_name(f"{left.name}.2")
    processes.wait_for(second.exists)
    assert left.exists()
    Leftover.objects.update(next_try=timezone.now())
    cleanup.clean(seconds=60)
    assert not left.exists()
    assert second.exists()
    assert running_large()
    road.hurries = True
    processes.wait_for(lambda: not Probe.objects.exists())
    assert Transfer.objects.get().state == "done"
    assert files_left(mortal) == []


def one_probe(size: str) -> Probe:
    """Queue one test between the two servers; no planner is there."""
    size_class = SizeClass.objects.get(name=size)
    return queued(*Endpoint.objects.order_by("name"), size_class=size_class, mover="http-tpc")
