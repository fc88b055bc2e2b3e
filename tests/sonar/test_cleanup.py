"""Cleaning what runs left behind: one at a time at each endpoint, and patient with bad ones."""

import logging
import math
import re
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from sonar import tasks
from sonar.models import Endpoint, Leftover
from sonar.movers import loading
from sonar.movers.base import End, FileInfo, MoverError, Order, Where
from sonar.movers.catalogue import kept
from sonar.movers.fake import FakeMover
from sonar.work import cleanup, transfer_request
from sonar.work.running import running
from tests.credentials import bind
from tests.sonar.world import endpoint, in_threads
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db
PROJECT = Path(__file__).resolve().parents[2]


class Storage(FakeMover):
    """Hosts that refuse, and what was asked of whom."""

    def __init__(self) -> None:
        super().__init__()
        self.refusing: set[str] = set()
        self.asked: list[str] = []
        self.files.delete = self.delete  # type: ignore[method-assign]

    def delete(self, end: End, order: Order) -> None:
        self.asked.append(end.url)
        if any(part in end.url for part in self.refusing):
            raise MoverError(Where.DESTINATION, "no answer within 10 s")
        self.files.held.pop(end.url, None)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    made = Storage()
    monkeypatch.setattr(loading, "load", lambda description: made)
    return made


def left(at: Endpoint, name: str, **values: object) -> Leftover:
    """Leave a file that is due."""
    now = timezone.now() - timedelta(seconds=5)
    facts = {"mover": "fake", "since": now, "next_try": now, "tries": 0, "error": "died"} | values
    return Leftover.objects.create(endpoint=at, path=f"sonar/incoming/{name}", **facts)


def clean_all() -> None:
    """Do what a run of `clean` does, in this thread and its transaction."""
    for endpoint_id in cleanup.due_by_vantage(timezone.now()).get("", []):
        cleanup.clean_endpoint(endpoint_id, until=math.inf)


def pass_time(seconds: float) -> None:
    """Let the pauses be over by so much."""
    for one in Leftover.objects.all():
        one.next_try -= timedelta(seconds=seconds)
        one.save()


def names() -> list[str]:
    return sorted(
        path.rpartition("/")[2] for path in Leftover.objects.values_list("path", flat=True)
    )


def test_what_is_due_is_deleted_and_forgotten(storage):
    glasgow = endpoint("GLASGOW")
    storage.files.held = {
        f"fake://glasgow/data/sonar/incoming/{name}": FileInfo(1) for name in "ab"
    }
    left(glasgow, "a")
    left(glasgow, "b")
    left(glasgow, "later", next_try=timezone.now() + timedelta(minutes=1))
    clean_all()
    assert storage.files.held == {}
    assert names() == ["later"]


def test_after_one_failure_everything_of_its_endpoint_waits_and_others_do_not(storage):
    glasgow, lancs = endpoint("GLASGOW"), endpoint("LANCS")
    storage.refusing = {"glasgow"}
    for name in "abc":
        left(glasgow, f"g{name}")
        left(lancs, f"l{name}")
    for _ in range(3):
        clean_all()
    left(glasgow, "new")
    clean_all()
    assert len([url for url in storage.asked if "glasgow" in url]) == 1
    assert names() == ["ga", "gb", "gc", "new"]
    assert set(Leftover.objects.values_list("error", flat=True)) == {
        "died",
        "no answer within 10 s",
    }


def test_pauses_of_an_endpoint_grow_from_a_minute_to_six_hours_whichever_file_is_tried(storage):
    storage.refusing = {"glasgow"}
    glasgow = endpoint("GLASGOW")
    for name in "abc":
        left(glasgow, name)
    pauses = []
    for _ in range(12):
        before = timezone.now()
        clean_all()
        latest = Leftover.objects.order_by("-next_try")[0]
        pauses.append(round((latest.next_try - before) / timedelta(minutes=1)))
        pass_time(cleanup.LONGEST_PAUSE.total_seconds() + 60)
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360]
    assert {url.rpartition("/")[2] for url in storage.asked} == set("abc")
    assert len(storage.asked) == len(pauses)


def test_once_a_file_goes_the_others_follow_at_once(storage):
    storage.refusing = {"glasgow"}
    glasgow = endpoint("GLASGOW")
    for name in "abc":
        left(glasgow, name)
    clean_all()
    storage.refusing = set()
    pass_time(61)
    clean_all()
    assert names() == []


def test_one_file_that_never_goes_does_not_keep_the_others(storage):
    glasgow = endpoint("GLASGOW")
    storage.refusing = {"incoming/stuck"}
    left(glasgow, "stuck", next_try=timezone.now() - timedelta(hours=1))
    for name in "abc":
        left(glasgow, name)
    clean_all()
    assert len(names()) == 4
    for _ in range(2):
        pass_time(61)
        left(glasgow, f"new{_}")
        clean_all()
        assert names() == ["stuck"]


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_of_many_cleaners_one_works_at_an_endpoint(storage, monkeypatch):
    glasgow, lancs = endpoint("GLASGOW"), endpoint("LANCS")
    for number in range(20):
        left(glasgow, f"{number}")
        left(lancs, f"{number}")
    busy: set[str] = set()
    met: list[str] = []

    def delete(end: End, order: Order) -> None:
        host = end.url.split("/")[2]
        met.extend([host] if host in busy else [])
        busy.add(host)
        time.sleep(0.005)
        storage.asked.append(end.url)
        busy.discard(host)

    monkeypatch.setattr(storage.files, "delete", delete)

    def clean() -> None:
        while cleanup.due_by_vantage(timezone.now()).get("", []):
            cleanup.clean(seconds=60)

    in_threads(3, clean)
    assert met == []
    assert sorted(storage.asked) == sorted(set(storage.asked))
    assert wait_for(lambda: not Leftover.objects.exists(), 120, 0.05)


def test_a_cleaner_that_dies_has_failed(storage, monkeypatch):
    def die(end: End, order: Order) -> None:
        raise SystemExit

    left(endpoint("GLASGOW"), "a")
    monkeypatch.setattr(storage.files, "delete", die)
    with pytest.raises(SystemExit):
        clean_all()
    assert cleanup.due_by_vantage(timezone.now()).get("", []) == []
    pass_time(61)
    assert len(cleanup.due_by_vantage(timezone.now()).get("", [])) == 1


@pytest.mark.usefixtures("real_commits")
def test_a_fault_at_one_endpoint_does_not_keep_the_others(storage, monkeypatch, caplog):
    def delete(end: End, order: Order) -> None:
        if "glasgow" in end.url:
            raise RuntimeError("a fault of the mover")

    left(endpoint("GLASGOW"), "a", next_try=timezone.now() - timedelta(hours=1))
    left(endpoint("LANCS"), "b")
    monkeypatch.setattr(storage.files, "delete", delete)
    cleanup.clean(seconds=60)
    assert names() == ["a"]
    error = Leftover.objects.get().error
    assert error == "internal error in Sonar (RuntimeError): see the worker log for details"
    (told,) = caplog.records
    assert "deleting sonar/incoming/a at GLASGOW_DATADISK" in told.getMessage()
    assert "a fault of the mover" in str(told.exc_info[1])
    assert Leftover.objects.get().next_try > timezone.now()


def test_a_mover_that_there_is_no_more_is_a_failure_like_others():
    glasgow, lancs = endpoint("GLASGOW"), endpoint("LANCS")
    left(glasgow, "a", mover="gone", next_try=timezone.now() - timedelta(hours=1))
    left(lancs, "b")
    clean_all()
    assert names() == ["a"]
    assert "there is no transfer tool 'gone'" in Leftover.objects.get().error


def test_a_missing_credential_costs_a_short_pause_however_often_it_is_missed(
    storage, settings, tmp_path
):
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    left(bind(endpoint("GLASGOW"), "glasgow"), "a", tries=9)
    clean_all()
    leftover = Leftover.objects.get()
    assert leftover.error.startswith("The credential of GLASGOW_DATADISK does not work")
    assert leftover.next_try < timezone.now() + timedelta(minutes=2)
    (tmp_path / "glasgow").write_text("sesame")
    pass_time(61)
    clean_all()
    assert names() == []


def test_a_file_stays_with_the_reason_where_a_credential_is_not_bound_any_more(
    storage, settings, tmp_path
):
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    (tmp_path / "glasgow").write_text("sesame")
    left(bind(endpoint("GLASGOW"), "glasgow", lent="lent-is-not-needed"), "a")
    Endpoint.objects.update(base_url="fake://evil/data")
    clean_all()
    assert Leftover.objects.get().error.startswith(
        "The credential of GLASGOW_DATADISK is not valid"
    )
    assert storage.asked == []
    Endpoint.objects.update(base_url="fake://glasgow/data")
    pass_time(61)
    clean_all()
    assert names() == []


def test_files_at_a_retired_endpoint_are_deleted_too(storage):
    left(endpoint("GLASGOW", retired_at=timezone.now()), "a")
    clean_all()
    assert names() == []


def test_no_file_is_begun_once_the_time_is_up_or_the_worker_stops(storage, monkeypatch):
    glasgow = endpoint("GLASGOW")
    left(glasgow, "a")
    cleanup.clean_endpoint(glasgow.id, until=time.monotonic())
    monkeypatch.setattr(running, "stopping", True)
    cleanup.clean_endpoint(glasgow.id, until=math.inf)
    assert storage.asked == []


def test_one_endpoint_with_many_files_takes_turns(storage, monkeypatch):
    monkeypatch.setattr(cleanup, "FILES_IN_TURN", 3)
    glasgow, lancs = endpoint("GLASGOW"), endpoint("LANCS")
    for number in range(5):
        left(glasgow, f"g{number}", next_try=timezone.now() - timedelta(hours=1))
    left(lancs, "l")
    clean_all()
    assert [url.rpartition("/")[2] for url in storage.asked] == ["g0", "g1", "g2", "l"]


@pytest.mark.usefixtures("real_commits")
def test_no_connection_is_held_while_storage_is_asked(storage, monkeypatch):
    held: list[bool] = []
    monkeypatch.setattr(
        storage.files, "delete", lambda end, order: held.append(connection.connection is not None)
    )
    left(endpoint("GLASGOW"), "a")
    cleanup.clean(seconds=60)
    assert held == [False]


@pytest.fixture
def hung() -> Iterator[str]:
    """Return the host and port of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.usefixtures("real_commits")
def test_endpoints_that_never_answer_cost_cleaning_short_limits_and_nobody_else_waits(
    hung, storage, monkeypatch
):
    """With limits as they are for transfers, three of these held plans up for 150 s."""
    monkeypatch.undo()
    for number in range(3):
        dead = endpoint(f"HUNG{number}", base_url=f"http://{hung}/{number}")
        for name in "abcd":
            left(dead, name, mover="http-tpc", next_try=timezone.now() - timedelta(hours=1))
    left(endpoint("GLASGOW"), "good")
    began = time.monotonic()
    cleaner = threading.Thread(target=tasks.clean_up)
    cleaner.start()
    assert wait_for(lambda: "good" not in names(), 120, 0.05)
    assert cleaner.is_alive()  # those that hang are still being asked
    cleaner.join()
    assert time.monotonic() - began < 4 * cleanup.CLEANING_LIMITS.total
    errors = list(Leftover.objects.filter(tries=1).values_list("error", flat=True))
    assert len(errors) == 3
    assert all("no answer within 10 s" in error for error in errors)


def test_cleaning_logs_nothing_while_nothing_is_wrong(storage, caplog):
    caplog.set_level(logging.INFO)
    left(endpoint("GLASGOW"), "a")
    clean_all()
    assert [one for one in caplog.records if one.name.startswith("sonar")] == []


def test_what_is_kept_twice_stays_as_it_was(storage):
    glasgow = endpoint("GLASGOW")
    place = (glasgow, "sonar/incoming/a")
    cleanup.keep([cleanup.left_behind(place, "fake", "first", timezone.now())])
    cleanup.claim(glasgow.id, timezone.now())
    cleanup.keep([cleanup.left_behind(place, "fake", "second", timezone.now())])
    leftover = Leftover.objects.get()
    assert (leftover.error, leftover.tries) == ("first", 1)


def test_a_file_that_goes_while_it_is_claimed_is_left_alone(storage, monkeypatch):
    glasgow, pause_after = endpoint("GLASGOW"), cleanup.pause_after
    left(glasgow, "a")

    def gone_meanwhile(failures: int) -> timedelta:
        Leftover.objects.all().delete()
        return pause_after(failures)

    monkeypatch.setattr(cleanup, "pause_after", gone_meanwhile)
    assert cleanup.claim(glasgow.id, timezone.now()) is None


def test_an_order_to_delete_stays_below_the_base_url(storage):
    left(endpoint("GLASGOW"), "a")
    clean_all()
    assert storage.asked == ["fake://glasgow/data/sonar/incoming/a"]
    assert (
        transfer_request.end_at(
            Where.DESTINATION, Endpoint.objects.get(), "x", kept("fake")
        ).base_url
        in storage.asked[0]
    )


@pytest.mark.parametrize("path", ["README.md", "docker-compose.yml", "sonar/sandbox/run.py"])
def test_every_queue_has_a_worker_of_its_own_wherever_workers_are_started(path: str, settings):
    """What does I/O to storage shares no worker with plans, nor cleaning with transfers."""
    text = (PROJECT / path).read_text()
    started = re.findall(r'-Q"?,? "?([a-z,]+)', text)
    routed = {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()}
    assert sorted(started) == sorted(routed | {settings.CELERY_TASK_DEFAULT_QUEUE})


def test_messages_of_cleaning_that_nobody_takes_expire_with_the_next(settings):
    entry = settings.CELERY_BEAT_SCHEDULE["cleanup"]
    assert entry["options"]["expires"] <= entry["schedule"]
    assert settings.CELERY_TASK_ROUTES[entry["task"]] == {"queue": "cleanup"}
    slowest = settings.SONAR_CLEANUP_SECONDS / 2 + cleanup.CLEANING_LIMITS.total
    assert slowest <= entry["schedule"]


def test_a_claim_outlasts_the_longest_deletion():
    """Or a second cleaner would begin at an endpoint before the first has given up."""
    assert cleanup.FIRST_PAUSE.total_seconds() > 2 * cleanup.CLEANING_LIMITS.total
