"""Tests that people order: all or none, under the planner's lock, sent after the commit."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from sonar import scheduler, tasks
from sonar import settings as project
from sonar.celery import app
from sonar.database.actor import acting
from sonar.models import Circuit, Downtime, Endpoint, HistoryEntry, Probe, SizeClass, Transfer
from sonar.movers import catalogue
from sonar.movers.base import Receipt
from sonar.movers.measure import Outcome
from sonar.obstacles.worker_movers import queue_of
from sonar.ordering import request_probes
from sonar.ordering.request_probes import (
    NotCancelledError,
    PlannerBusyError,
    ProbeRequest,
    RefusedError,
    cancel,
    order,
)
from sonar.results import endings
from sonar.scheduler.waiting import PLANNER_LOCK
from sonar.work import probes
from tests import refusing
from tests.sonar.world import NOW, endpoint, finish, mesh, request, three_endpoints

HOUR = timedelta(hours=1)


def small() -> SizeClass:
    return SizeClass.objects.get(name="small")


def probe_requests(source: Endpoint, destination: Endpoint, count: int = 1) -> list[ProbeRequest]:
    return [request(source, destination)] * count


@pytest.fixture
def unsent(real_commits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send nothing to the workers."""
    monkeypatch.setattr(request_probes, "send", lambda ids: None)


def refused(requests: list[ProbeRequest]) -> dict[str, list[str]]:
    with pytest.raises(RefusedError) as caught:
        order(requests, NOW)
    return caught.value.errors


def test_all_are_queued_with_what_was_wished(db):
    glasgow, lancs, ral = three_endpoints()
    both = [ProbeRequest(one, lancs, small(), "fake", "push", 4) for one in (glasgow, ral)]
    ordered = order(both, NOW)
    assert len({probe.id for probe in ordered}) == 2
    for probe in Probe.objects.all():
        assert (probe.state, probe.mesh, probe.schedule) == ("queued", None, None)
        assert (probe.mover, probe.mode, probe.streams) == ("fake", "push", 4)
        assert probe.requested_at == probe.sent_at == NOW
        assert probe.bytes == small().test_bytes


def states(*of: ProbeRequest) -> list[str]:
    """The states of all probes in their order, of these links alone if some are given."""
    found = Probe.objects.order_by("requested_at", "id")
    links = {(one.source.id, one.destination.id) for one in of}
    return [one.state for one in found if not of or (one.source_id, one.destination_id) in links]


def reason_of(probe: Probe) -> str:
    return Probe.objects.get(id=probe.id).waits_because


def test_five_of_one_link_run_one_after_the_other_in_the_order_in_which_they_were_given(db):
    glasgow, lancs, _ = three_endpoints()
    given = [
        ProbeRequest(glasgow, lancs, SizeClass.objects.get(name=name), "fake")
        for name in ("large", "small", "medium", "small", "large")
    ]
    ordered = order(given, NOW)
    assert [one.size_class.name for one in ordered] == [one.size_class.name for one in given]
    for number, one in enumerate(ordered):
        assert states() == ["queued"] + ["waiting"] * (4 - number)
        assert {reason_of(later) for later in ordered[number + 1 :]} <= {
            "Another test of this link is running."
        }
        finish(one)
        later = [ordered[number + 1].id] if number < 4 else []
        assert scheduler.start_waiting(NOW) == later
    assert Transfer.objects.filter(state="done").count() == 5


def test_an_order_waits_for_an_end_at_its_cap_and_says_which(db):
    glasgow, lancs, ral = three_endpoints()
    desy = endpoint("DESY", inbound_cap=1)
    first, second = order([*probe_requests(glasgow, lancs), *probe_requests(glasgow, ral)], NOW)
    (out,) = order(probe_requests(glasgow, desy), NOW + HOUR)
    assert (
        reason_of(out)
        == "GLASGOW_DATADISK is already sending files in 2 tests, the maximum that its cap allows."
    )
    (taken,) = order(probe_requests(lancs, desy), NOW + HOUR)
    finish(first)
    assert scheduler.start_waiting(NOW + HOUR) == []
    assert (
        reason_of(out)
        == "DESY_DATADISK is already receiving files in 1 test, the maximum that its cap allows."
    )
    finish(taken)
    assert scheduler.start_waiting(NOW + 2 * HOUR) == [out.id]
    out.refresh_from_db()
    assert (out.state, out.waits_because) == ("queued", "")
    assert (out.requested_at, out.queued_at, out.sent_at) == (
        NOW + HOUR,
        NOW + 2 * HOUR,
        NOW + 2 * HOUR,
    )
    assert states() == ["queued", "queued"]
    assert second.id != out.id


def test_the_reason_is_written_only_when_it_changes(db):
    glasgow, lancs, _ = three_endpoints()
    order(probe_requests(glasgow, lancs, 3), NOW)
    with CaptureQueriesContext(connection) as captured:
        assert scheduler.start_waiting(NOW) == []
    assert not [one for one in captured.captured_queries if one["sql"].startswith("UPDATE")]
    Downtime.objects.create(
        endpoint=lancs, starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="power"
    )
    assert scheduler.start_waiting(NOW) == []
    waiting = Probe.objects.filter(state="waiting").values_list("waits_because", flat=True)
    assert set(waiting) == {"LANCS_DATADISK is in a declared downtime."}


def test_while_nothing_waits_the_end_of_a_test_costs_one_small_query(db, django_assert_num_queries):
    with django_assert_num_queries(1):
        assert scheduler.start_waiting(NOW) == []


def test_what_waits_goes_before_what_is_due_and_the_oldest_first(db):
    glasgow, lancs, ral = three_endpoints()
    mesh()
    Endpoint.objects.update(inbound_cap=1, outbound_cap=1)
    running = set(scheduler.claim_due(NOW))
    assert len(running) > 1
    (later,) = order(probe_requests(glasgow, lancs), NOW + 2 * HOUR)
    (older,) = order(probe_requests(glasgow, ral), NOW + HOUR)
    assert (
        states(*probe_requests(glasgow, lancs), *probe_requests(glasgow, ral)).count("waiting") == 2
    )
    Probe.objects.filter(id__in=running).delete()
    begun = scheduler.claim_due(NOW + 3 * HOUR)
    assert begun[0] == older.id
    assert Probe.objects.get(id=later.id).state == "waiting"
    assert (
        reason_of(later)
        == "GLASGOW_DATADISK is already sending files in 1 test, the maximum that its cap allows."
    )


def test_scheduled_tests_leave_room_for_an_order_that_waits_for_the_other_end(db):
    """Else they would fill now the one end and now the other, and the order would never run."""
    glasgow, lancs, ral = three_endpoints()
    made = mesh()
    made.sources.add(glasgow, ral)
    made.destinations.add(lancs, ral)
    Endpoint.objects.update(inbound_cap=1, outbound_cap=1)
    (running,) = order(probe_requests(ral, lancs), NOW)
    (waits,) = order(probe_requests(glasgow, lancs), NOW)
    assert scheduler.claim_due(NOW) == []  # glasgow to ral is due and has room
    finish(running)
    assert scheduler.claim_due(NOW)[0] == waits.id


def test_sonars_own_limit_and_circuits_hold_no_order_back(db, settings):
    settings.SONAR_IN_FLIGHT = 1
    glasgow, lancs, ral = three_endpoints()
    Circuit.objects.create(
        endpoint=glasgow, failures=9, since=NOW, last_at=NOW, error="x", next_test_at=NOW + HOUR
    )
    order([*probe_requests(ral, lancs), *probe_requests(glasgow, lancs)], NOW)
    assert states() == ["queued", "queued"]


def test_what_waits_does_not_count_against_caps_but_against_the_budget(db):
    glasgow, lancs, _ = three_endpoints()
    size = small().test_bytes
    Endpoint.objects.filter(id=glasgow.id).update(budget_bytes_per_day=4 * size)
    order(probe_requests(glasgow, lancs, 3), NOW)
    room = scheduler.Capacity.left(NOW)
    assert (room.outbound[glasgow.id], room.inbound[lancs.id]) == (1, 1)
    assert room.in_flight == 99
    assert room.budget_bytes == {glasgow.id: size}
    assert (
        "has only 20 MB of its test budget left for today, but the tests need 40 MB."
        in refused(probe_requests(lancs, glasgow, 2))["destination"][0]
    )


def test_only_so_many_may_wait(db, monkeypatch):
    monkeypatch.setattr("sonar.scheduler.on_demand.MOST_WAITING", 4)
    glasgow, lancs, _ = three_endpoints()
    order(probe_requests(glasgow, lancs, 4), NOW)
    assert refused(probe_requests(glasgow, lancs, 2)) == {
        "count": ["At most 4 on-demand tests may wait: try again later."]
    }


def test_a_test_whose_endpoint_retires_while_it_waits_fails_and_says_so(db):
    glasgow, lancs, ral = three_endpoints()
    runs, waits = order(probe_requests(glasgow, lancs, 2), NOW)
    order(probe_requests(ral, lancs, 2), NOW)
    Endpoint.objects.filter(id=glasgow.id).update(retired_at=NOW)
    for _ in range(2):
        scheduler.claim_due(NOW + HOUR)
    ended = Transfer.objects.get()
    assert (ended.id, ended.state, ended.error_where) == (waits.id, "failed", "control")
    assert ended.error == "GLASGOW_DATADISK was retired while the test waited"
    assert (ended.started_at, ended.seconds, ended.profile.mesh) == (NOW + HOUR, 0, None)
    assert not Circuit.objects.exists()
    assert states(*probe_requests(glasgow, lancs)) == ["queued"]
    assert states(*probe_requests(ral, lancs)) == ["queued", "waiting"]
    assert Probe.objects.filter(id=runs.id).exists()


def test_a_mover_that_does_not_fit_an_end_is_refused_with_what_it_moves(db):
    glasgow = endpoint("GLASGOW", base_url="root://glasgow.example.org/data")
    lancs = endpoint("LANCS", base_url="https://lancs.example.org/data")
    told = refused([ProbeRequest(glasgow, lancs, small(), "http-tpc")])
    assert told == {
        "mover": [
            "The transfer tool http-tpc supports the URL schemes dav, davs, http, https, not "
            "those of "
            "GLASGOW_DATADISK (root)."
        ]
    }
    assert not Probe.objects.exists()


# Cancelling.


def test_a_test_that_waits_or_is_queued_is_cancelled_and_leaves_its_room(
    db, django_capture_on_commit_callbacks, monkeypatch
):
    sent: list[object] = []
    monkeypatch.setattr(request_probes, "send", sent.extend)
    glasgow, lancs, _ = three_endpoints()
    first, second, third = order(probe_requests(glasgow, lancs, 3), NOW)
    cancel(second.id, NOW)
    assert states() == ["queued", "waiting"]
    with django_capture_on_commit_callbacks(execute=True):
        cancel(first.id, NOW)
    assert sent == [third.id]
    assert states() == ["queued"]
    assert not Transfer.objects.exists()


def test_a_scheduled_test_that_is_cancelled_is_due_again_after_its_interval(db):
    three_endpoints()
    mesh()
    one, *_ = scheduler.claim_due(NOW)
    schedule = Probe.objects.get(id=one).schedule
    cancel(one, NOW)
    schedule.refresh_from_db()
    assert schedule.next_due == NOW + HOUR


def test_a_test_that_runs_ends_by_its_worker_and_one_that_has_ended_is_not_cancelled(db):
    glasgow, lancs, _ = three_endpoints()
    (one,) = order(probe_requests(glasgow, lancs), NOW)
    running = probes.claim(one.id, NOW)
    with acting("page", "anna"):
        assert cancel(one.id, NOW, "an admin of its site") is True
        assert cancel(one.id, NOW) is True
    assert states() == ["running"]
    told = HistoryEntry.objects.get(kind="test")
    assert (told.channel, told.who) == ("page", "anna")
    assert told.name == f"GLASGOW_DATADISK to LANCS_DATADISK small {one.id}"
    assert told.changes == {"cancelled": [None, "an admin of its site"]}
    # It was done before its worker knew: that counts.
    assert endings.end_probe(running, Outcome(Receipt(one.bytes, 4.0), None, None, 5.0))
    with pytest.raises(NotCancelledError, match="has already ended"):
        cancel(one.id, NOW)
    assert Transfer.objects.count() == 1


@pytest.mark.long
def test_a_test_is_cancelled_or_taken_by_a_worker_and_never_both(unsent):
    glasgow, lancs, _ = three_endpoints()
    for _ in range(20):
        (one,) = order(probe_requests(glasgow, lancs), NOW)
        taken, cancelled = at_once(
            lambda one=one: probes.claim(one.id, NOW) is not None,
            lambda one=one: cancel(one.id, NOW),
        )
        assert taken is cancelled  # where it ran, its worker ends it
        assert list(Probe.objects.values_list("cancelled_by", flat=True)) == ["an operator"] * taken
        Probe.objects.all().delete()


def outcome_of(call: Callable[..., object], *args: object) -> object:
    """Return what a call returns, or the refusal that it raises."""
    try:
        return call(*args)
    except (NotCancelledError, RefusedError, PlannerBusyError) as error:
        return error


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Make these calls at the same moment, each in a thread of its own; return their answers."""
    barrier = threading.Barrier(len(calls))

    def one(call: Callable[[], object]) -> object:
        try:
            barrier.wait(120)
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [done.result() for done in [threads.submit(one, call) for call in calls]]


@pytest.mark.long
def test_planners_orders_and_ends_at_once_never_give_a_link_two_tests(unsent):
    glasgow, lancs, ral = three_endpoints()
    mesh()
    mesh("other")
    Endpoint.objects.update(inbound_cap=3, outbound_cap=3)
    for tick in range(12):
        now = NOW + tick * HOUR
        at_once(
            lambda now=now: scheduler.claim_due(now),
            lambda now=now: scheduler.claim_due(now),
            lambda now=now: outcome_of(
                order, [*probe_requests(glasgow, lancs, 3), *probe_requests(ral, lancs)], now
            ),
            lambda now=now: outcome_of(order, probe_requests(lancs, ral, 2), now),
            lambda now=now: scheduler.start_waiting(now),
        )
        open_now = Probe.objects.exclude(state="waiting")
        taken = list(open_now.values_list("source_id", "destination_id"))
        assert len(set(taken)) == len(taken) > 0
        assert max(Counter(source for source, _ in taken).values()) <= 3
        assert max(Counter(destination for _, destination in taken).values()) <= 3
        Probe.objects.filter(id__in=[one.id for one in open_now[:3]]).delete()


def test_the_budget_must_bear_all_of_them_together(db):
    glasgow, lancs, _ = three_endpoints()
    enough = small().test_bytes + 1
    Endpoint.objects.filter(id=glasgow.id).update(budget_bytes_per_day=enough)
    told = refused(probe_requests(glasgow, lancs, 2))["source"][0]
    assert told == (
        "GLASGOW_DATADISK has only 20.0 MB of its test budget left for today, but the tests need "
        "40 MB."
    )
    assert order(probe_requests(glasgow, lancs, 1), NOW)


def test_downtime_and_retirement_are_said_of_the_end_that_has_them(db):
    glasgow, lancs, _ = three_endpoints()
    Downtime.objects.create(
        endpoint=glasgow, starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="power"
    )
    lancs.retired_at = NOW
    assert refused(probe_requests(glasgow, lancs)) == {
        "source": ["GLASGOW_DATADISK is in a declared downtime."],
        "destination": ["LANCS_DATADISK is retired, so it is not tested."],
    }
    assert not Probe.objects.exists()


def test_an_order_waits_for_the_planner_only_so_long(real_commits, monkeypatch):
    monkeypatch.setattr("sonar.scheduler.waiting.LONGEST_WAIT_SECONDS", 1)
    glasgow, lancs, _ = three_endpoints()
    held, release = threading.Event(), threading.Event()

    def plan() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [PLANNER_LOCK])
            held.set()
            release.wait(60)
        connection.close()

    planner = threading.Thread(target=plan)
    planner.start()
    assert held.wait(60)
    began = time.monotonic()
    with pytest.raises(PlannerBusyError, match="planner is busy"):
        order(probe_requests(glasgow, lancs), NOW)
    assert time.monotonic() - began < 30  # the planner holds it for twice as long
    release.set()
    planner.join()
    assert order(probe_requests(glasgow, lancs), NOW)


def test_two_who_order_at_once_do_not_pass_a_cap_together(unsent):
    glasgow, others = endpoint("GLASGOW", outbound_cap=3), [endpoint(f"SITE{n}") for n in range(4)]
    at_once(*(lambda one=one: order(probe_requests(glasgow, one, 2), NOW) for one in others))
    assert sorted(states()) == ["queued"] * 3 + ["waiting"] * 5


def test_an_order_and_a_day_of_orders_at_once_do_not_pass_a_budget_together(unsent):
    glasgow, lancs, _ = three_endpoints()
    Endpoint.objects.filter(id=glasgow.id).update(budget_bytes_per_day=5 * small().test_bytes)
    outcomes = at_once(*[lambda: outcome_of(order, probe_requests(glasgow, lancs, 2), NOW)] * 4)
    assert sum(isinstance(one, RefusedError) for one in outcomes) == 2
    assert len(states()) == 4


def in_queue() -> int:
    with app.connection_for_write() as queue:
        client = queue.default_channel.client
        return sum(client.llen(queue_of(mover)) for mover in catalogue.names())


def sent_by_recovery(monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many tests recovery sends once what was not sent is due again."""
    later = NOW + timedelta(seconds=project.SONAR_RESEND_SECONDS + 1)
    monkeypatch.setattr(tasks.timezone, "now", lambda: later)
    before = in_queue()
    tasks.recover()
    return in_queue() - before


def test_ids_reach_the_queue_after_the_commit_and_not_before(
    db, django_capture_on_commit_callbacks
):
    glasgow, lancs, ral = three_endpoints()
    before = in_queue()
    with django_capture_on_commit_callbacks(execute=True):
        order([*probe_requests(glasgow, lancs), *probe_requests(ral, lancs)], NOW)
        assert in_queue() == before
    assert in_queue() == before + 2


@pytest.mark.parametrize("address", ["redis://127.0.0.1:1/0", "redis+socket:///nowhere/redis.sock"])
def test_without_redis_the_order_stands_and_takes_no_time(
    db, django_capture_on_commit_callbacks, monkeypatch, caplog, address: str
):
    monkeypatch.setattr(app.conf, "broker_write_url", address)
    glasgow, lancs, ral = three_endpoints()
    began = time.monotonic()
    with django_capture_on_commit_callbacks(execute=True):
        order([*probe_requests(glasgow, lancs), *probe_requests(ral, lancs)], NOW)
    assert time.monotonic() - began < 60
    assert Probe.objects.filter(state="queued").count() == 2
    assert "2 on-demand tests wait for recovery" in caplog.text


@pytest.mark.parametrize("way", refusing.WAYS)
def test_with_a_redis_that_takes_nothing_the_order_stands_and_recovery_sends_it(
    db, django_capture_on_commit_callbacks, monkeypatch, caplog, way: str
):
    glasgow, lancs, ral = three_endpoints()
    began = time.monotonic()
    with refusing.WAYS[way][0](project.REDIS_URL):
        with django_capture_on_commit_callbacks(execute=True):
            ordered = order([*probe_requests(glasgow, lancs), *probe_requests(ral, lancs)], NOW)
        assert time.monotonic() - began < 60
        assert "2 on-demand tests wait for recovery" in caplog.text
    assert sent_by_recovery(monkeypatch) == 2
    assert {probe.id for probe in ordered} == set(Probe.objects.values_list("id", flat=True))


@pytest.mark.parametrize("way", refusing.WAYS)
def test_what_is_planned_with_a_redis_that_takes_nothing_stands_and_recovery_sends_it(
    db, monkeypatch, way: str
):
    three_endpoints()
    mesh()
    monkeypatch.setattr(tasks.timezone, "now", lambda: NOW)
    with refusing.WAYS[way][0](project.REDIS_URL):
        outcome = tasks.plan.apply()
    assert isinstance(outcome.result, tasks.plan.throws)
    queued = Probe.objects.filter(state="queued").count()
    assert queued
    assert sent_by_recovery(monkeypatch) == queued


def test_what_was_not_sent_recovery_sends(db, settings):
    glasgow, lancs, _ = three_endpoints()
    (probe,) = order(probe_requests(glasgow, lancs), NOW)
    later = NOW + timedelta(seconds=settings.SONAR_RESEND_SECONDS + 1)
    assert probes.recover(later) == [probe.id]
