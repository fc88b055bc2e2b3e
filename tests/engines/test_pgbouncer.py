"""PgBouncer in transaction mode, three sessions for six clients at once: all answers are those of
PostgreSQL itself, byte by byte, and what is written is written.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import psycopg
import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.models import F
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings

from matrix.answers.status import figures, health
from matrix.http import questions
from matrix.store.cache import ANSWERS, STANDINGS
from matrix.store.data_version import snapshot
from sonar.database import tables
from sonar.database.actor import acting
from sonar.database.sessions import Session
from sonar.models import HistoryEntry, SavedView, Site, Token
from sonar.people.roles import Role
from tests import rights_samples
from tests.accounts import account, logged_in
from tests.engines import pgbouncer
from tests.engines.pgbouncer import Pooler, through
from tests.matrix.world import NOW
from tests.rights_samples import SAMPLES
from tests.starting import WORKER
from tests.template import MIGRATE

# /readyz and /metrics tell of the moment; tests/matrix/ has both.
OF_THE_MOMENT = ("/readyz", "/metrics")
ROUTES = sorted(
    route for route, method in SAMPLES if method == "GET" and route not in OF_THE_MOMENT
)
STREAMS = [
    f"/api/v1/{call}/?format={form}"
    for call in ("transfers", "links")
    for form in ("csv", "ndjson")
]
# Each asks a third of all, so that each is asked by two.
THREADS, SHARE = 6, 3
NEW_EACH_TIME = re.compile(rb'(csrfmiddlewaretoken" value|data-csrf)="[^"]*"')
LIMITS = {"statement_timeout": 30, "idle_in_transaction_session_timeout": 60}


@pytest.fixture
def names(real_commits: None, at_noon: None, settings: Settings) -> dict[str, str]:
    settings.SONAR_RATE_ACCOUNT = settings.SONAR_RATE_ANONYMOUS = None
    return rights_samples.scene()


@pytest.fixture
def pooled(pooler: Pooler) -> Iterator[None]:
    with through(pooler.url, LIMITS):
        yield


def forget() -> None:
    for kept in (ANSWERS, STANDINGS, questions, figures):
        kept.forget()  # type: ignore[attr-defined]


def answer(client: Client, path: str) -> tuple[int, dict[str, str], bytes]:
    """Return what a client is told, but for what is new each time."""
    forget()
    response: HttpResponse = client.get(path)
    body = b"".join(response.streaming_content) if response.streaming else response.content
    headers = {name: value for name, value in response.items() if name != "Expires"}
    return response.status_code, headers, NEW_EACH_TIME.sub(b"", body)


def test_every_page_and_call_answers_as_without_it(names: dict[str, str], pooler: Pooler) -> None:
    client = logged_in(account(Role.ADMINISTRATOR))
    paths = [*(SAMPLES[route, "GET"].path.format_map(names) for route in ROUTES), *STREAMS]
    direct = {path: answer(client, path) for path in paths}
    assert {status for status, _, _ in direct.values()} <= {200, 302, 404}

    def walk(number: int) -> list[str]:
        mine = Client()
        mine.cookies = client.cookies
        try:
            share = paths[number % SHARE :: SHARE]
            order = Random(number).sample(share, len(share))
            return [path for path in order if answer(mine, path) != direct[path]]
        finally:
            connections.close_all()

    with through(pooler.url, LIMITS), ThreadPoolExecutor(THREADS) as pool:
        other = [path for found in pool.map(walk, range(THREADS)) for path in found]
    assert other == []


# What others need goes last, and who sends it.
LAST = ("/login/", "/logout/", "DELETE", "/operations/aliases/remove/", "/views/delete/")


def statuses(names: dict[str, str]) -> dict[tuple[str, str], int]:
    """Write all that may be written, one after the other, as an administrator."""
    user = account(Role.ADMINISTRATOR)
    client = logged_in(user)
    key = Token.objects.create(user=user, name="mine", scopes=["read"])[0].token_key
    SavedView.objects.create(user=user, name="mine", address="/table/")
    writes = [sent for sent in SAMPLES if sent[1] != "GET"]
    writes.sort(key=lambda sent: [last in sent for last in LAST])
    return {
        sent: SAMPLES[sent].send(client, sent[1], names | {"key": key}).status_code
        for sent in writes
    }


def test_everything_that_may_be_written_is_taken(names: dict[str, str], pooler: Pooler) -> None:
    with transaction.atomic():
        direct = statuses(names)
        transaction.set_rollback(True)
    assert sum(status < 400 for status in direct.values()) > 40
    with through(pooler.url, LIMITS):
        assert statuses(names) == direct


def shown(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s)", [name])
        return str(cursor.fetchone()[0])


def messages(done: Callable[[], None], place: Path) -> list[str]:
    """Return the messages to the server while something is done, by their kind."""
    connection.ensure_connection()
    session = connection.connection.pgconn
    with place.open("w+") as file:
        session.trace(file.fileno())
        session.set_trace_flags(psycopg.pq.Trace.SUPPRESS_TIMESTAMPS)
        done()
        session.untrace()
        file.seek(0)
        return [line.split()[2] for line in file if line.startswith("F")]


def in_a_snapshot() -> None:
    with snapshot():
        shown("TimeZone")


def test_limits_hold_within_a_transaction_and_cost_no_message(
    pooled: None, real_commits: None, tmp_path: Path
) -> None:
    assert messages(in_a_snapshot, tmp_path / "trace") == ["Query"] * 3
    with transaction.atomic():
        assert {name: shown(name) for name in LIMITS} == {
            "statement_timeout": "30s",
            "idle_in_transaction_session_timeout": "1min",
        }
    assert {shown("statement_timeout") for _ in range(pgbouncer.SESSIONS)} == {"0"}


def test_who_acts_costs_no_message_and_stays_in_its_transaction(
    pooled: None, real_commits: None, tmp_path: Path
) -> None:
    site = Site.objects.create(name="Lancaster", latitude=54)

    def move() -> None:
        Site.objects.filter(pk=site.pk).update(latitude=F("latitude") + 1)

    by_nobody = messages(move, tmp_path / "nobody")
    with acting("page", "anna"):
        assert messages(move, tmp_path / "anna") == by_nobody == ["Query"]
    for _ in range(pgbouncer.SESSIONS):
        move()
    entries = HistoryEntry.objects.filter(name="Lancaster", action="changed").order_by("id")
    others = [False] * pgbouncer.SESSIONS
    assert [entry.who == "anna" for entry in entries] == [False, True, *others]


def test_a_statement_that_takes_too_long_is_ended(pooler: Pooler, real_commits: None) -> None:
    with (
        through(pooler.url, {"statement_timeout": 1}),
        pytest.raises(OperationalError, match="statement timeout"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT pg_sleep(30)")


def test_readyz_says_within_seconds_that_no_session_is_free(
    pooler: Pooler, pooled: None, real_commits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [psycopg.connect(pooler.url) for _ in range(pgbouncer.SESSIONS)]
    try:
        for session in held:
            session.execute("SELECT 1")
        began = time.monotonic()
        with monkeypatch.context() as patched:
            patched.setattr(tables, "LONGEST_SECONDS", 2)
            assert not health.look(NOW)["database"].ok
        assert time.monotonic() - began < 60
    finally:
        for session in held:
            session.close()
    assert health.look(NOW)["database"].ok


def test_a_process_that_was_not_told_of_it_ends_with_what_to_set(pooler: Pooler) -> None:
    env = os.environ | {"DATABASE_URL": pooler.url, "SONAR_STATEMENT_SECONDS": "30"}
    ended = subprocess.run(
        [sys.executable, *WORKER], env=env, capture_output=True, text=True, check=False
    )
    assert tables.POOLER in ended.stderr
    assert ended.returncode != 0


@pytest.mark.long
def test_an_empty_database_is_migrated_through_it(pooler: Pooler) -> None:
    url = f"{pooler.url.rpartition('/')[0]}/migrated"
    with psycopg.connect(pooler.database_url, autocommit=True) as session:
        session.execute("CREATE DATABASE migrated")
    try:
        env = os.environ | {"DATABASE_URL": url, "SONAR_DATABASE_TRANSACTION_POOL": "true"}
        subprocess.run([*MIGRATE], env=env, check=True)
        with Session.connect(url) as session:
            assert tables.problem(session) is None
    finally:
        with psycopg.connect(pooler.database_url, autocommit=True) as session:
            session.execute("DROP DATABASE migrated WITH (FORCE)")
