"""Readers on a real streaming replica: what it answers, how old that is, and what it never does."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker, Settings

from matrix.store import data_version
from matrix.store.data_version import snapshot
from sonar.database import reader, replica
from sonar.database.replica import READER, REPLICA, ReplicaState
from sonar.models import Endpoint, Token
from sonar.people.roles import Role
from sonar.registry.cache import RegistryCache
from sonar.results import store
from sonar.settings import databases
from tests import flush
from tests.accounts import account, logged_in
from tests.conftest import MONTHS
from tests.engines.pair import Pair
from tests.engines.pgbouncer import Pooler
from tests.matrix import sent, world
from tests.waiting import wait_for

pytestmark = pytest.mark.long

LONGEST_SECONDS = 120
PAUSED = "SELECT pg_get_wal_replay_pause_state() = 'paused'"
IS_WHOLE = "SELECT pg_last_wal_replay_lsn() >= '{}'::pg_lsn"
READ = [
    *("/", "/table/", "/sites/", "/sites/RAL/", "/preview/", "/cells/", "/events/"),
    *("/api/v1/sites/", "/api/v1/matrix/", "/api/v1/links/", "/api/v1/transfers/"),
    *("/api/v1/links/?format=csv", "/api/v1/transfers/?format=csv"),
]
Shown = TypeVar("Shown")
minutes = count(1)


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[Pair]:
    """Run a primary with a small world in it, and its replica; Django works with the primary."""
    with ExitStack() as stack:
        made = Pair(tmp_path_factory.mktemp("pair"), stack)
        connection.close()
        place = databases.parsed("DATABASE_URL", made.url(0), {})
        named = {name: place[name] for name in ("NAME", "HOST", "PORT", "USER")}
        stack.enter_context(django_db_blocker.unblock())
        stack.enter_context(patch.dict(connection.settings_dict, named))
        stack.callback(connection.close)
        flush.add_size_classes()
        store.make_months(MONTHS)
        world.make()
        yield made


@contextmanager
def read_from(url: str, *, seconds: int = 60, transaction_pool: bool = False) -> Iterator[None]:
    """Let readers be answered by what this address names, and wait so long for a connection."""
    found = databases.replica(url, 2, {}, transaction_pool=transaction_pool)
    found["OPTIONS"]["connect_timeout"] = found["OPTIONS"]["pool"]["timeout"] = seconds
    connections.settings[READER] = found
    connections.configure_settings(connections.settings)
    REPLICA.forget()
    try:
        yield
    finally:
        connections[READER].close()
        connections[READER].close_pool()  # type: ignore[attr-defined]
        del connections[READER], connections.settings[READER]


@pytest.fixture
def of_the_web(pair: Pair, settings: Settings, at_noon: None) -> Iterator[Settings]:
    """Give the settings of a web process that knows of a replica; it looks at it each time."""
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "matrix.http.replica.ReadsFromReplica"]
    settings.SONAR_RATE_ACCOUNT = settings.SONAR_RATE_ANONYMOUS = None
    settings.SONAR_REPLICA_SECONDS = 3600
    with patch.object(replica, "TRACK_SECONDS", 0), patch.object(replica, "RETRY_SECONDS", 0.3):
        yield settings
    pair.ask(1, "SELECT pg_wal_replay_resume()")


@pytest.fixture
def web(of_the_web: Settings, pair: Pair) -> Iterator[Settings]:
    with read_from(pair.url(1)):
        caught_up(pair)
        yield of_the_web


def caught_up(pair: Pair) -> None:
    position = pair.ask(0, "SELECT pg_current_wal_flush_lsn()::text")
    assert wait_for(lambda: pair.ask(1, IS_WHOLE.format(position)), LONGEST_SECONDS, 0.02)


def pause(pair: Pair) -> None:
    """Let the replica stand still; what comes from now on it does not have."""
    caught_up(pair)
    pair.ask(1, "SELECT pg_wal_replay_pause()")
    assert wait_for(lambda: pair.ask(1, PAUSED), LONGEST_SECONDS, 0.02)


def resume(pair: Pair) -> None:
    pair.ask(1, "SELECT pg_wal_replay_resume()")
    caught_up(pair)


def change() -> str:
    """Change the registry and the results; return the new label of an endpoint."""
    number = next(minutes)
    ends = Endpoint.objects.get(name="RAL_DATADISK"), Endpoint.objects.get(name="DESY_DATADISK")
    Endpoint.objects.filter(id=ends[0].id).update(label=f"LABEL{number}")
    sent.send(*ends, world.NOW - number * sent.MINUTE, seconds=10.0 + number)
    return f"LABEL{number}"


def ask(path: str, client: Client | None = None, **headers: Any) -> tuple[int, str, bytes]:
    """Return status, ETag and body; the connection of this thread is the primary's again."""
    response: HttpResponse = (client or Client()).get(path, headers=headers)
    body = b"".join(response.streaming_content) if response.streaming else response.content
    assert connection.alias == "default"
    return response.status_code, response.headers.get("ETag", ""), body


def label(client: Client | None = None, **headers: str) -> str:
    status, _, body = ask("/api/v1/endpoints/RAL_DATADISK/", client, **headers)
    assert status == 200
    return str(body.partition(b'"label":"')[2].partition(b'"')[0].decode())


def read_there(read: Callable[[], Shown]) -> tuple[int, Shown]:
    """Return how many statements of what is read went to the replica, and what it gave."""
    statements = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        if sql not in (replica.OF_REPLICA, replica.IDENTITY):
            statements.append(sql)
        return execute(sql, *rest)

    with connections[READER].execute_wrapper(note):
        shown = read()
    return len(statements), shown


def looked_at() -> ReplicaState:
    state = replica.state()
    assert state is not None
    return state


def test_every_page_and_call_is_read_from_the_replica_alone(web: Settings, pair: Pair) -> None:
    change()
    caught_up(pair)
    with CaptureQueriesContext(connection) as of_primary:
        of_replica, answers = read_there(lambda: {path: ask(path)[0] for path in READ})
    assert answers == dict.fromkeys(READ, 200)
    statements = {query["sql"] for query in of_primary.captured_queries}
    assert statements == {replica.OF_PRIMARY, replica.IDENTITY}
    assert of_replica > 2 * len(READ)


def test_an_etag_never_stands_for_older_data_on_whichever_server_it_is_read(
    web: Settings, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a 304 for what the client has not got, on the way there and back."""
    monkeypatch.setattr(reader, "SAID_SECONDS", 3600)
    paths = [path for path in READ if ask(path)[1]]
    assert len(paths) > 8
    pause(pair)
    old = {path: ask(path) for path in paths}
    change()
    assert {path: ask(path) for path in paths} == old
    web.SONAR_REPLICA_SECONDS = 0
    new = {path: ask(path) for path in paths}
    for path in paths:
        assert old[path][1] != new[path][1], path
        # The numbers of the picture for chats are the same.
        assert (old[path][2] == new[path][2]) == (path == "/preview/"), path
        assert ask(path, **{"If-None-Match": old[path][1]}) == new[path]
    web.SONAR_REPLICA_SECONDS = 3600
    for path in paths:
        assert ask(path, **{"If-None-Match": new[path][1]}) == old[path]
        assert ask(path, **{"If-None-Match": old[path][1]})[0] == 304
    resume(pair)
    for path in paths:
        assert ask(path, **{"If-None-Match": old[path][1]}) == new[path]
        assert ask(path, **{"If-None-Match": new[path][1]})[0] == 304


def test_what_is_read_outside_of_a_snapshot_is_the_primarys_and_all_that_follows(
    web: Settings, pair: Pair
) -> None:
    with reader.preferred():
        with snapshot():
            assert connection.alias == READER
            with pytest.raises(RuntimeError, match="from the primary"), snapshot(of_primary=True):
                pass
        version = data_version.fetch(data_version.PLANNED)
        with snapshot():
            assert connection.alias == "default"
    with reader.preferred(), snapshot():
        assert (connection.alias, data_version.fetch(data_version.PLANNED)) == (READER, version)


def test_what_is_made_of_the_registry_is_kept_for_each_server(web: Settings, pair: Pair) -> None:
    made: list[str] = []
    kept = RegistryCache(lambda: made.append(connection.alias))
    pause(pair)
    change()
    for _ in range(2):
        kept.read()
        with reader.preferred(), snapshot():
            kept.read()
    assert made == ["default", READER]


def test_a_replica_that_is_behind_says_so_and_beyond_the_limit_is_not_asked(
    web: Settings, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "SAID_SECONDS", 0)
    pause(pair)
    before = label()
    after = change()
    assert label() == before
    status, etag, page = ask("/sites/")
    assert (status, b"Data as of" in page, "-as-of-20" in etag) == (200, True, True)
    assert ask("/sites/", **{"If-None-Match": etag})[0] == 304
    assert f"{looked_at().as_of:%H:%M:%S} UTC".encode() in page
    answer = Client().get("/api/v1/status/").json()["replica"]
    assert (answer["problem"], answer["age_seconds"] > 0) == (None, True)
    web.SONAR_REPLICA_SECONDS = 0
    assert label() == after
    assert b"Data as of" not in ask("/sites/")[2]
    assert b"The data on the replica is more than" in ask("/operations/")[2]
    parts = Client().get("/readyz").json()["parts"]
    assert parts["replica"]["detail"].startswith(replica.BEHIND.format(0))
    assert 'sonar_up{part="replica"} 0.0' in ask("/metrics")[2].decode()
    web.SONAR_REPLICA_SECONDS = 3600
    resume(pair)
    assert label() == after
    assert 'sonar_up{part="replica"} 1.0' in ask("/metrics")[2].decode()


def test_who_writes_finds_it_at_once_and_others_when_the_replica_has_it(
    web: Settings, pair: Pair
) -> None:
    operator = account(Role.OPERATOR, name=f"operator-{next(minutes)}")
    writer, script = logged_in(operator), Client()
    keys = {
        scope: Token.objects.create(user=operator, name=scope, scopes=["read", scope][-2:])[1]
        for scope in ("read", "operate")
    }
    pause(pair)
    before, after = label(), f"MINE{next(minutes)}"
    written = writer.patch(
        "/api/v1/endpoints/RAL_DATADISK/",
        {"label": after},
        content_type="application/json",
    )
    assert written.status_code == 200, written.content
    assert label(writer) == after
    assert label(script, authorization=f"Token {keys['operate']}") == after
    assert label(script, authorization=f"Token {keys['read']}") == before
    assert label() == before
    resume(pair)
    for client in (writer, Client()):
        statements, shown = read_there(lambda client=client: label(client))
        assert (shown, statements > 0) == (after, True)


def test_what_the_replica_has_not_yet_the_primary_is_asked_for(web: Settings, pair: Pair) -> None:
    pause(pair)
    name = f"NEW{next(minutes)}"
    world.endpoint(name, Endpoint.objects.get(name="RAL_DATADISK").site)
    assert ask(f"/sites/RAL/endpoints/{name}/")[0] == 200
    assert ask("/sites/RAL/endpoints/NONE/")[0] == 404


def test_a_statement_that_the_replica_ends_is_repeated_at_the_primary(
    web: Settings, pair: Pair
) -> None:
    """As hot standbys do: what they have to replay takes away rows that a reader still sees."""
    ended = []

    def vacuum(execute: Any, sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if "sonar_dirtymark" in sql and not ended:
            table = f"gone{next(minutes)}"
            statements = f"CREATE TABLE {table} AS SELECT 1", f"DELETE FROM {table}"
            pair.ask(0, *statements, f"VACUUM {table}")
            ended.append(wait_for(lambda: not reads(pair), LONGEST_SECONDS, 0.02))
        return result

    with connections[READER].execute_wrapper(vacuum):
        assert ask("/sites/")[0] == 200
    assert ended == [True]


def reads(pair: Pair) -> bool:
    """Say whether a reader has a snapshot of the replica."""
    asked = "SELECT count(backend_xmin) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    return bool(pair.ask(1, asked))


@pytest.mark.parametrize("hosts", [(1,), (0, 1)])
def test_a_replica_that_is_killed_is_left_at_once_and_comes_back_by_itself(
    of_the_web: Settings, pair: Pair, hosts: tuple[int, ...]
) -> None:
    def is_asked() -> bool:
        statements, shown = read_there(label)
        assert shown == present
        return statements > 0

    url = pair.url(*hosts, more="?target_session_attrs=prefer-standby")
    with read_from(url, seconds=1):
        present = change()
        caught_up(pair)
        assert wait_for(is_asked, LONGEST_SECONDS)
        with pair.without(1):
            began = time.monotonic()
            assert not is_asked()
            assert time.monotonic() - began < 30
            assert not is_asked()
            assert b"is not serving read requests" in ask("/operations/")[2]
        present = change()
        caught_up(pair)
        assert wait_for(is_asked, LONGEST_SECONDS)


@pytest.mark.parametrize(
    ("number", "identity", "problem"),
    [
        (0, replica.IDENTITY, replica.NO_REPLICA),
        (1, "SHOW unix_socket_directories", replica.OTHER),
        (1, replica.IDENTITY, "The database lacks migrations"),
    ],
)
def test_what_does_not_fit_is_not_asked(
    of_the_web: Settings,
    pair: Pair,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    identity: str,
    problem: str,
) -> None:
    monkeypatch.setattr(replica, "IDENTITY", identity)
    if problem not in (replica.NO_REPLICA, replica.OTHER):
        monkeypatch.setattr(replica.tables, "of_database", lambda session: frozenset())
    with read_from(pair.url(number)):
        assert ask("/sites/")[0] == 200
        assert looked_at().problem.startswith(problem)


def test_it_may_be_behind_a_pooler_of_transactions(
    of_the_web: Settings, pair: Pair, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    pooler = Pooler(tmp_path, pair.url(1))
    pooler.start()
    try:
        with read_from(pooler.url, transaction_pool=True):
            present = change()
            caught_up(pair)
            statements, shown = read_there(label)
            assert (shown, statements > 0) == (present, True)
    finally:
        pooler.stop()


def test_an_export_reads_from_it(
    web: Settings, pair: Pair, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    pause(pair)
    call_command("export_results")
    before = capsysbinary.readouterr().out
    change()
    call_command("export_results")
    assert capsysbinary.readouterr().out == before
