"""Signs of life: who gives them, when they are silent, and that they hold nobody up."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest
from celery.signals import after_task_publish
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.utils import timezone

from sonar import tasks
from sonar.models import SignOfLife
from sonar.processes import heartbeats
from sonar.processes.heartbeat_file import HeartbeatFile
from sonar.processes.heartbeats import Pulse
from sonar.settings import environment
from sonar.work import probes
from tests import waiting
from tests.sonar.world import NOW

KIND = SignOfLife.Kind


def sign(name: str = "one", seen_ago: timedelta = timedelta(), **values: object) -> SignOfLife:
    fields = {"kind": KIND.WORKER, "every_seconds": 10, "seen_at": NOW - seen_ago} | values
    return SignOfLife.objects.create(name=name, **fields)


def wait_for(done: Callable[[], object]) -> None:
    assert waiting.wait_for(done, 60, 0.02)


@pytest.fixture
def pulse() -> Iterator[Pulse]:
    """A pulse that is stopped whatever happens."""
    made = Pulse()
    yield made
    made.stop()
    if made._thread.is_alive():
        made._thread.join(60)


def seen() -> object:
    found = SignOfLife.objects.first()
    return found and found.seen_at


def test_a_worker_says_at_once_who_it_is_and_which_queues_it_takes(real_commits, pulse):
    pulse.start(KIND.WORKER, "transfers@here", 60, {"transfers", "control"})
    wait_for(SignOfLife.objects.exists)
    found = SignOfLife.objects.get()
    assert (found.name, found.kind, found.every_seconds) == ("transfers@here", "worker", 60)
    assert found.queues == ["control", "transfers"]
    assert timezone.now() - found.seen_at < timedelta(minutes=5)


@pytest.mark.parametrize("ahead", [-420, 0, 3600])
def test_a_process_whose_clock_is_wrong_lives_and_says_by_how_much(
    ahead: int, real_commits, monkeypatch
):
    clock = timezone.now
    monkeypatch.setattr(heartbeats.timezone, "now", lambda: clock() + timedelta(seconds=ahead))
    heartbeats.write(SignOfLife(name="a", kind=KIND.WORKER, every_seconds=10))
    found = SignOfLife.objects.get()
    assert abs((clock() - found.seen_at).total_seconds()) < 60
    assert found.clock_ahead_seconds == pytest.approx(ahead, abs=60)
    assert not heartbeats.is_silent(found, clock())


def test_it_says_so_again_only_as_long_as_something_beats(real_commits, pulse):
    pulse.start(KIND.WORKER, "transfers@here", 0.05)
    wait_for(SignOfLife.objects.exists)
    first = seen()
    time.sleep(0.4)
    assert seen() == first  # the main loop hangs: nobody calls beat
    pulse.beat()
    wait_for(lambda: seen() != first)


def test_its_file_says_when_something_beat_last_and_for_how_long_that_holds(
    real_commits, pulse, settings, tmp_path
):
    settings.SONAR_HEARTBEAT_FILE = file = tmp_path / "beaten"
    pulse.start(KIND.WORKER, "transfers@here", 60)
    assert file.read_text() == "180\n"
    wait_for(SignOfLife.objects.exists)
    first = file.stat().st_mtime_ns
    time.sleep(0.05)
    assert file.stat().st_mtime_ns == first  # the main loop hangs: nobody calls beat
    pulse.beat()
    assert file.stat().st_mtime_ns > first


def test_a_file_that_cannot_be_written_is_told_and_holds_nobody_up(tmp_path, caplog):
    HeartbeatFile(tmp_path / "gone" / "beaten", 30).beat()
    assert "SONAR_HEARTBEAT_FILE could not be written" in caplog.text


def test_a_file_in_no_directory_is_refused_at_the_start(monkeypatch, tmp_path):
    for given in (str(tmp_path / "gone" / "beaten"), "beaten"):
        monkeypatch.setenv("SONAR_HEARTBEAT_FILE", given)
        with pytest.raises(ImproperlyConfigured, match="is not the absolute path of a file"):
            environment.envnewfile("SONAR_HEARTBEAT_FILE")
    monkeypatch.setenv("SONAR_HEARTBEAT_FILE", " ")
    assert environment.envnewfile("SONAR_HEARTBEAT_FILE") is None


def test_who_stops_is_gone_at_once_and_not_missed(real_commits, pulse, monkeypatch):
    heard, take_back = threading.Event(), heartbeats.take_back
    monkeypatch.setattr(heartbeats, "take_back", lambda sign: heard.wait(60) and take_back(sign))
    pulse.start(KIND.WORKER, "transfers@here", 3600)
    wait_for(SignOfLife.objects.exists)
    pulse.stop()
    assert SignOfLife.objects.exists()  # who says goodbye does not wait until it is heard
    heard.set()
    wait_for(lambda: not SignOfLife.objects.exists())
    wait_for(lambda: not pulse._thread.is_alive())


def test_a_database_that_is_away_is_borne_quietly_and_the_next_sign_comes(
    real_commits, pulse, monkeypatch, caplog
):
    away = iter([True, True])
    write = type(SignOfLife.objects).bulk_create

    def sometimes(self: object, *args: object, **options: object) -> object:
        if next(away, False):
            raise OperationalError("server closed the connection\nunexpectedly")
        return write(self, *args, **options)

    monkeypatch.setattr(type(SignOfLife.objects), "bulk_create", sometimes)
    caplog.set_level("INFO")
    pulse.start(KIND.BEAT, "beat@here", 0.05)

    def beaten() -> bool:
        pulse.beat()
        return SignOfLife.objects.exists()

    wait_for(beaten)
    told = [one for one in caplog.records if one.name == "sonar.processes.heartbeats"]
    assert len(told) == 2
    assert all(one.levelname == "INFO" and "\n" not in one.getMessage() for one in told)


def test_a_second_sign_replaces_the_first(db):
    for queues in (["transfers"], ["control"]):
        heartbeats.write(SignOfLife(name="a", kind=KIND.WORKER, every_seconds=10, queues=queues))
    assert SignOfLife.objects.get().queues == ["control"]


def test_a_sign_costs_one_statement(db, django_assert_num_queries):
    with django_assert_num_queries(1):
        heartbeats.ended_well("planner", 10)


@pytest.mark.parametrize(
    ("every", "age", "silent"), [(10, 30, False), (10, 31, True), (1, 29, False), (60, 179, False)]
)
def test_who_misses_three_signs_is_silent(db, every: int, age: int, silent: bool):
    one = sign(every_seconds=every, seen_ago=timedelta(seconds=age))
    assert heartbeats.is_silent(one, NOW) is silent


def test_a_sign_from_the_future_is_no_life_but_a_clock_may_differ_a_little(db):
    """One whose clock was a day ahead, and who then died, would seem to live for that day."""
    assert heartbeats.is_silent(sign(seen_ago=-timedelta(days=1)), NOW)
    assert not heartbeats.is_silent(sign("two", seen_ago=-timedelta(minutes=4)), NOW)


def test_recovery_forgets_processes_after_a_day_but_not_when_a_task_last_ended(db, monkeypatch):
    day = timedelta(days=1, seconds=1)
    sign("old", day)
    sign("planner", day, kind=KIND.TASK)
    sign("fresh", timedelta(hours=23))
    monkeypatch.setattr(tasks.steps, "followed", lambda: nullcontext((timedelta(), NOW)))
    monkeypatch.setattr(probes, "recover", lambda now: [])
    tasks.recover()
    assert set(SignOfLife.objects.values_list("name", flat=True)) == {"planner", "fresh"}


def test_a_task_of_the_beat_notes_that_it_ended_well(db):
    tasks.compact.apply()
    tasks.task_ended_well(sender=tasks.transfer)  # not of the beat: nobody waits for it
    found = SignOfLife.objects.get()
    assert (found.name, found.kind, found.every_seconds) == ("compaction", "task", 10)


def test_a_task_that_failed_notes_nothing(db, monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr("sonar.results.sealing.seal", fails)
    tasks.compact.apply()
    assert not SignOfLife.objects.exists()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What the pulse of this process is told to do."""
    calls: list[tuple[object, ...]] = []
    fake = SimpleNamespace(
        start=lambda *args: calls.append(("start", *args)),
        beat=lambda: calls.append(("beat",)),
        stop=lambda: calls.append(("stop",)),
    )
    monkeypatch.setattr(tasks, "pulse", fake)
    return calls


def test_a_worker_speaks_for_its_queues_and_what_it_has_loaded_is_no_garbage(told, monkeypatch):
    called: list[str] = []
    for name in ("collect", "freeze"):
        monkeypatch.setattr(tasks.gc, name, partial(called.append, name))
    queues = SimpleNamespace(consume_from={"transfers": object()})
    app = SimpleNamespace(amqp=SimpleNamespace(queues=queues))
    tasks.worker_lives(sender=SimpleNamespace(hostname="w@here", app=app))
    tasks.heart_beats()
    assert told[0][:4] == ("start", KIND.WORKER, "w@here", 10)
    assert list(told[0][4]) == ["transfers"]
    assert told[1] == ("beat",)
    assert called == ["collect", "freeze"]


def test_the_beat_lives_as_long_as_it_sends(told):
    before = len(after_task_publish.receivers)
    tasks.beat_lives()
    assert told[0][1] == KIND.BEAT
    assert len(after_task_publish.receivers) == before + 1
    after_task_publish.disconnect(tasks.heart_beats)


def test_whoever_is_not_the_beat_does_not_beat_by_sending(told):
    after_task_publish.send("sonar.tasks.plan", body=None, exchange="", routing_key="control")
    assert told == []


def test_no_sign_keeps_a_connection(real_commits):
    heartbeats.ended_well("planner", 10)
    assert connection.connection is None or connection.connection.closed
