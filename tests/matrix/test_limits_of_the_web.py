"""Limits as gunicorn, PostgreSQL and Redis keep them: how long, how much, and what the log says."""

import json
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from redis import Redis

from sonar.people import tokens
from tests.benchmarks import loopback

CALL = "/api/v1/matrix/"
AT_ONCE = 60.0
"""Far below the 30 s that gunicorn gives a request, far above what a busy machine needs."""


@contextmanager
def other_connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    wanted = {**connection.get_connection_params(), "dbname": database}
    names = ("dbname", "user", "host", "port")
    with psycopg.connect(**{name: wanted[name] for name in names if name in wanted}) as other:
        yield other


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Let nobody read a table meanwhile."""
    with other_connection(connection.settings_dict["NAME"]) as other:
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        other.rollback()


@contextmanager
def closed_database() -> Iterator[None]:
    """Let the server refuse and end all connections to the database of this test."""
    name = connection.settings_dict["NAME"]
    connection.close()
    with other_connection("postgres") as other:
        other.autocommit = True
        other.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            other.execute(ended, [name])
            yield
        finally:
            other.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def ask(web: loopback.Web, path: str, **headers: str) -> Any:
    return web.pool.request("GET", web.url + path, headers=headers, redirect=False, timeout=120)


@pytest.mark.long
def test_limits_of_a_statement_a_request_and_a_log(web, tmp_path):
    """Of one server, which takes seconds to start, all is asked that there is to ask."""
    running, log = web(SONAR_STATEMENT_SECONDS="5"), tmp_path / "gunicorn.log"
    a_statement_has_so_many_seconds_and_no_more(running)
    requests_that_are_too_much_are_refused_at_once(running)
    the_log_holds_no_secret(running, log)
    a_database_that_goes_away_is_a_503_until_it_is_back(running, log)


def a_statement_has_so_many_seconds_and_no_more(running: loopback.Web) -> None:
    sentence = "The database took longer than 5 s: request a shorter time range or fewer links."
    with locked("sonar_sizeclass"):
        begun = time.monotonic()
        answered = ask(running, "/api/v1/links/")
        shown = ask(running, "/table/?window=24h")
        assert time.monotonic() - begun < AT_ONCE
    assert (answered.status, answered.headers["Retry-After"]) == (503, "30")
    assert json.loads(answered.data) == {"detail": sentence, "errors": {}}
    assert (shown.status, shown.headers["Content-Type"]) == (503, "text/html; charset=utf-8")
    assert sentence in shown.data.decode()
    assert ask(running, "/api/v1/links/").status == 200


def a_database_that_goes_away_is_a_503_until_it_is_back(running: loopback.Web, log: Path) -> None:
    before = len(log.read_text())
    with closed_database(), ThreadPoolExecutor() as threads:
        begun = time.monotonic()
        answered = list(threads.map(lambda path: ask(running, path), (CALL, "/")))
        assert time.monotonic() - begun < AT_ONCE
    assert [one.status for one in answered] == [503, 503]
    assert json.loads(answered[0].data)["detail"].startswith("The database is unavailable or busy")
    assert b"Tests continue and results are kept" in answered[1].data
    deadline = time.monotonic() + 120
    while ask(running, CALL).status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert "Traceback" not in log.read_text()[before:]


@pytest.mark.long
def test_many_at_once_are_counted_one_by_one(web):
    running = web(SONAR_RATE_ANONYMOUS="20/day")
    Redis.from_url(os.environ["REDIS_URL"]).flushdb()  # the question whether it had started
    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(lambda _: ask(running, CALL).status, range(40)))
    assert sorted(got) == [200] * 20 + [429] * 20


def raw(web: loopback.Web, *parts: bytes, seconds: float = 120) -> bytes:
    """Send bytes as they are; return what came until the server closed or nothing more comes."""
    host, _, port = web.url.removeprefix("http://").partition(":")
    got = b""
    with socket.create_connection((host, int(port)), timeout=seconds) as line:
        with suppress(OSError):  # it need not take in what it refuses
            for part in parts:
                line.sendall(part)
            line.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while piece := line.recv(65_536):
                got += piece
    return got


HEAD = b"POST /api/v1/transfers/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
JSON = b"Content-Type: application/json\r\n"


def requests_that_are_too_much_are_refused_at_once(running: loopback.Web) -> None:
    user = User.objects.create_user("sender")
    user.user_permissions.add(Permission.objects.get(codename="add_transfer"))
    text = tokens.create(user, "push", ["ingest"], 1)[1]
    head = HEAD + JSON + f"Authorization: Token {text}\r\n".encode()
    begun = time.monotonic()
    claims_less = raw(running, head + b"Content-Length: 2\r\n\r\n", b"[" + b" " * 1_000 + b"]")
    claims_more = raw(running, head + b"Content-Length: 9999\r\n\r\n", b"[]")
    too_large = raw(running, head + b"Content-Length: 8000002\r\n\r\n", b"[" * 8_000_002)
    chunked = raw(running, head + b"Transfer-Encoding: chunked\r\n\r\n", b"2\r\n[]\r\n0\r\n\r\n")
    assert time.monotonic() - begun < AT_ONCE
    got = [claims_less, claims_more, too_large, chunked]
    assert [int(one.split()[1]) for one in got] == [400, 400, 413, 411]
    assert b"larger than 8,000,000 bytes" in too_large
    assert b"Content-Length" in chunked
    assert ask(running, CALL).status == 200


def the_log_holds_no_secret(running: loopback.Web, log: Path) -> None:
    bob = User.objects.create_user("bob", password="right")
    text = tokens.create(bob, "script", ["read"], 1)[1]
    authorised = {"Authorization": f"Token {text}"}
    for path in (CALL, f"{CALL}?token={text}", "/api/v1/nothing/", f"/sites/?token={text}"):
        ask(running, path, **authorised)
    ask(running, CALL, Authorization=f"Token {text[:-1]}x")
    ask(running, CALL, Cookie=f"sessionid={text}")
    with locked("sonar_sizeclass"):
        assert ask(running, f"{CALL}?site=a", **authorised).status == 503
    running.pool.request(
        "POST", f"{running.url}/login/", fields={"username": "bob", "password": text}
    )
    logged = log.read_text()
    assert "/api/v1/nothing/" in logged
    assert text not in logged
    assert text[6:21] not in logged
