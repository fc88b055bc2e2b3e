"""Which movers workers offer, and what waits for a worker that can run its mover."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from sonar import scheduler
from sonar.celery import app
from sonar.models import Leftover, Mesh, Schedule, SignOfLife
from sonar.movers import catalogue
from sonar.movers.catalogue import Program
from sonar.obstacles import catalogue as obstacles
from sonar.obstacles import worker_movers
from sonar.scheduler import dispatch
from sonar.work import cleanup
from tests.sonar.world import NOW, endpoint, mesh, queued, request, three_endpoints

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def worker(name: str, *queues: str, seen_at: datetime = NOW - SECOND) -> None:
    SignOfLife.objects.create(
        name=name, kind="worker", seen_at=seen_at, every_seconds=10, queues=sorted(queues)
    )


def test_offers_are_those_of_workers_that_live():
    assert worker_movers.by_living(NOW) == {}
    worker("control@a", "control")
    assert worker_movers.by_living(NOW) == {}
    worker("transfers@a", "transfers", "transfers.http-tpc", "transfers.no-more")
    worker("transfers@b", "transfers", "transfers.fake")
    worker("transfers@c", "transfers", "transfers.gridftp", seen_at=NOW - 60 * SECOND)
    worker("transfers@d", "transfers@cern", "transfers.gridftp@cern")
    offered = {"": {"http-tpc", "fake"}, "cern": {"gridftp"}}
    assert worker_movers.by_living(NOW) == offered


def test_a_worker_offers_what_it_has_the_tools_for(monkeypatch, settings):
    settings.SONAR_NETWORK_ENDPOINT = "RAL_NET"
    monkeypatch.setattr(Program, "missing", lambda program: f"{program.name} is not there")
    here = ["transfers.http-tpc", "transfers.fts3", "transfers.fake"]
    assert worker_movers.queues_here() == here
    monkeypatch.setattr(Program, "missing", lambda program: "")
    names = [name for name in catalogue.names() if name != "iperf3"]
    queues = worker_movers.queues_here()
    assert queues == [*(f"transfers.{name}" for name in names[:-1]), queues[-2], "transfers.fake"]
    assert queues[-2] == "transfers.iperf3.RAL_NET"
    settings.SONAR_NETWORK_ENDPOINT = ""
    assert worker_movers.queues_here() == [f"transfers.{name}" for name in names]


def test_scheduled_tests_wait_with_the_reason_until_somebody_can_run_their_mover():
    three_endpoints()
    mesh()
    mover = Mesh.objects.get().mover
    worker("transfers@a", "transfers", "transfers.gridftp")
    assert scheduler.claim_due(NOW) == []
    reasons = set(Schedule.objects.values_list("skipped_because", "skipped_since"))
    assert reasons == {("mover", NOW)}
    worker("transfers@b", "transfers", worker_movers.queue_of(mover))
    assert scheduler.claim_due(NOW)


def test_while_no_worker_lives_tests_are_queued_as_ever():
    three_endpoints()
    mesh()
    assert scheduler.claim_due(NOW)


def test_ordered_tests_wait_with_the_sentence_and_those_of_the_foreground_do_not():
    glasgow, lancs, ral = three_endpoints()
    worker("transfers@a", "transfers", "transfers.gridftp")
    (waiting,), started = scheduler.order_all([request(glasgow, lancs)], NOW)
    assert (waiting.state, started) == ("waiting", [])
    sentence = "No worker can run the transfer tool fake: start a worker of this version of Sonar."
    assert waiting.waits_because == sentence
    (own,), _ = scheduler.order_all([request(ral, lancs)], NOW, "here")
    assert own.state == "queued"
    worker("transfers@b", "transfers", "transfers.fake")
    assert scheduler.start_waiting(NOW) == [waiting.id]


def in_queue(mover: str) -> int:
    with app.connection_for_write() as queue:
        return int(queue.default_channel.client.llen(worker_movers.queue_of(mover)))


def test_each_test_is_sent_to_those_who_offer_its_mover():
    glasgow, lancs, ral = three_endpoints()
    links = {(glasgow, lancs): "fake", (lancs, ral): "http-tpc", (ral, glasgow): "fake"}
    probes = [queued(*ends, mover=mover) for ends, mover in links.items()]
    before = in_queue("fake"), in_queue("http-tpc")
    gone = probes.pop()
    gone.delete()
    dispatch.send([probe.id for probe in probes])
    assert (in_queue("fake"), in_queue("http-tpc")) == (before[0] + 1, before[1] + 1)


def test_who_saves_a_mesh_is_told_that_nobody_can_run_its_mover():
    worker("transfers@a", "transfers", "transfers.fake", seen_at=timezone.now())
    for site in ("GLASGOW", "RAL"):
        endpoint(site, base_url=f"ftp://{site.lower()}.example.org/data")
    mesh("old", mover="gridftp", mode="push")
    assert obstacles.notice(timezone.now()) == (
        "The mesh old: No worker can run the transfer tool gridftp: a worker needs "
        "the program globus-url-copy (Debian package globus-gass-copy-progs) and the program "
        "setpriv (Debian package util-linux)."
    )
    Mesh.objects.update(enabled=False)
    assert obstacles.notice(timezone.now()) == ""


def test_a_file_of_a_mover_that_cannot_run_here_is_left_to_who_can(monkeypatch):
    glasgow, _, _ = three_endpoints()
    now = timezone.now()
    kept = {"endpoint": glasgow, "since": now, "next_try": now, "error": "", "tries": 0}
    Leftover.objects.create(path="sonar/incoming/1", mover="gridftp", **kept)
    monkeypatch.setattr(Program, "missing", lambda program: f"{program.name} is not there")
    assert cleanup.due_by_vantage(now).get("", []) == []
    assert cleanup.claim(glasgow.id, now) is None
    Leftover.objects.create(path="sonar/incoming/2", mover="fake", **kept)
    claimed = cleanup.claim(glasgow.id, now)
    assert claimed is not None
    assert claimed.path == "sonar/incoming/2"
