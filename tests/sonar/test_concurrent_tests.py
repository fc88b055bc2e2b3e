"""Concurrent tests: other Sonar tests at the source or destination while bytes moved."""

import itertools
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from sonar import tasks
from sonar.models import Endpoint, Probe, RecentRun, SizeClass, Transfer
from sonar.movers.base import MoverError, Receipt, Stopped, Where
from sonar.movers.measure import Outcome
from sonar.movers.watch import Seen
from sonar.results import concurrency, endings
from sonar.results.concurrency import ConcurrentTests, Span
from sonar.work import probes
from tests.sonar.world import endpoint, three_endpoints

pytestmark = pytest.mark.django_db

# A moment in the past: nothing here waits for the clock.
T = timezone.now() - timedelta(hours=1)


def at(seconds: float) -> datetime:
    return T + timedelta(seconds=seconds)


def span(began: float, ended: float) -> Span:
    return Span(at(began), at(ended))


def running(source: Endpoint, destination: Endpoint, began: float) -> Probe:
    """Make a probe that runs since then, and whose deadline is far away."""
    return Probe.objects.create(
        id=uuid.uuid4(),
        source=source,
        destination=destination,
        size_class=SizeClass.objects.get(name="small"),
        bytes=20_000_000,
        mover="fake",
        state="running",
        requested_at=at(began),
        sent_at=at(began),
        started_at=at(began),
        deadline=at(began + 7200),
        worker="w1",
    )


def ran(source: Endpoint, destination: Endpoint, began: float, ended: float) -> None:
    RecentRun.objects.create(
        source=source, destination=destination, began_at=at(began), ended_at=at(ended)
    )


def done(prepare: float | None, seconds: float) -> Outcome:
    """Return the outcome of a move that began so late and took so long."""
    return Outcome(Receipt(20_000_000, seconds), None, None, seconds, prepare_seconds=prepare)


FAILED = Outcome(
    None, MoverError(Where.TRANSFER, "refused"), None, elapsed_seconds=10.0, prepare_seconds=0.0
)
NEVER_BEGAN = Outcome(None, MoverError(Where.SOURCE, "no such file"), None, 0.0)


def ended(probe: Probe, outcome: Outcome) -> Transfer:
    assert endings.end_probe(probe, outcome)
    return Transfer.objects.select_related("profile").get(id=probe.id)


def concurrent_with(transfer: Transfer) -> ConcurrentTests:
    return ConcurrentTests(*(getattr(transfer, name) for name in ConcurrentTests._fields))


spans = st.tuples(st.integers(-20, 40), st.integers(0, 30)).map(lambda of: span(of[0], sum(of)))


@given(st.integers(1, 20), st.lists(spans, max_size=12))
def test_mean_and_maximum_are_those_that_looking_each_second_gives(seconds, others):
    # All begin and end on whole seconds, so looking half-way between them misses nothing.
    looks = [
        sum(one.began <= at(second + 0.5) < one.ended for one in others)
        for second in range(seconds)
    ]
    mean, most = concurrency.count(span(0, seconds), others)
    assert mean == pytest.approx(sum(looks) / seconds)
    assert most == max(looks)


@given(st.lists(spans, max_size=12))
def test_a_move_without_length_counts_the_tests_of_its_moment(others):
    there = sum(one.began <= T < one.ended for one in others)
    assert concurrency.count(span(0, 0), others) == (there, there)


def test_one_that_ends_when_the_next_begins_is_never_there_with_it():
    assert concurrency.count(span(10, 20), [span(0, 10), span(20, 30)]) == (0.0, 0)
    assert concurrency.count(span(0, 20), [span(0, 10), span(10, 20)]) == (1.0, 1)


def test_a_test_without_concurrent_tests_records_none(db):
    glasgow, lancs, ral = three_endpoints()
    ran(glasgow, lancs, -50, 10)  # over before the move begins, though not before the claim
    ran(lancs, glasgow, 30, 40)  # from its end on
    elsewhere = endpoint("DURHAM")
    running(ral, elsewhere, 0)
    single = ended(running(glasgow, lancs, 0), done(10, 20))
    assert concurrent_with(single) == (0.0, 0, 0.0, 0)
    assert single.profile.concurrent == 0


def test_no_test_counts_while_a_test_is_in_the_queue_of_a_service(db):
    source, destination, third = three_endpoints()
    ran(source, third, 0, 9)
    queued = replace(done(0.0, 20.0), seen=Seen(queue_seconds=10.0))
    assert (
        concurrent_with(ended(running(source, destination, 0), queued)).concurrent_at_source_mean
        == 0
    )


def test_readers_and_writers_of_an_endpoint_count_there_each_for_its_time(db):
    glasgow, lancs, ral = three_endpoints()
    ran(ral, glasgow, 0, 15)  # writes where the move reads, in its first quarter
    ran(glasgow, ral, 25, 90)  # reads there, in its last quarter
    running(ral, lancs, 20)  # writes where the move writes, from its middle on
    transfer = ended(running(glasgow, lancs, 0), done(10, 20))
    assert concurrent_with(transfer) == (pytest.approx(0.5), 1, pytest.approx(0.5), 1)
    assert transfer.profile.concurrent == 1


def test_a_test_in_the_other_direction_counts_at_both_ends(db):
    glasgow, lancs, _ = three_endpoints()
    running(lancs, glasgow, 0)
    ran(lancs, glasgow, 5, 90)
    transfer = ended(running(glasgow, lancs, 0), done(0, 20))
    assert concurrent_with(transfer) == (pytest.approx(1.75), 2, pytest.approx(1.75), 2)


def test_of_two_tests_both_know_of_the_other_whoever_ends_first(db):
    glasgow, lancs, ral = three_endpoints()
    first, second = running(glasgow, lancs, 0), running(ral, lancs, 0)
    for probe in (first, second):
        assert concurrent_with(ended(probe, done(0, 10))) == (0.0, 0, 1.0, 1)


def test_a_failed_move_has_concurrent_tests_too(db):
    glasgow, lancs, ral = three_endpoints()
    running(glasgow, ral, 5)
    assert concurrent_with(ended(running(glasgow, lancs, 0), FAILED)) == (0.5, 1, 0.0, 0)


def test_what_never_moved_and_what_was_lost_has_no_counts(db):
    glasgow, lancs, _ = three_endpoints()
    never = ended(running(glasgow, lancs, 0), NEVER_BEGAN)
    lost = running(glasgow, lancs, 0)
    endings.lose_probe(lost, at(9000))
    for transfer in (never, Transfer.objects.select_related("profile").get(id=lost.id)):
        assert concurrent_with(transfer) == (None, None, None, None)
        assert transfer.profile.concurrent is None
    # A dead worker's test counts until its deadline, not until it was found dead.
    assert RecentRun.objects.latest("id").ended_at == lost.deadline


def test_a_test_that_is_handed_back_counts_until_then_and_once(db):
    glasgow, lancs, ral = three_endpoints()
    stopped, other = running(glasgow, lancs, 0), running(glasgow, ral, 0)
    for _ in range(2):  # the word of the first COMMIT may get lost
        probes.record(stopped, Outcome(None, Stopped(), None, 5.0))
    assert RecentRun.objects.count() == 1
    assert concurrent_with(ended(other, done(0, 10))) == (1.0, 1, 0.0, 0)


def test_its_own_earlier_run_does_not_count(db):
    glasgow, lancs, _ = three_endpoints()
    probe = running(glasgow, lancs, -100)
    probes.hand_back(probe)
    again = probes.claim(probe.id, timezone.now() + timedelta(seconds=1))
    assert again is not None
    assert concurrent_with(ended(again, done(0, 10))) == (0.0, 0, 0.0, 0)


def test_queued_and_waiting_tests_do_not_count(db):
    glasgow, lancs, ral = three_endpoints()
    for state, end in (("queued", ral), ("waiting", lancs)):
        probe = running(glasgow, end, 0)
        Probe.objects.filter(id=probe.id).update(state=state, started_at=None, deadline=None)
    assert concurrent_with(ended(running(glasgow, lancs, 0), done(0, 10))) == (0.0, 0, 0.0, 0)


def test_a_second_end_of_one_run_leaves_no_second_trace(db):
    glasgow, lancs, _ = three_endpoints()
    probe = running(glasgow, lancs, 0)
    assert endings.end_probe(probe, done(0, 10))
    assert not endings.end_probe(probe, done(0, 10))
    assert RecentRun.objects.count() == 1


def test_a_run_of_a_worker_whose_clock_is_ahead_does_not_end_before_it_began(db):
    glasgow, lancs, _ = three_endpoints()
    ended(running(glasgow, lancs, 7000), done(0, 10))
    run = RecentRun.objects.get()
    assert run.began_at == run.ended_at == at(7000)


def test_runs_are_forgotten_once_nobody_runs_that_could_have_met_them(db):
    glasgow, lancs, ral = three_endpoints()
    for ended_at in (-400, -200, 100):
        ran(glasgow, lancs, -1000, ended_at)
    slow = running(ral, lancs, 0)
    concurrency.forget(at(3000))
    assert sorted(RecentRun.objects.values_list("ended_at", flat=True)) == [at(-200), at(100)]
    slow.delete()
    concurrency.forget(at(3000))
    assert not RecentRun.objects.exists()


def test_recovery_forgets_old_runs(db, monkeypatch):
    glasgow, lancs, _ = three_endpoints()
    monkeypatch.setattr(probes, "recover", lambda now: [])
    ran(glasgow, lancs, -1000, -500)
    tasks.recover()
    assert not RecentRun.objects.exists()


def test_one_that_ends_in_a_transaction_that_is_not_over_still_counts(real_commits):
    """What it becomes is not seen before its commit; what it was is."""
    glasgow, lancs, ral = three_endpoints()
    slow, quick = running(glasgow, lancs, 0), running(glasgow, ral, 0)
    with psycopg.connect(**connection.get_connection_params()) as ending:
        ending.execute("DELETE FROM sonar_probe WHERE id = %s", [slow.id])
        ending.execute(
            "INSERT INTO sonar_recentrun (source_id, destination_id, began_at, ended_at)"
            " VALUES (%s, %s, %s, %s)",
            [slow.source_id, slow.destination_id, slow.started_at, timezone.now()],
        )
        assert concurrent_with(ended(quick, done(0, 10))) == (1.0, 1, 0.0, 0)
    assert concurrent_with(ended(running(ral, glasgow, 0), done(0, 10))) == (1.0, 1, 2.0, 2)


def in_a_thread(step: Callable[[], None]) -> None:
    """Take a step with a connection of its own, and wait for its end."""
    failures: list[BaseException] = []

    def take() -> None:
        try:
            step()
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


class Before:
    """Lets something else happen just before one of the statements of this connection."""

    def __init__(self, number: int, happens: Callable[[], None]) -> None:
        self.left, self.happens = number, happens

    def __call__(self, execute: Callable[..., object], *arguments: object) -> object:
        if self.left == 0:
            self.happens()
        self.left -= 1
        return execute(*arguments)


def test_two_that_end_at_once_see_each_other_once_in_whatever_order_their_statements_come(
    real_commits,
):
    """The second ends whole before each of the statements of the first, one after the other."""
    glasgow, lancs, _ = three_endpoints()
    # Makes the profile: of two that make it, one would wait for the other.
    running(lancs, glasgow, 0)
    ended(running(glasgow, lancs, 0), done(10, 20))
    Probe.objects.all().delete()
    for number in itertools.count():
        RecentRun.objects.all().delete()
        first, second = running(glasgow, lancs, 0), running(lancs, glasgow, 0)

        def end_the_other(probe: Probe = second) -> None:
            assert endings.end_probe(probe, done(10, 20))

        between = Before(number, partial(in_a_thread, end_the_other))
        with connection.execute_wrapper(between):
            one = ended(first, done(10, 20))
        if between.left >= 0:
            break
        other = Transfer.objects.get(id=second.id)
        assert [concurrent_with(one), concurrent_with(other)] == [(1.0, 1, 1.0, 1)] * 2, number
    assert number > 5


AT_ONCE = 8


def test_many_that_end_at_the_same_moment_all_see_each_other_once(real_commits):
    source = endpoint("GLASGOW")
    ending = [running(source, endpoint(f"END-{number}"), 0) for number in range(AT_ONCE)]
    together = threading.Barrier(AT_ONCE)

    def end(probe: Probe) -> None:
        try:
            Probe.objects.exists()  # connect before, not among the others' ends
            together.wait(60)
            assert endings.end_probe(probe, done(10, 20))
        finally:
            connection.close()

    threads = [threading.Thread(target=end, args=[probe]) for probe in ending]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    others = AT_ONCE - 1
    found = [concurrent_with(one) for one in Transfer.objects.all()]
    assert found == [(others, others, 0.0, 0)] * AT_ONCE
