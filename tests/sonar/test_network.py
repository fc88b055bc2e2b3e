"""Tests of the network: by the same door as transfers, and never among them."""

import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from sonar import scheduler
from sonar.celery import app
from sonar.models import (
    Circuit,
    DirtyMark,
    Endpoint,
    Leftover,
    Mesh,
    NetworkResult,
    Probe,
    Profile,
    Schedule,
    SignOfLife,
    SizeClass,
    Transfer,
)
from sonar.movers.base import Stopped
from sonar.movers.watch import Watch
from sonar.obstacles.capacity import Capacity
from sonar.results import endings
from sonar.scheduler import dispatch
from sonar.work import probes
from tests.needs import needs
from tests.ports import free_port
from tests.programs.iperf3 import Iperf3Server, clients_of
from tests.sonar.world import NOW, endpoint, mesh
from tests.storage.workers import CELERY, Processes, worker
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Iperf3Server]:
    needs("iperf3", "setpriv")
    server = Iperf3Server(tmp_path).start()
    yield server
    server.close()


@pytest.fixture
def ends(settings) -> tuple[Endpoint, Endpoint]:
    """The endpoint that this process stands for, and one where nobody listens."""
    settings.SONAR_NETWORK_ENDPOINT = "GLASGOW_DATADISK"
    here = endpoint("GLASGOW", base_url="iperf3://glasgow.example.org")
    return here, endpoint("RAL", base_url=f"iperf3://127.0.0.1:{free_port()}")


def ordered(source: Endpoint, destination: Endpoint, mode: str = "push", **wishes: int) -> Probe:
    small = SizeClass.objects.get(name="small")
    request = scheduler.ProbeRequest(source, destination, small, "iperf3", mode, **wishes)
    return scheduler.order_all([request], NOW).probes[0]


def takes(*queues: str) -> None:
    """Let a worker live that takes from these queues."""
    names = sorted(["transfers", *queues])
    sign = SignOfLife(name="w", kind="worker", seen_at=NOW - SECOND, every_seconds=10, queues=names)
    SignOfLife.objects.bulk_create(
        [sign], update_conflicts=True, unique_fields=["name"], update_fields=["queues"]
    )


def at(server: Iperf3Server, where: Endpoint) -> None:
    """Let a server be that of an endpoint."""
    Endpoint.objects.filter(id=where.id).update(base_url=server.url)


@pytest.mark.parametrize(("mode", "end"), [("push", "source"), ("pull", "destination")])
def test_a_mesh_is_tested_from_the_ends_where_workers_are(ends, mode: str, end: str):
    endpoint("STORE", base_url="fake://store/data")
    endpoint("LANCS", base_url="iperf3://lancs.example.org")
    mesh(mover="iperf3", mode=mode)
    takes("transfers.http-tpc")
    assert scheduler.claim_due(NOW) == []
    assert set(Schedule.objects.values_list("skipped_because", flat=True)) == {"mover"}
    takes("transfers.http-tpc", "transfers.iperf3.GLASGOW_DATADISK")
    started = scheduler.claim_due(NOW)
    here = {f"{end}__name": "GLASGOW_DATADISK"}
    assert Probe.objects.filter(id__in=started, mover="iperf3", mode=mode, **here).count() == 2
    assert len(started) == 2  # both caps of two, one test of a link at a time
    rest = Schedule.objects.exclude(probe__isnull=False)
    assert set(rest.exclude(**here).values_list("skipped_because", flat=True)) == {"mover"}
    assert "mover" not in rest.filter(**here).values_list("skipped_because", flat=True)
    takes("transfers.iperf3.LANCS_DATADISK", "transfers.iperf3.GLASGOW_DATADISK")
    later = scheduler.claim_due(NOW)
    assert {getattr(probe, end).name for probe in Probe.objects.filter(id__in=later)} == {
        "LANCS_DATADISK"
    }


def test_an_ordered_test_waits_for_a_worker_at_its_end_and_says_so(ends):
    takes("transfers.fake")
    probe = ordered(*ends)
    assert probe.waits_because.startswith("No worker can run the transfer tool iperf3: ")
    assert probe.waits_because.endswith("and the setting SONAR_NETWORK_ENDPOINT.")
    takes("transfers.iperf3.RAL_DATADISK")
    assert scheduler.start_waiting(NOW) == []
    probe.refresh_from_db()
    assert probe.waits_because == (
        "In push mode, a worker at GLASGOW_DATADISK runs this test, but no such worker is running. "
        "Start a worker with SONAR_NETWORK_ENDPOINT=GLASGOW_DATADISK."
    )
    takes("transfers.iperf3.GLASGOW_DATADISK")
    assert scheduler.start_waiting(NOW) == [probe.id]


def in_queue(name: str) -> int:
    with app.connection_for_write() as queue:
        return int(queue.default_channel.client.llen(name))


def test_a_test_is_sent_to_the_end_that_does_the_work(ends):
    queues = "transfers.iperf3.GLASGOW_DATADISK", "transfers.iperf3.RAL_DATADISK"
    before = [in_queue(queue) for queue in queues]
    dispatch.send([ordered(*ends).id, ordered(*reversed(ends)).id])
    dispatch.send_quickly([ordered(*ends, "pull").id])
    assert [in_queue(queue) for queue in queues] == [before[0] + 1, before[1] + 2]


def test_a_worker_elsewhere_measures_nothing(ends, settings):
    settings.SONAR_NETWORK_ENDPOINT = ""
    probes.run(ordered(*ends).id)
    result = NetworkResult.objects.get()
    assert (result.state, result.error_where, result.error_is_permanent) == (
        *("failed", "control"),
        True,
    )
    assert result.error.endswith("this setting is empty on this worker")


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_a_result_is_no_transfer_and_in_no_rate(ends, server: Iperf3Server, mode: str):
    here, there = ends
    at(server, there)
    probe = ordered(*(ends if mode == "push" else (there, here)), mode, streams=2)
    Probe.objects.update(bytes=400_000_000)  # far more than what buffers hold
    began = timezone.now()
    probes.run(probe.id)
    result = NetworkResult.objects.get(id=probe.id)
    assert (result.state, result.error, result.error_where) == ("done", "", "")
    assert (result.mode, result.streams, result.ip_version) == (mode, 2, 4)
    assert result.started_at >= began
    assert 0 < result.bytes <= result.sent_bytes
    assert result.bytes / result.seconds > 1e6
    assert result.samples[-1][1] > 0
    assert (result.rtt_mean_ms is not None) == (mode == "push")
    assert not Probe.objects.exists()
    for model in (Transfer, Profile, DirtyMark, Leftover):
        assert not model.objects.exists(), model
    # What was sent counts against budgets all the same.
    Endpoint.objects.update(budget_bytes_per_day=10**9)
    left = Capacity.left(timezone.now()).budget_bytes
    assert left == {here.id: 10**9 - result.sent_bytes, there.id: 10**9 - result.sent_bytes}


def test_a_failure_says_where_to_whom_it_may_and_closes_the_end_in_time(ends):
    needs("iperf3", "setpriv")
    here, there = ends
    probes.run(ordered(here, there).id)
    result = NetworkResult.objects.get()
    assert (result.state, result.error_where, result.bytes) == ("failed", "destination", 0)
    assert result.error == "iperf3: unable to connect to server: Connection refused"
    assert Circuit.objects.get().endpoint == there
    assert (result.rtt_mean_ms, result.retransmits) == (None, None)


def test_a_stopped_test_goes_back_to_the_queue(ends, server: Iperf3Server):
    at(server, ends[1])
    probe = ordered(*ends)
    Probe.objects.update(bytes=10**12)
    taken = probes.claim(probe.id, timezone.now())
    watch = Watch(lambda moved: watch.stop() if moved > 10**6 else None)
    outcome = probes.carry_out(taken, watch)
    assert isinstance(outcome.error, Stopped)
    probes.finish(taken, outcome)
    probe.refresh_from_db()
    assert (probe.state, probe.started_at) == ("queued", None)
    assert not NetworkResult.objects.exists()
    assert clients_of(server.url) == []


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_a_killed_worker_leaves_no_client_and_its_test_is_lost(
    settings, server: Iperf3Server, tmp_path: Path
):
    here = endpoint("GLASGOW", base_url="iperf3://glasgow.example.org")
    there = endpoint("RAL", base_url=server.url)
    workers = Processes(tmp_path, {"SONAR_NETWORK_ENDPOINT": here.name})
    process = workers.start(*worker("transfers", 2)[len(CELERY) :])
    try:
        probe = ordered(here, there)
        Probe.objects.update(bytes=10**13)
        dispatch.send([probe.id])
        workers.wait_for(lambda: Probe.objects.filter(progress_bytes__gt=10**6).exists())
        assert clients_of(server.url)
        process.send_signal(signal.SIGKILL)
        assert wait_for(lambda: not clients_of(server.url), 120, 0.02)
    finally:
        workers.close()
    sign = SignOfLife.objects.get(kind="worker")
    assert "transfers.iperf3.GLASGOW_DATADISK" in sign.queues
    probe.refresh_from_db()
    probes.recover(probe.deadline + SECOND)
    result = NetworkResult.objects.get(id=probe.id)
    assert (result.state, result.error_where) == ("lost", "control")
    assert not Leftover.objects.exists()
    assert not Transfer.objects.exists()


def test_a_test_whose_end_is_retired_while_it_waits_has_failed(ends):
    takes("transfers.fake")
    probe = ordered(*ends)
    Endpoint.objects.filter(id=ends[1].id).update(retired_at=NOW)
    assert scheduler.start_waiting(NOW) == []
    result = NetworkResult.objects.get(id=probe.id)
    assert (result.state, result.error_where, result.seconds) == ("failed", "control", 0.0)
    assert "was retired while the test waited" in result.error
    assert not Transfer.objects.exists()


def test_what_is_too_old_is_not_kept(ends):
    facts = {"source": ends[0], "destination": ends[1], "mover": "iperf3", "mode": "push"}
    facts |= {"streams": 1, "state": "done", "seconds": 1.0, "bytes": 1}
    for days in (9, 11):
        NetworkResult.objects.create(started_at=NOW - timedelta(days=days), **facts)
    endings.drop_expired_of_network(NOW, keep_days=10)
    assert NetworkResult.objects.get().started_at == NOW - timedelta(days=9)


def test_a_mesh_of_files_leaves_servers_of_the_network_out(ends):
    endpoint("STORE", base_url="fake://store/data")
    endpoint("OTHER", base_url="fake://other/data")
    mesh(mover="fake")
    takes("transfers.fake")
    started = scheduler.claim_due(NOW)
    names = {probe.source.name for probe in Probe.objects.filter(id__in=started)}
    assert names == {"STORE_DATADISK", "OTHER_DATADISK"}
    assert Mesh.objects.get().mover == "fake"
