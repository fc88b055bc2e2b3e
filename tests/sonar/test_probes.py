"""One probe's life, with the fake mover: claimed once, ended once, cleaned up always."""

import contextlib
import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sonar.database import retry
from sonar.database.actor import acting
from sonar.models import Endpoint, Leftover, Probe, Profile, Transfer
from sonar.movers import catalogue, loading
from sonar.movers.base import FileInfo, Limits, MoverError, Order, Receipt, Stopped, Where, aside
from sonar.movers.catalogue import MoverDescription, kept
from sonar.movers.fake import FakeFiles, FakeMover
from sonar.movers.measure import Outcome
from sonar.movers.tcp_info import TcpConnection
from sonar.movers.watch import Upload, Watch
from sonar.ordering.request_probes import cancel, stop_all
from sonar.results import endings
from sonar.work import cleanup, probes, transfer_request
from sonar.work.running import Running
from tests.credentials import bind
from tests.sonar.world import NOW, claimed, in_threads, ordered, three_endpoints

pytestmark = pytest.mark.django_db

FAILED = Outcome(None, MoverError(Where.SOURCE, "no such file", permanent=True), None, 1.5)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeMover:
    mover = FakeMover(failures={"ral": MoverError(Where.DESTINATION, "disk full")})
    monkeypatch.setattr(loading, "load", lambda description: mover)
    return mover


@pytest.fixture
def probe() -> Probe:
    glasgow, lancs, _ = three_endpoints()
    return ordered(glasgow, lancs)


def claimed_now(probe: Probe) -> Probe:
    """Claim a probe by the clock, so that its deadline is still to come."""
    return claimed(probe, timezone.now())


def incoming(mover: FakeMover) -> list[str]:
    return [url for url in mover.files.held if "/incoming/" in url]


def test_a_queued_probe_becomes_a_transfer_with_its_id_and_leaves_the_source_file(probe, fake):
    for _ in range(2):  # the same message twice measures once
        probes.run(probe.id)
    transfer = Transfer.objects.get(id=probe.id)
    assert not Probe.objects.exists()
    assert (transfer.state, transfer.bytes, transfer.error) == ("done", 20 * 10**6, "")
    assert transfer.seconds > 0
    assert len(transfer.samples) == 4
    profile = transfer.profile
    assert (profile.mover, profile.mode, profile.streams) == ("fake", "pull", 1)
    assert (profile.ip_version, profile.origin, profile.streams_used) == (6, "test", 1)
    assert (transfer.verified, transfer.verified_note) == (True, "")
    assert transfer.moved_bytes == transfer.bytes
    assert transfer.prepare_seconds is not None
    assert list(fake.files.held) == [f"fake://glasgow/data/sonar/source/{20 * 10**6}"]


def test_a_failure_is_kept_without_addresses_that_not_all_may_see(probe):
    why = "lancs/data/sonar/incoming/7: fake://glasgow/data refused, so did 10.0.0.7"
    outcome = Outcome(None, MoverError(Where.DESTINATION, why), None, 1.5)
    endings.end_probe(claimed(probe), outcome)
    error = Transfer.objects.get().error
    assert error == ("LANCS_DATADISK/sonar/incoming/7: GLASGOW_DATADISK refused, so did [address]")


def test_a_failure_is_recorded_with_where_and_why_and_how_far_it_came(fake):
    glasgow, _, ral = three_endpoints()
    probe = ordered(glasgow, ral)
    Probe.objects.filter(id=probe.id).update(streams=4)
    probes.run(probe.id)
    transfer = Transfer.objects.get(id=probe.id)
    assert (transfer.state, transfer.error_where) == ("failed", "destination")
    assert transfer.error == "disk full"
    assert not transfer.error_is_permanent
    assert incoming(fake) == []
    assert [moved for _, moved in transfer.samples] == [5 * 10**6, 10**7]
    assert transfer.moved_bytes == 10**7
    assert transfer.prepare_seconds is not None
    assert (transfer.verified, transfer.verified_note) == (None, "")
    profile = transfer.profile
    assert (profile.streams, profile.streams_used, profile.ip_version) == (4, 4, 6)


def test_how_the_source_file_was_uploaded_is_kept_of_a_success_and_of_a_failure(probe, fake):
    connection = TcpConnection(rtt_ms=9.5, retransmits=12, held_by_sender=0.25)
    kept = {"seconds": 0.5, "rtt_ms": 9.5, "retransmits": 12, "held_by_sender": 0.25}
    failure = MoverError(Where.SOURCE, "the connection was closed")
    failed = Outcome(None, failure, None, 0.0, 0.6, upload=Upload(0.5, connection))
    endings.end_probe(claimed(probe), failed)
    assert Transfer.objects.get().upload == kept
    other = ordered(*Endpoint.objects.order_by("name")[:2])
    receipt = Receipt(other.bytes, 4.0)
    done = Outcome(receipt, None, None, 5.0, 0.6, upload=Upload(0.02, None))
    endings.end_probe(claimed(other), done)
    assert Transfer.objects.get(state="done").upload == {"seconds": 0.02}


def test_why_a_checksum_is_not_verified_is_kept_without_addresses(probe):
    note = "HEAD lancs/data/sonar/incoming/7: 500 from 10.0.0.7"
    receipt = Receipt(probe.bytes, 4.0)
    outcome = Outcome(receipt, None, None, 5.0, verified=False, verified_note=note)
    endings.end_probe(claimed(probe), outcome)
    transfer = Transfer.objects.get()
    assert (transfer.state, transfer.verified) == ("done", False)
    assert transfer.verified_note == ("HEAD LANCS_DATADISK/sonar/incoming/7: 500 from [address]")


def test_a_half_uploaded_file_that_stayed_is_remembered(probe):
    left = MoverError(Where.SOURCE, "no right to delete")
    outcome = Outcome(None, MoverError(Where.SOURCE, "507"), None, 0.0, 1.5, left_aside=left)
    running = claimed(probe)
    probes.record(running, outcome)
    order = transfer_request.order_for(running)
    (kept,) = Leftover.objects.all()
    assert f"{kept.endpoint.base_url}/{kept.path}" == aside(order).url


def test_a_message_without_a_probe_does_nothing(fake):
    probes.run(uuid.uuid4())
    assert not Transfer.objects.exists()


@pytest.mark.usefixtures("real_commits")
def test_of_many_workers_one_claims(probe):
    taken: list[bool] = []

    in_threads(8, lambda: taken.append(probes.claim(probe.id, NOW) is not None))
    assert sum(taken) == 1


def test_a_claimed_probe_has_a_deadline_beyond_its_time_limit(probe):
    running = claimed(probe)
    limits = Limits(total=running.size_class.timeout_seconds)
    assert running.deadline - running.started_at > timedelta(seconds=limits.longest)
    assert limits.longest > 2 * limits.total + limits.checksum
    running.refresh_from_db()
    assert running.state == "running"


def test_the_end_of_a_run_that_was_taken_back_counts_nothing(probe):
    """A worker that was thought dead reports after recovery has ended its probe."""
    running = claimed(probe)
    assert endings.lose_probe(running, NOW)
    assert not endings.end_probe(running, FAILED)
    assert Transfer.objects.get().state == "lost"


def test_the_end_of_an_earlier_run_does_not_end_a_later_one(probe):
    earlier = claimed(probe)
    probes.hand_back(earlier)
    later = probes.claim(probe.id, NOW + timedelta(minutes=1))
    assert not endings.end_probe(earlier, FAILED)
    assert endings.end_probe(later, FAILED)


def test_a_stopped_probe_goes_back_to_the_queue_and_leaves_no_file(probe, monkeypatch):
    mover = FakeMover(seconds=30)
    monkeypatch.setattr(loading, "load", lambda description: mover)
    running = claimed(probe)
    watch = Watch()
    threading.Timer(0.2, watch.stop).start()
    outcome = probes.carry_out(running, watch)
    assert isinstance(outcome.error, Stopped)
    probes.finish(running, outcome)
    probe.refresh_from_db()
    assert (probe.state, probe.started_at, probe.deadline) == ("queued", None, None)
    assert incoming(mover) == []
    assert not Transfer.objects.exists()


def test_a_test_that_is_cancelled_while_it_runs_ends_as_such_and_leaves_no_file(probe, monkeypatch):
    mover = FakeMover(seconds=30)
    monkeypatch.setattr(loading, "load", lambda description: mover)
    running = claimed(probe)
    watch = Watch(lambda moved: probes.stop_cancelled())
    with probes.running.added(watch, running):
        cancel(probe.id, NOW, "an admin of its site")
        probes.finish(running, probes.carry_out(running, watch))
    ended = Transfer.objects.get(id=probe.id)
    assert (ended.state, ended.error_where) == ("lost", "control")
    assert ended.error == "cancelled by an admin of its site while the test was running"
    assert ended.is_cancelled
    assert ended.seconds < 30
    assert incoming(mover) == []
    assert not Probe.objects.exists()


def test_a_cancelled_test_that_its_worker_hands_back_is_not_begun_again(probe, fake):
    running = claimed(probe)
    cancel(probe.id, NOW)
    probes.hand_back(running)
    assert probes.claim(probe.id, timezone.now()) is None
    probes.recover(timezone.now())
    assert not Probe.objects.exists()


def test_while_all_tests_are_stopped_no_worker_takes_what_is_queued(probe, fake):
    now = timezone.now()
    stop_all("new firewall", now + timedelta(hours=1), None, now, running=False)
    assert probes.claim(probe.id, now) is None
    assert probes.claim(probe.id, now + timedelta(hours=1)) is not None


def test_with_all_tests_those_that_run_are_cancelled_if_that_is_asked_for(probe, fake):
    claimed(probe)
    assert stop_all("new firewall", None, None, NOW, running=False) == 0
    assert stop_all("new firewall", None, None, NOW, running=True) == 1
    assert Probe.objects.get().cancelled_by == "an operator"


def test_a_worker_that_stops_takes_no_new_probe_and_ends_what_begins_all_the_same(
    probe, fake, monkeypatch
):
    stopped = Running()
    stopped.stop_all()
    with stopped.added(watch := Watch()):
        assert watch.stopped
    monkeypatch.setattr(probes, "running", stopped)
    probes.run(probe.id)
    probe.refresh_from_db()
    assert probe.state == "queued"


def test_what_does_not_stop_in_time_is_handed_back_together_and_remembered_with_its_jobs(
    monkeypatch,
):
    """One by one, 190 of 376 tests were not handed back within the last 3 s of a busy worker."""
    a, b, c = three_endpoints()
    statements = list[int]()
    for links in ([(a, b)], [(a, c)], [(b, c), (c, a), (b, a)]):  # the first one reads the registry
        monkeypatch.setattr(probes, "running", Running())
        runs = [claimed(ordered(*link)) for link in links]
        with contextlib.ExitStack() as running:
            for number, probe in enumerate(runs):
                running.enter_context(probes.running.added(watch := Watch(), probe))
                watch.seen.remote_id = f"job-{number}"
            with CaptureQueriesContext(connection) as asked:
                probes.hand_back_all()
        statements.append(len(asked))
        for number, probe in enumerate(runs):
            path = transfer_request.incoming_path(probe)
            assert Leftover.objects.get(path=path).remote_id == f"job-{number}"
    assert set(Probe.objects.values_list("state", "started_at")) == {("queued", None)}
    assert statements[1] == statements[2]


def test_progress_is_noted_on_the_row(probe):
    probes.note_progress(claimed(probe), 12345)
    probe.refresh_from_db()
    assert probe.progress_bytes == 12345


def test_a_transfer_does_not_wait_until_its_progress_is_noted(probe, monkeypatch):
    noted, go_on = [], threading.Event()

    def wait_for_database(probe: Probe, bytes_moved: int) -> None:
        noted.append(bytes_moved)
        go_on.wait(120)

    monkeypatch.setattr(probes, "PROGRESS_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(probes, "note_progress", wait_for_database)
    write = probes._progress_writer(claimed(probe))
    write(1)
    write(2)
    go_on.set()
    assert noted == [1]


def test_progress_that_cannot_be_noted_does_not_end_the_transfer(probe, monkeypatch):
    running = claimed(probe)
    monkeypatch.setattr(probes.Probe, "objects", Away())
    probes.note_progress(running, 12345)


class Away:
    """What stands for a table while the database restarts."""

    def filter(self, **_: object) -> None:
        raise OperationalError("the connection is closed")


def fails(times: int, error: Exception, then: Callable[..., object]) -> Callable[..., object]:
    """Return a function that raises so many times before it does what it should."""
    left = [error] * times

    def step(*arguments: object) -> object:
        if left:
            raise left.pop()
        return then(*arguments)

    return step


@pytest.mark.parametrize("error", [OperationalError("shutting down"), InterfaceError("closed")])
def test_a_result_that_the_database_did_not_take_is_kept_and_offered_again(
    probe, monkeypatch, error
):
    monkeypatch.setattr(retry, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(endings, "end_probe", fails(3, error, endings.end_probe))
    running = claimed_now(probe)
    probes.finish(running, FAILED)
    assert Transfer.objects.get().state == "failed"


def test_pauses_between_offers_grow_to_a_bound_and_end_at_the_deadline(probe, monkeypatch, caplog):
    running = claimed_now(probe)
    pauses: list[float] = []
    began = time.monotonic()
    monkeypatch.setattr(retry.time, "monotonic", lambda: began + sum(pauses))
    monkeypatch.setattr(retry.time, "sleep", pauses.append)
    monkeypatch.setattr(endings, "end_probe", fails(999, OperationalError("no"), endings.end_probe))
    probes.finish(running, FAILED)
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert max(pauses) == 10.0
    assert sum(pauses) <= Limits(total=probe.size_class.timeout_seconds).longest + 60
    assert [one.levelno for one in caplog.records] == [logging.WARNING, logging.ERROR]
    assert "no such file" in caplog.text
    assert not Transfer.objects.exists()


@pytest.mark.usefixtures("real_commits")
def test_a_commit_whose_answer_was_lost_is_counted_once(probe, monkeypatch):
    running = claimed_now(probe)
    commit = connection._commit

    def commit_and_die() -> None:
        commit()
        monkeypatch.undo()
        connection.connection.close()
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(connection, "_commit", commit_and_die)
    probes.finish(running, FAILED)
    assert connection._commit == commit
    assert Transfer.objects.get().state == "failed"


@pytest.mark.usefixtures("real_commits")
def test_a_connection_that_died_meanwhile_is_replaced(probe):
    running = claimed_now(probe)
    connection.ensure_connection()
    killer = connection.copy()
    with killer.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
    killer.close()
    probes.finish(running, FAILED)
    assert Transfer.objects.get().state == "failed"


def test_a_probe_that_cannot_be_claimed_stays_queued_and_says_so_in_one_line(
    probe, fake, monkeypatch, caplog
):
    away = OperationalError("consuming input failed:\n\tserver closed the connection")
    monkeypatch.setattr(probes, "claim", fails(1, away, probes.claim))
    probes.run(probe.id)
    probe.refresh_from_db()
    assert probe.state == "queued"
    (record,) = caplog.records
    assert record.exc_info is None
    assert "\n" not in record.getMessage()
    probes.run(probe.id)
    assert Transfer.objects.get().state == "done"


def test_a_claim_whose_answer_was_lost_is_given_back(probe, fake, monkeypatch):
    take = probes._take

    def take_and_die(probe: Probe) -> bool:
        assert take(probe)
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(probes, "_take", take_and_die)
    probes.run(probe.id)
    probe.refresh_from_db()
    assert (probe.state, probe.started_at) == ("queued", None)


def test_recovery_ends_what_died_as_lost_and_keeps_its_files_for_cleaning(probe, fake):
    running = claimed(probe)
    order = transfer_request.order_for(running)
    assert probes.recover(running.deadline) == []
    assert Probe.objects.exists()
    probes.recover(running.deadline + timedelta(seconds=1))
    transfer = Transfer.objects.get(id=probe.id)
    assert (transfer.state, transfer.error_where) == ("lost", "control")
    assert transfer.worker == running.worker
    assert running.worker not in transfer.error  # anyone may read that
    left = {f"{one.endpoint.base_url}/{one.path}" for one in Leftover.objects.all()}
    assert left == {order.destination.url, aside(order).url}


def test_a_test_of_a_link_looks_its_mover_up_once(probe, fake, monkeypatch):
    class Counted(tuple[MoverDescription, ...]):
        entered = 0

        def __iter__(self) -> Iterator[MoverDescription]:
            Counted.entered += 1
            return super().__iter__()

    monkeypatch.setattr(catalogue, "MOVERS", Counted(catalogue.MOVERS))
    probes.run(probe.id)
    assert Transfer.objects.get(id=probe.id).state == "done"
    assert Counted.entered == 1


def test_recovery_asks_no_storage(probe, monkeypatch):
    def asked(name: str) -> None:
        raise AssertionError(f"recovery has asked for the mover {name}")

    running = claimed(probe)
    monkeypatch.setattr(loading, "load", asked)
    probes.recover(running.deadline + timedelta(seconds=1))
    assert Transfer.objects.get().state == "lost"
    probes.recover(running.deadline + timedelta(days=1))


def test_what_was_lost_is_kept_with_its_files_or_not_at_all(probe, monkeypatch):
    """A recovery that dies between the two must neither forget files nor the loss."""
    running = claimed(probe)
    monkeypatch.setattr(cleanup, "keep", fails(1, OperationalError("gone"), cleanup.keep))
    for _ in range(2):
        with contextlib.suppress(OperationalError):
            probes.recover(running.deadline + timedelta(seconds=1))
    assert (Transfer.objects.count(), Leftover.objects.count()) == (1, 2)


@pytest.mark.usefixtures("real_commits")
def test_two_recoveries_at_once_end_a_lost_probe_once(probe, monkeypatch):
    running = claimed(probe)
    both, lost = threading.Barrier(2), []
    lose = probes.lose

    def together(*arguments: object) -> bool:
        both.wait(120)
        lost.append(lose(*arguments))
        return lost[-1]

    monkeypatch.setattr(probes, "lose", together)
    in_threads(2, lambda: probes.recover(running.deadline + timedelta(seconds=1)))
    assert sorted(lost) == [False, True]
    assert (Transfer.objects.count(), Leftover.objects.count()) == (1, 2)


@pytest.mark.usefixtures("real_commits")
def test_recovery_does_not_wait_for_a_worker_that_hangs_while_it_records(probe):
    """A worker that was frozen within its transaction held up a whole fault run by its lock."""
    running = claimed(probe)
    late = running.deadline + timedelta(seconds=1)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '20s'")  # else a recovery that waits never ends
    with psycopg.connect(**connection.get_connection_params()) as hanging:
        hanging.execute("SELECT FROM sonar_probe WHERE id = %s FOR UPDATE", [probe.id])
        probes.recover(late)
        assert not Transfer.objects.exists()
        hanging.rollback()
    probes.recover(late)
    assert Transfer.objects.get().state == "lost"
    connection.close()


def test_recovery_sends_again_what_nobody_took(probe, settings):
    stale = NOW + timedelta(seconds=settings.SONAR_RESEND_SECONDS + 1)
    assert probes.recover(NOW) == []
    assert probes.recover(stale) == [probe.id]
    assert probes.recover(stale) == []


def test_each_run_of_a_probe_has_a_file_name_of_its_own(probe):
    first = claimed(probe)
    assert transfer_request.incoming_path(first) == f"sonar/incoming/{probe.id}"
    probes.hand_back(first)
    second = claimed(probe)
    assert (first.runs, second.runs) == (1, 2)
    assert transfer_request.incoming_path(second) == f"sonar/incoming/{probe.id}.2"
    parts = {aside(transfer_request.order_for(run)).url for run in (first, second)}
    assert len(parts) == 2
    probe.refresh_from_db()
    assert probe.runs == 2


def test_a_claim_on_an_old_look_at_the_count_of_runs_is_no_claim(probe, monkeypatch):
    """Another worker has run the probe and handed it back between our look and our claim."""
    take = probes._take

    def late(ours: Probe) -> bool:
        monkeypatch.setattr(probes, "_take", take)
        probes.hand_back(claimed(probe))
        return take(ours)

    monkeypatch.setattr(probes, "_take", late)
    assert probes.claim(probe.id, NOW) is None
    probe.refresh_from_db()
    assert (probe.state, probe.runs) == ("queued", 1)


def test_a_leftover_of_the_first_run_is_cleaned_under_the_second_which_ends_well(
    probe, monkeypatch
):
    held = FakeFiles()

    class Mover(FakeMover):
        """Cleans what is left, on the same storage, once its bytes have moved."""

        def move(self, order: Order, watch: Watch) -> Receipt:
            receipt = super().move(order, watch)
            assert sorted(incoming(self)) == [first_url, order.destination.url]
            Leftover.objects.update(next_try=NOW)
            cleanup.clean_endpoint(probe.destination_id, until=math.inf)
            assert incoming(self) == [order.destination.url]
            return receipt

    mover = Mover()
    mover.files = held
    monkeypatch.setattr(loading, "load", lambda description: mover)
    first = claimed(probe)
    first_url = transfer_request.order_for(first).destination.url
    held.held[first_url] = FileInfo(probe.bytes)
    assert probes.abandon({first: ""}, "told to stop")
    probes.run(probe.id)
    assert Transfer.objects.get().state == "done"
    assert incoming(mover) == []


def test_the_late_end_of_an_abandoned_run_counts_nothing(probe):
    running = claimed(probe)
    assert probes.abandon({running: ""}, "told to stop")
    assert not probes.abandon({running: ""}, "told to stop")
    probes.record(running, FAILED)
    probe.refresh_from_db()
    assert (probe.state, probe.started_at) == ("queued", None)
    assert not Transfer.objects.exists()
    assert Leftover.objects.count() == 2


def test_a_file_that_a_worker_could_not_delete_is_kept_for_cleaning(probe, fake, monkeypatch):
    def refuse(end: object, order: object) -> None:
        raise MoverError(Where.DESTINATION, "no route to host")

    with monkeypatch.context() as patched:
        patched.setattr(fake.files, "delete", refuse)
        probes.run(probe.id)
    assert Transfer.objects.get().state == "done"
    leftover = Leftover.objects.get()
    assert (leftover.error, leftover.path) == ("no route to host", f"sonar/incoming/{probe.id}")
    assert len(incoming(fake)) == 1


def test_a_run_that_was_stopped_while_it_prepared_keeps_its_half_source_file(probe):
    running = claimed(probe)
    probes.record(running, Outcome(None, Stopped(), None, 0.0, left_aside=Stopped()))
    part = aside(transfer_request.order_for(running)).url
    leftover = Leftover.objects.get()
    assert f"{leftover.endpoint.base_url}/{leftover.path}" == part


def test_a_token_is_read_from_its_file_each_time(probe, settings, tmp_path):
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    glasgow = bind(Endpoint.objects.get(name="GLASGOW_DATADISK"), "glasgow", lend=True)
    (tmp_path / "glasgow").write_text("sesame\n")
    order = transfer_request.order_for(claimed(probe))
    assert (order.source.token, order.destination.token) == ("sesame", "")
    assert "sesame" not in repr(order)
    (tmp_path / "glasgow").write_text("renewed\n")
    end = transfer_request.end_at(Where.SOURCE, glasgow, "sonar/x", kept("fake"))
    assert end.token == "renewed"


def test_a_missing_token_file_fails_no_test(probe, settings, tmp_path, fake):
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    bind(Endpoint.objects.get(name="GLASGOW_DATADISK"), "glasgow", lend=True)
    probes.run(probe.id)
    assert not Transfer.objects.exists()
    probe.refresh_from_db()
    assert (probe.state, probe.worker, probe.started_at) == ("waiting", "", None)
    assert probe.waits_because == (
        "The credential of GLASGOW_DATADISK does not work, so tests that need it are waiting."
    )


def test_everything_that_is_written_lies_below_the_base_url(probe):
    order = transfer_request.order_for(claimed(probe))
    assert order.source.url == f"fake://glasgow/data/sonar/source/{20 * 10**6}"
    assert order.destination.url == f"fake://lancs/data/sonar/incoming/{probe.id}"


def test_results_of_one_kind_share_one_profile(probe, fake):
    probes.run(probe.id)
    second = ordered(probe.source, probe.destination)
    probes.run(second.id)
    assert Profile.objects.count() == 1


@pytest.mark.usefixtures("real_commits")
def test_no_connection_is_held_while_bytes_move(probe, monkeypatch):
    held: list[bool] = []

    class Mover(FakeMover):
        def move(self, order: Order, watch: Watch) -> Receipt:
            held.append(connection.connection is not None)
            return super().move(order, watch)

    monkeypatch.setattr(loading, "load", lambda description: Mover())
    probes.run(probe.id)
    assert held == [False]


def test_a_test_costs_seven_statements_and_two_if_it_was_ordered(
    probe, fake, django_assert_num_queries
):
    """To look for it and take it; to end its run; profile, month, result and circuits."""
    probes.run(probe.id)  # what is read of the registry once, and its profile
    again = ordered(*Endpoint.objects.order_by("name")[:2])
    purpose = begin_and_end = 2  # the latter of a savepoint, in the place of a transaction
    with django_assert_num_queries(7 + purpose + begin_and_end):
        probes.run(again.id)
    assert Transfer.objects.filter(id=again.id, state="done").exists()


def test_somebody_at_a_terminal_makes_a_test_like_a_worker(probe, fake):
    """Who acts is said beside statements that write, but for planned ones: they take no other."""
    with acting("command", "manage.py probe"):
        probes.run(probe.id)
        failing = ordered(*Endpoint.objects.order_by("-name")[:2])
        probes.run(failing.id)
    assert set(Transfer.objects.values_list("id", flat=True)) == {probe.id, failing.id}


def test_a_claimed_probe_has_the_registry_as_it_is_now(probe):
    first = claimed_now(probe)
    assert probes.hand_back(first)
    Endpoint.objects.filter(name="LANCS_DATADISK").update(base_url="fake://moved/data")
    again = claimed_now(probe)
    assert first.destination.base_url == "fake://lancs/data"
    assert again.destination.base_url == "fake://moved/data"
    assert again.source.base_url == first.source.base_url


def test_probes_between_the_same_endpoints_share_their_rows(probe, django_assert_num_queries):
    first = claimed_now(probe)
    assert probes.hand_back(first)
    with django_assert_num_queries(2):
        second = claimed_now(probe)
    assert second.source is first.source
    assert second.size_class is first.size_class


def test_a_probe_whose_endpoint_is_gone_is_not_taken(probe):
    Endpoint.objects.filter(name="LANCS_DATADISK")._raw_delete("default")  # past what protects it
    assert probes.claim(probe.id, NOW) is None
    assert Probe.objects.get().state == "queued"
