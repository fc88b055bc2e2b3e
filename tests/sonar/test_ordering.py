"""Tests that people order: all or none, under the planner's lock, sent after the commit."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from sonar import ordering, scheduler, tasks
from sonar import settings as project
from sonar.celery import app
from sonar.models import Downtime, Endpoint, Probe, SizeClass
from sonar.ordering import PlannerBusyError, RefusedError, Wish, order
from sonar.scheduler.claims import PLANNER_LOCK
from tests import refusing
from tests.sonar.world import NOW, endpoint, mesh, three_endpoints

HOUR = timedelta(hours=1)


def small() -> SizeClass:
    return SizeClass.objects.get(name="small")


def wishes(source: Endpoint, destination: Endpoint, count: int = 1) -> list[Wish]:
    return [Wish(source, destination, small(), "fake") for _ in range(count)]


def refused(wished: list[Wish]) -> dict[str, list[str]]:
    with pytest.raises(RefusedError) as caught:
        order(wished, NOW)
    return caught.value.errors


def test_all_are_queued_with_what_was_wished(db):
    glasgow, lancs, _ = three_endpoints()
    wish = Wish(glasgow, lancs, small(), "fake", "push", 4)
    probes = order([wish, wish], NOW)
    assert len({probe.id for probe in probes}) == 2
    for probe in Probe.objects.all():
        assert (probe.state, probe.mesh, probe.schedule) == ("queued", None, None)
        assert (probe.mover, probe.mode, probe.streams) == ("fake", "push", 4)
        assert probe.requested_at == probe.sent_at == NOW
        assert probe.bytes == small().test_bytes


def test_a_cap_that_bears_only_some_refuses_all_and_says_how_many_it_bears(db):
    glasgow, lancs, _ = three_endpoints()
    Endpoint.objects.filter(id=lancs.id).update(inbound_cap=5)
    lancs.refresh_from_db()
    order(wishes(glasgow, lancs), NOW)
    told = refused(wishes(glasgow, lancs, 2))
    assert told == {
        "source": ["GLASGOW_DATADISK sends at most 2 tests at once: there is room for 1 more."]
    }
    assert Probe.objects.count() == 1


def test_a_full_cap_says_so_for_either_end(db):
    glasgow, lancs, ral = three_endpoints()
    order(wishes(glasgow, lancs, 2), NOW)
    assert "already sends its cap of 2" in refused(wishes(glasgow, ral))["source"][0]
    assert "already receives its cap of 2" in refused(wishes(ral, lancs))["destination"][0]


def test_what_the_planner_has_queued_counts_too(db, settings: Settings):
    settings.SONAR_IN_FLIGHT = 6
    glasgow, lancs, _ = three_endpoints()
    mesh()
    assert scheduler.claim_due(NOW)
    assert set(refused(wishes(glasgow, lancs, 2))) == {"source", "destination"}


def test_the_budget_must_bear_all_of_them_together(db):
    glasgow, lancs, _ = three_endpoints()
    enough = small().test_bytes + 1
    Endpoint.objects.filter(id=glasgow.id).update(budget_bytes_per_day=enough)
    told = refused(wishes(glasgow, lancs, 2))["source"][0]
    assert told == (
        f"GLASGOW_DATADISK has used up its test bytes of today: {enough} are left, "
        f"{2 * small().test_bytes} are needed."
    )
    assert order(wishes(glasgow, lancs, 1), NOW)


def test_downtime_and_retirement_are_said_of_the_end_that_has_them(db):
    glasgow, lancs, _ = three_endpoints()
    Downtime.objects.create(
        endpoint=glasgow, starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="power"
    )
    lancs.retired_at = NOW
    assert refused(wishes(glasgow, lancs)) == {
        "source": ["GLASGOW_DATADISK is in a declared downtime."],
        "destination": ["LANCS_DATADISK is retired."],
    }
    assert not Probe.objects.exists()


def test_an_order_waits_for_the_planner_only_so_long(real_commits, monkeypatch):
    monkeypatch.setattr("sonar.scheduler.orders.LONGEST_WAIT_SECONDS", 1)
    glasgow, lancs, _ = three_endpoints()
    held, release = threading.Event(), threading.Event()

    def plan() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [PLANNER_LOCK])
            held.set()
            release.wait(10)
        connection.close()

    planner = threading.Thread(target=plan)
    planner.start()
    held.wait(5)
    began = time.monotonic()
    with pytest.raises(PlannerBusyError, match="planner is at work"):
        order(wishes(glasgow, lancs), NOW)
    assert time.monotonic() - began < 3
    release.set()
    planner.join()
    assert order(wishes(glasgow, lancs), NOW)


def test_two_who_order_at_once_do_not_pass_a_cap_together(real_commits, monkeypatch):
    monkeypatch.setattr(ordering, "send", lambda ids: None)
    glasgow, lancs = endpoint("GLASGOW", outbound_cap=3), endpoint("LANCS", inbound_cap=9)
    outcomes: list[bool] = []

    def one() -> None:
        try:
            order(wishes(glasgow, lancs, 2), NOW)
            outcomes.append(True)
        except RefusedError:
            outcomes.append(False)
        connection.close()

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False, False, False, True]
    assert Probe.objects.count() == 2


def in_queue() -> int:
    with app.connection_for_write() as queue:
        return int(queue.default_channel.client.llen("transfers"))


def test_ids_reach_the_queue_after_the_commit_and_not_before(
    db, django_capture_on_commit_callbacks
):
    glasgow, lancs, _ = three_endpoints()
    before = in_queue()
    with django_capture_on_commit_callbacks(execute=True):
        order(wishes(glasgow, lancs, 2), NOW)
        assert in_queue() == before
    assert in_queue() == before + 2


@pytest.mark.parametrize("address", ["redis://127.0.0.1:1/0", "redis+socket:///nowhere/redis.sock"])
def test_without_redis_the_order_stands_and_takes_no_time(
    db, django_capture_on_commit_callbacks, monkeypatch, caplog, address: str
):
    monkeypatch.setattr(app.conf, "broker_write_url", address)
    glasgow, lancs, _ = three_endpoints()
    began = time.monotonic()
    with django_capture_on_commit_callbacks(execute=True):
        order(wishes(glasgow, lancs, 2), NOW)
    assert time.monotonic() - began < 2
    assert Probe.objects.filter(state="queued").count() == 2
    assert "2 ordered tests wait for the sweep" in caplog.text


@pytest.mark.parametrize("way", refusing.WAYS)
def test_with_a_redis_that_takes_nothing_the_order_stands_and_the_sweep_sends_it(
    db,
    django_capture_on_commit_callbacks,
    monkeypatch,
    caplog,
    settings: Settings,
    way: str,
):
    glasgow, lancs, _ = three_endpoints()
    began = time.monotonic()
    with refusing.WAYS[way][0](project.REDIS_URL):
        with django_capture_on_commit_callbacks(execute=True):
            ordered = order(wishes(glasgow, lancs, 2), NOW)
        assert time.monotonic() - began < 20
        assert "2 ordered tests wait for the sweep" in caplog.text
    later = NOW + timedelta(seconds=settings.SONAR_RESEND_SECONDS + 1)
    monkeypatch.setattr(tasks.timezone, "now", lambda: later)
    before = in_queue()
    tasks.sweep()
    assert in_queue() == before + 2
    assert {probe.id for probe in ordered} == set(Probe.objects.values_list("id", flat=True))


@pytest.mark.parametrize("way", refusing.WAYS)
def test_what_is_planned_with_a_redis_that_takes_nothing_stands_and_the_sweep_sends_it(
    db, monkeypatch, settings: Settings, way: str
):
    three_endpoints()
    mesh()
    monkeypatch.setattr(tasks.timezone, "now", lambda: NOW)
    with refusing.WAYS[way][0](project.REDIS_URL):
        outcome = tasks.plan.apply()
    assert isinstance(outcome.result, tasks.plan.throws)
    queued = Probe.objects.filter(state="queued").count()
    assert queued
    later = NOW + timedelta(seconds=settings.SONAR_RESEND_SECONDS + 1)
    monkeypatch.setattr(tasks.timezone, "now", lambda: later)
    before = in_queue()
    tasks.sweep()
    assert in_queue() == before + queued


def test_what_was_not_sent_the_sweep_sends(db, settings: Settings):
    from sonar.sweeping import sweep

    glasgow, lancs, _ = three_endpoints()
    (probe,) = order(wishes(glasgow, lancs), NOW)
    later = NOW + timedelta(seconds=settings.SONAR_RESEND_SECONDS + 1)
    assert sweep(later) == [probe.id]
