"""/healthz and /readyz: the truth in a sentence for each part, without names, soon."""

import socket
import threading
import time
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
import redis
from django.db import OperationalError, connection, transaction
from django.test import Client
from django.utils import timezone

from matrix.answers.status import health
from sonar import settings as project
from sonar.database import tables
from sonar.models import AllTests, Assessment, SignOfLife, SizeClass
from sonar.notation.windows import format_minute
from sonar.processes import full_disk
from tests import refusing
from tests.conditions import stored_condition
from tests.matrix.world import HOUR

pytestmark = pytest.mark.usefixtures("real_commits")
SECOND = timedelta(seconds=1)


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Stop the clock of this process, which may be slow; return what it shows."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    return now


def sign(name: str, kind: str, ago: timedelta = SECOND, *queues: str, every: int = 10) -> None:
    seen = timezone.now() - ago
    SignOfLife.objects.create(
        name=name, kind=kind, seen_at=seen, every_seconds=every, queues=list(queues)
    )


def all_well(without: str = "") -> None:
    """Give the signs of a Sonar that is well, but for one of them."""
    signs: dict[str, tuple[Any, ...]] = {
        "transfers@secret-host": ("worker", SECOND, "transfers"),
        "control@secret-host": ("worker", SECOND, "control"),
        "cleanup@secret-host": ("worker", SECOND, "cleanup"),
        "beat@secret-host": ("beat", SECOND),
        "planner": ("task", SECOND),
    }
    for name, fields in signs.items():
        if name.partition("@")[0] != without:
            sign(name, *fields)


def ready(client: Client) -> tuple[int, dict[str, Any]]:
    response = client.get("/readyz")
    answer = response.json()
    assert (response.status_code == 200) is answer["ready"]
    needed = {name: part for name, part in answer["parts"].items() if name != "measurements"}
    assert answer["ready"] is all(part["ok"] for part in needed.values())
    assert b"secret-host" not in response.content
    assert response["Cache-Control"].startswith("max-age=0")
    return response.status_code, answer["parts"]


def failing(client: Client) -> dict[str, str]:
    """Return the sentences of the parts that do not work."""
    status, parts = ready(client)
    assert status == 503
    return {name: part["detail"] for name, part in parts.items() if not part["ok"]}


def test_a_process_that_answers_is_alive_and_asks_nobody(
    client, django_assert_num_queries, settings
):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    with django_assert_num_queries(0):
        response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"alive": True})


def test_a_wrong_clock_is_said_and_nothing_is_missing(client):
    all_well()
    SignOfLife.objects.filter(kind="beat").update(clock_ahead_seconds=-42)
    status, parts = ready(client)
    words = parts["workers"]["detail"]
    assert (status, words.endswith("is 42 s behind the database clock.")) == (200, True), words
    assert b"sonar_clock_ahead_seconds -42.0" in client.get("/metrics").content


def test_a_sonar_that_is_well_is_ready(client):
    all_well()
    status, parts = ready(client)
    assert status == 200
    assert set(parts) == {"database", "redis", "workers", "scheduler", "tests", "measurements"}
    assert parts["measurements"] == {"ok": True, "detail": "Results are not assessed yet."}
    assert parts["tests"]["detail"] == "Tests may start."
    assert parts["workers"]["detail"] == (
        "Workers are running: 1 for transfers, 1 for control, 1 for cleanup."
    )


def test_a_sonar_whose_tests_are_stopped_is_ready_and_says_so(client):
    all_well()
    now = timezone.now()
    AllTests.objects.create(id=1, paused_since=now - SECOND, pause_reason="new firewall")
    status, parts = ready(client)
    said = "All Sonar tests are stopped until someone resumes them: new firewall."
    assert (status, parts["tests"]["detail"]) == (200, said)
    AllTests.objects.update(paused_until=now)
    assert ready(client)[1]["tests"]["detail"] == "Tests may start."


def test_doubtful_results_and_late_assessments_are_said_and_all_is_ready(
    client, small_world, settings
):
    all_well()
    now = timezone.now()
    for size in SizeClass.objects.all():
        Assessment.objects.create(size_class=size, assessed_at=now)
    said = {"ok": True, "detail": f"Results are as of {now:%H:%M} UTC."}
    assert ready(client)[1]["measurements"] == said
    late = now - (3 * settings.SONAR_INCIDENTS_SECONDS + 1) * SECOND
    Assessment.objects.filter(size_class__name="small").update(assessed_at=late)
    status, parts = ready(client)
    said = f"Results are not assessed since {format_minute(late)}."
    assert (status, parts["measurements"]) == (200, {"ok": False, "detail": said})
    stored_condition("slow", since=2 * HOUR, confirmed=False)
    stored_condition("failing", source=small_world.ral)
    assert ready(client)[1]["measurements"]["detail"] == said
    stored_condition("failing", since=2 * HOUR)
    status, parts = ready(client)
    said = (
        "Results have been doubtful since 20 Nov 10:00 UTC: most links fail at once, which "
        "suggests a problem on Sonar's machine."
    )
    assert (status, parts["measurements"]) == (200, {"ok": False, "detail": said})


def test_tests_may_all_run_at_vantages_and_cleaning_has_a_worker_without_one(client):
    all_well("transfers")
    queues = ["transfers@cern", "transfers.fake@cern", "cleanup@cern"]
    SignOfLife.objects.create(
        name="w@cern", kind="worker", seen_at=timezone.now(), every_seconds=10, queues=queues
    )
    assert ready(client)[0] == 200
    metrics = client.get("/metrics").content
    assert b'sonar_workers{queue="transfers@cern"} 1.0' in metrics
    assert b'sonar_queue_messages{queue="cleanup@cern"} ' in metrics
    SignOfLife.objects.filter(name__startswith="cleanup").delete()
    said = "No worker is running for the queue “cleanup”. Start a worker."
    assert failing(client) == {"workers": said}


@pytest.mark.parametrize(
    ("without", "part", "said"),
    [
        ("transfers", "workers", "No worker is running for the queue “transfers”. Start a worker."),
        ("control", "workers", "No worker is running for the queue “control”"),
        ("cleanup", "workers", "No worker is running for the queue “cleanup”"),
        ("beat", "scheduler", "The scheduler has not sent a task yet. Start the scheduler."),
        ("planner", "scheduler", "no planner run has finished yet."),
    ],
)
def test_who_is_missing_is_named(client, without, part, said):
    all_well(without)
    told = failing(client)
    assert list(told) == [part]
    assert said in told[part]


@pytest.mark.parametrize("name", ["transfers", "control", "cleanup", "beat", "planner"])
def test_who_was_last_heard_of_more_than_three_signs_ago_is_missing(client, still, name):
    all_well()
    late = SignOfLife.objects.filter(name__startswith=name)
    late.update(seen_at=still - 29 * SECOND)
    assert ready(client)[0] == 200
    late.update(seen_at=still - 31 * SECOND)
    assert len(failing(client)) == 1


def test_the_age_of_the_last_sign_is_said(client, still):
    all_well("beat")
    sign("beat@secret-host", "beat", 75 * SECOND)
    assert "has not sent a task for 75 s" in failing(client)["scheduler"]


def test_one_worker_may_take_from_both_queues(client):
    for without in ("transfers", "control"):
        SignOfLife.objects.all().delete()
        all_well(without)
        sign("both@secret-host", "worker", SECOND, "control", "transfers")
        assert ready(client)[0] == 200


def test_a_migration_that_is_not_applied_is_not_ready(client):
    all_well()
    name = "0007_roles_and_signs"
    gone = "DELETE FROM django_migrations WHERE app = 'sonar' AND name = %s RETURNING applied"
    back = "INSERT INTO django_migrations (app, name, applied) VALUES ('sonar', %s, %s)"
    with connection.cursor() as cursor:
        cursor.execute(gone, [name])
        (applied,) = cursor.fetchone()
        try:
            assert (
                f"lacks migrations of this version of Sonar (newest: sonar.{name}; count: 1)"
                in failing(client)["database"]
            )
        finally:
            cursor.execute(back, [name, applied])


def test_without_redis_it_is_not_ready(client, settings):
    all_well()
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert failing(client) == {
        "redis": "Redis is not responding: no tasks are being sent to workers."
    }


@pytest.mark.parametrize("way", refusing.WAYS)
def test_a_redis_that_takes_nothing_is_not_ready_and_it_is_said_why(client, way):
    all_well()
    refuse, why = refusing.WAYS[way]
    with refuse(project.REDIS_URL):
        told = failing(client)
    assert list(told) == ["redis"]
    assert told["redis"].startswith(f"Redis responds but refuses writes: {why}")
    assert "Until this problem is solved, no tasks are being sent to workers" in told["redis"]
    assert ready(client)[0] == 200


def test_looking_leaves_nothing_in_redis(client):
    all_well()
    with redis.Redis.from_url(project.REDIS_URL) as known:
        assert ready(client)[0] == 200
        assert 0 < known.pttl(health.TRIAL) <= 1000


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (redis.ResponseError("NOPERM this user secret-host has no permissions"), " (NOPERM)."),
        (redis.ResponseError("secret-host said no"), "check the Redis log."),
    ],
)
def test_other_words_of_redis_are_not_repeated(error, said):
    assert health.refusal(error).endswith(said)
    assert "secret-host" not in health.refusal(error)


def test_without_the_database_nothing_is_known_of_the_others(client, monkeypatch):
    params = {"dbname": "secret-host", "host": "127.0.0.1", "port": 1}
    monkeypatch.setattr(
        type(connection._connections["default"]), "get_connection_params", lambda _: params
    )
    told = failing(client)
    assert set(told) == {"database", "workers", "scheduler"}
    assert told["database"] == "The database is not responding."
    assert told["workers"] == told["scheduler"] == health.UNKNOWN


@pytest.fixture
def mute() -> Any:
    """A server that takes connections and never says a word; returns its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(listening.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        for one in held:
            one.close()


def test_servers_that_hang_do_not_hang_it(client, mute, monkeypatch, settings):
    params = {"dbname": "x", "host": "127.0.0.1", "port": mute}
    monkeypatch.setattr(
        type(connection._connections["default"]), "get_connection_params", lambda _: params
    )
    settings.REDIS_URL = f"redis://127.0.0.1:{mute}/0"
    for module in (tables, health):
        monkeypatch.setattr(module, "LONGEST_SECONDS", 2)
    began = time.monotonic()
    assert set(failing(client)) == {"database", "redis", "workers", "scheduler"}
    assert time.monotonic() - began < 30  # a connection that is waited for ends never


def test_a_statement_that_hangs_does_not_hang_it(monkeypatch):
    monkeypatch.setattr(tables, "LONGEST_SECONDS", 2)
    with (
        psycopg.connect(**tables.quickly()) as session,
        pytest.raises(psycopg.errors.QueryCanceled),
    ):
        session.execute("SELECT pg_sleep(60)")


def test_looking_takes_no_connection_of_the_pages(client, django_assert_num_queries):
    all_well()
    with django_assert_num_queries(0):
        assert ready(client)[0] == 200


def write_a_row(cursor: Any, way: str) -> None:
    with transaction.atomic():
        if way == "a copy":
            with cursor.copy("COPY full_disk FROM STDIN") as copy:
                copy.write("1\n")
        else:
            cursor.execute("INSERT INTO full_disk VALUES (1)")


@pytest.mark.parametrize("way", ["a statement", "a copy", "a commit"])
def test_a_database_whose_disk_was_full_is_not_ready_for_two_minutes(client, monkeypatch, way):
    """Signs of life may still fit into pages that are there, and the database answers."""
    queue = health.queue()
    queue.delete(full_disk.FULL)
    monkeypatch.setattr(full_disk, "_noted_at", [float("-inf")])
    all_well()
    assert ready(client)[0] == 200
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE full_disk (id int)")
        cursor.execute(
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
        )
        cursor.execute(
            "CREATE CONSTRAINT TRIGGER no_room AFTER INSERT ON full_disk DEFERRABLE INITIALLY "
            f"{'DEFERRED' if way == 'a commit' else 'IMMEDIATE'} FOR EACH ROW "
            "EXECUTE FUNCTION no_room()"
        )
        with pytest.raises((OperationalError, psycopg.OperationalError), match="extend file"):
            write_a_row(cursor, way)
        cursor.execute("DROP TABLE full_disk")
        cursor.execute("DROP FUNCTION no_room")
    assert failing(client) == {"database": health.NO_ROOM}
    page = client.get("/operations/").content.decode()
    assert "The database cannot store data:" in page
    assert "Sonar is healthy" not in page
    assert 0 < queue.ttl(full_disk.FULL) <= full_disk.FULL_SECONDS
    queue.delete(full_disk.FULL)
    assert ready(client)[0] == 200
    assert "The database cannot store data:" not in client.get("/operations/").content.decode()


def test_a_full_disk_is_no_trouble_while_redis_is_away(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    full_disk.note()
    assert not full_disk.is_noted()
