"""An end by which tests keep failing is tested thinly, until a test succeeds there."""

import threading
from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from sonar import scheduler
from sonar.models import Circuit, Endpoint, MeshInterval, Probe, Schedule, SizeClass
from sonar.movers.base import MoverError, Receipt, Where
from sonar.movers.measure import Outcome
from sonar.results import circuits, endings
from sonar.work import probes
from tests.sonar.world import NOW, endpoint, mesh, three_endpoints

pytestmark = pytest.mark.django_db
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture(autouse=True)
def roomy(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SONAR_CIRCUIT_FAILURES = 3
    monkeypatch.setattr(timezone, "now", lambda: NOW)


def run(source: Endpoint, destination: Endpoint, fails: Where | None = None) -> None:
    """Run one test to its end; ``fails`` says where, if it does."""
    small = SizeClass.objects.get(name="small")
    ordered = scheduler.order_all(
        [scheduler.ProbeRequest(source, destination, small, "fake")], NOW
    ).probes[0]
    end(ordered, fails)


def end(probe: Probe, fails: Where | None = None) -> None:
    running = probes.claim(probe.id, NOW - MINUTE)
    assert running is not None
    if fails is None:
        outcome = Outcome(Receipt(running.bytes, 4.0), None, None, 5.0)
    else:
        error = MoverError(fails, f"{running.source.base_url}/x: no answer from 10.0.0.7")
        outcome = Outcome(None, error, None, 5.0)
    assert endings.end_probe(running, outcome)


def counted() -> dict[str, int]:
    return {one.endpoint.name: one.failures for one in Circuit.objects.all()}


def test_failures_count_for_the_end_where_they_happened_and_a_success_closes_both():
    glasgow, lancs, ral = three_endpoints()
    run(glasgow, lancs, Where.SOURCE)
    run(lancs, glasgow, Where.DESTINATION)
    run(glasgow, ral, Where.DESTINATION)
    assert counted() == {"GLASGOW_DATADISK": 2, "RAL_DATADISK": 1}
    run(ral, lancs)
    assert counted() == {"GLASGOW_DATADISK": 2}
    run(lancs, glasgow)
    assert counted() == {}


@pytest.mark.parametrize("where", [Where.TRANSFER, Where.CONTROL])
def test_what_fails_between_the_ends_or_at_sonar_says_nothing_of_an_end(where: Where):
    glasgow, lancs, _ = three_endpoints()
    run(glasgow, lancs, Where.SOURCE)
    run(glasgow, lancs, where)
    assert counted() == {"GLASGOW_DATADISK": 1}


def test_what_is_lost_says_nothing_of_an_end():
    glasgow, lancs, _ = three_endpoints()
    run(glasgow, lancs, Where.SOURCE)
    small = SizeClass.objects.get(name="small")
    ordered = scheduler.order_all(
        [scheduler.ProbeRequest(glasgow, lancs, small, "fake")], NOW
    ).probes[0]
    lost = probes.claim(ordered.id, NOW)
    assert lost is not None
    assert endings.lose_probe(lost, NOW + HOUR)
    assert counted() == {"GLASGOW_DATADISK": 1}


def test_it_keeps_since_when_and_the_last_error_as_all_may_read_it(monkeypatch):
    glasgow, lancs, _ = three_endpoints()
    run(glasgow, lancs, Where.SOURCE)
    monkeypatch.setattr(timezone, "now", lambda: NOW + HOUR)
    run(glasgow, lancs, Where.SOURCE)
    kept = Circuit.objects.get()
    assert (kept.since, kept.last_at) == (NOW - MINUTE, NOW + HOUR)
    assert kept.error == "GLASGOW_DATADISK/x: no answer from [address]"


def test_a_result_costs_one_statement_more(django_assert_num_queries):
    glasgow, lancs, _ = three_endpoints()
    small = SizeClass.objects.get(name="small")
    probe = Probe(source=glasgow, destination=lancs, size_class=small)
    with django_assert_num_queries(1):
        circuits.note(probe, "done", {})
    with django_assert_num_queries(1):
        circuits.note(probe, "failed", {"error_where": "source", "error": "x"})
    with django_assert_num_queries(0):
        circuits.note(probe, "failed", {"error_where": "transfer", "error": "x"})
        circuits.note(probe, "lost", {"error_where": "control", "error": "x"})


def test_from_so_many_in_a_row_on_its_tests_are_spread_thin():
    glasgow, lancs, ral = three_endpoints()
    made = mesh(every_seconds=600)
    MeshInterval.objects.filter(mesh=made, size_class__name="large").update(every_seconds=86400)
    for _ in range(3):
        run(glasgow, lancs, Where.SOURCE)
    begun = begin(NOW)
    assert ends_of(begun).count(glasgow.id) == 1
    assert {(lancs.id, ral.id), (ral.id, lancs.id)} <= set(links_of(begun))
    waiting = Schedule.objects.filter(skipped_because="circuit")
    at_glasgow = Schedule.objects.filter(source=glasgow) | Schedule.objects.filter(
        destination=glasgow
    )
    assert set(waiting) == set(at_glasgow.filter(next_due__lte=NOW))
    # The shortest interval that is promised, though the test that was taken may come once a day.
    assert Circuit.objects.get().next_test_at == NOW + 10 * MINUTE


def begin(now: datetime) -> list[Probe]:
    return list(Probe.objects.filter(id__in=scheduler.claim_due(now)))


def ends_of(some: list[Probe]) -> list[int]:
    return [end for one in some for end in (one.source_id, one.destination_id)]


def links_of(some: list[Probe]) -> list[tuple[int, int]]:
    return [(one.source_id, one.destination_id) for one in some]


def at(bad: Endpoint, some: list[Probe]) -> list[Probe]:
    return [one for one in some if bad.id in (one.source_id, one.destination_id)]


def where_at(bad: Endpoint, probe: Probe) -> Where:
    return Where.SOURCE if probe.source_id == bad.id else Where.DESTINATION


def test_one_test_a_promise_and_never_two_at_once_until_one_succeeds():
    bad, *good = three_endpoints()
    mesh(every_seconds=600)
    for _ in range(3):
        run(bad, good[0], Where.SOURCE)
    (first,) = at(bad, begin(NOW))
    Probe.objects.exclude(id=first.id).delete()
    assert at(bad, begin(NOW + 20 * MINUTE)) == []  # it has not ended
    end(first, where_at(bad, first))
    Probe.objects.all().delete()
    (second,) = at(bad, begin(NOW + 20 * MINUTE))
    end(second, where_at(bad, second))
    Probe.objects.all().delete()
    assert at(bad, begin(NOW + 29 * MINUTE)) == []
    assert counted()[bad.name] == 5
    Probe.objects.all().delete()
    (third,) = at(bad, begin(NOW + 30 * MINUTE))
    end(third)
    assert counted() == {}
    Probe.objects.all().delete()
    assert len(at(bad, begin(NOW + 30 * MINUTE))) == 4
    assert not Schedule.objects.filter(skipped_because="circuit").exists()


def test_all_its_links_and_classes_have_their_turn():
    bad, *_ = three_endpoints()
    mesh(every_seconds=600)
    scheduler.follow_registry(NOW)
    Circuit.objects.create(endpoint=bad, failures=3, since=NOW, last_at=NOW, error="x")
    seen = set()
    for number in range(12):
        (one,) = at(bad, begin(NOW + number * 10 * MINUTE))
        seen.add(one.schedule_id)
        end(one, where_at(bad, one))
        Probe.objects.all().delete()
    assert len(seen) == 12


def test_two_bad_ends_share_the_test_between_them(settings: Settings):
    bad, worse, good = three_endpoints()
    made = mesh()
    made.sources.add(bad)
    made.destinations.add(worse, good)
    for one in (bad, worse):
        Circuit.objects.create(endpoint=one, failures=3, since=NOW, last_at=NOW, error="x")
    scheduler.follow_registry(NOW)
    Schedule.objects.filter(destination=worse).update(next_due=NOW - HOUR)
    assert links_of(begin(NOW)) == [(bad.id, worse.id)]
    assert set(Circuit.objects.values_list("next_test_at", flat=True)) == {NOW + HOUR}


def test_the_batch_loop_ends_though_all_rows_of_a_batch_but_one_rest(monkeypatch):
    monkeypatch.setattr("sonar.scheduler.claims.BATCH", 2)
    bad, lancs, ral = three_endpoints()
    mesh()
    Circuit.objects.create(endpoint=bad, failures=3, since=NOW, last_at=NOW, error="x")
    scheduler.follow_registry(NOW)
    Schedule.objects.filter(source=bad).update(next_due=NOW - HOUR)
    begun = begin(NOW)
    assert len(at(bad, begun)) == 1
    assert {(lancs.id, ral.id), (ral.id, lancs.id)} <= set(links_of(begun))


def test_a_retired_endpoint_has_no_open_circuit():
    bad, *_ = three_endpoints()
    Circuit.objects.create(endpoint=bad, failures=3, since=NOW, last_at=NOW, error="x")
    assert circuits.open_circuits().count() == 1
    Endpoint.objects.filter(id=bad.id).update(retired_at=NOW)
    assert circuits.open_circuits().count() == 0


@pytest.mark.usefixtures("real_commits")
def test_tests_that_end_at_once_at_other_ends_do_not_wait_for_each_other():
    """One has ended and not committed; the other must not wait for that."""
    ends = [endpoint(f"SITE{number}", outbound_cap=9, inbound_cap=9) for number in range(4)]
    small = SizeClass.objects.get(name="small")
    done = threading.Event()

    def other() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '5s'")
        circuits.note(Probe(source=ends[2], destination=ends[3], size_class=small), *FAILED)
        circuits.note(Probe(source=ends[2], destination=ends[3], size_class=small), "done", {})
        connection.close()
        done.set()

    with transaction.atomic():
        circuits.note(Probe(source=ends[0], destination=ends[1], size_class=small), *FAILED)
        thread = threading.Thread(target=other)
        thread.start()
        assert done.wait(120)
    thread.join()
    assert counted() == {"SITE0_DATADISK": 1}


FAILED = ("failed", {"error_where": "source", "error": "x"})


@pytest.mark.usefixtures("real_commits")
def test_tests_that_end_at_once_at_the_same_ends_are_all_counted():
    ends = [endpoint(f"SITE{number}") for number in range(2)]
    small = SizeClass.objects.get(name="small")
    start = threading.Barrier(8)

    def one(number: int) -> None:
        source, destination = ends if number % 2 else reversed(ends)
        probe = Probe(source=source, destination=destination, size_class=small)
        start.wait(120)
        for _ in range(25):
            circuits.note(probe, *FAILED)
        connection.close()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted() == {"SITE0_DATADISK": 100, "SITE1_DATADISK": 100}
