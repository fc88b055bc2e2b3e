"""Answers in CSV and NDJSON: the records of JSON, all of them, and never a part for the whole."""

import http.client
import json
import random
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.db import OperationalError, connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings
from rest_framework.request import Request

from matrix.api import streaming
from matrix.api.streaming import by_piece, stream
from matrix.api.transfers.views import reading_for_long
from sonar.models import Transfer
from sonar.notation.result_columns import listed
from sonar.records.exporting import copy_of
from sonar.results import store
from tests.benchmarks import loopback
from tests.matrix import responses, world
from tests.matrix.conftest import Web
from tests.matrix.sent import MARKUP, MINUTE, PLAIN, many, result, send
from tests.matrix.world import HOUR, NOW, World

URL = "/api/v1/transfers/"
LINKS = "/api/v1/links/"
NDJSON = "?format=ndjson"
NASTY = (
    MARKUP,
    'said "no", and \\"no\\" again',
    "\\.",
    "\\N",
    "back\\slash \\n \\u0041 \\",
    "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f",
    "two\nlines\r\nand\ttabs",
    "\x01quoted\x01 and \x02parted\x02",
    "\U0001f40d naïve ﷽ \u2028 \u2029 \ufeff",
    "{}",
    "null",
    '"',
    ", ; | , ;",
    " leading and trailing ",
)


def ndjson(client: Client, path: str = URL, text: str = "") -> list[dict[str, Any]]:
    response = client.get(f"{path}{NDJSON}&{text}")
    assert response.status_code == 200, response
    assert response["Content-Type"] == "application/x-ndjson"
    body = b"".join(response.streaming_content)
    assert not body or body.endswith(b"\n")
    # Not splitlines: it takes U+2028 for the end of a line as well.
    return [json.loads(line) for line in body.split(b"\n")[:-1]]


def pages(client: Client, path: str, name: str, text: str = "") -> list[dict[str, Any]]:
    found = responses.pages(client, f"{path}?page_size=100&{text}")
    return [record for page in found for record in page[name]]


def nasty(small_world: World) -> None:
    ends = small_world.ral, small_world.glasgow
    six = world.profile(**PLAIN | {"streams": 16, "ip_version": 6, "origin": "production"})
    store.store(
        result(*ends, NOW - timedelta(microseconds=number), error=error)
        for number, error in enumerate(NASTY)
    )
    rng = random.Random(2011)
    one = result(*ends, NOW, profile_id=six.id)
    store.store(
        replace(
            one,
            id=uuid4(),
            started_at=NOW - HOUR - timedelta(microseconds=rng.randrange(10**10)),
            seconds=rng.choice([1, 0.1 + 0.2, 1e-3, rng.uniform(1e-3, 1), rng.expovariate(1e-3)]),
            bytes=rng.choice([1, 10**9, rng.randrange(1, 10**9)]),
        )
        for _ in range(300)
    )
    # As much as a record can have, and as little.
    huge = {"bytes": 10**18 - 1, "seconds": 10.0**8}
    store.store([result(*ends, NOW - 2 * HOUR, **huge), result(*ends, NOW - 2 * HOUR, bytes=1)])
    send(*ends, NOW - 3 * HOUR, state="lost", error="worker died", error_where="control")


@pytest.mark.parametrize(
    "text", ["", "state=lost&state=failed", "size=small", "error=no", "cloud=FR"]
)
def test_a_line_is_the_same_record_as_in_json(client, small_world, text, at_noon):
    nasty(small_world)
    streamed, paged = ndjson(client, text=text), pages(client, URL, "transfers", text)
    assert len(streamed) == len(paged)
    for line, record in zip(streamed, paged, strict=True):
        assert line == record
        assert list(line) == list(record)
    assert len(paged) == {"": 316, "cloud=FR": 0}.get(text, len(paged))


@pytest.mark.parametrize(
    ("text", "sort"), [("", "off"), ("state=failed&mover=x", "off"), ("source_site=RAL", "on")]
)
def test_all_of_a_window_leaves_in_the_order_of_an_index(client, small_world, text, sort, at_noon):
    many(small_world.ral, small_world.glasgow, 500, NOW)
    with CaptureQueriesContext(connection) as captured:
        ndjson(client, text=text)
    (told,) = [one["sql"] for one in captured.captured_queries if "enable_sort" in one["sql"]]
    assert f"set_config('enable_sort', '{sort}', true)" in told
    copied = copy_of(Transfer.objects.filter(state="failed"), listed(internal=False), "ndjson")
    query = copied.removeprefix("COPY (").partition(") TO STDOUT")[0]
    with reading_for_long(most=sort == "off"), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {query}")
        steps = [step.strip(" ->").partition("  ")[0] for (step,) in cursor.fetchall()]
    assert ("Sort" in steps) is (sort == "on")


def test_csv_has_the_same_texts_and_numbers(client, small_world, at_noon):
    nasty(small_world)
    lines = responses.csv_rows(client, f"{URL}?format=csv")
    for line, record in zip(lines, ndjson(client), strict=True):
        assert (line["error"] or None) == record["error"]
        assert float(line["seconds"]) == record["seconds"]
        assert int(line["bytes"]) == record["bytes"]
        assert line["started_at"] == record["started_at"]


def test_links_are_the_same_records_too(client, small_world, at_noon):
    many(small_world.ral, small_world.glasgow, 30, NOW - MINUTE)
    for text in ("", "ordering=-large.mean_mb_s&source_cloud=UK", "min_mb_s=1", "search=nothing"):
        streamed = ndjson(client, LINKS, text)
        assert streamed == pages(client, LINKS, "links", text)
    assert len(ndjson(client, LINKS)) == 12


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/x-ndjson", "application/x-ndjson"),
        ("text/csv;q=0.9, application/x-ndjson;q=0.1", "text/csv; charset=utf-8"),
        ("text/csv;q=0.1, application/x-ndjson;q=0.9, */*;q=0.05", "application/x-ndjson"),
        ("application/json;q=0, text/*", "text/csv; charset=utf-8"),
        ("text/csv, application/json", "text/csv; charset=utf-8"),
        ("text/html, */*;q=0.1", "application/json"),
        ("text/html", "application/json"),
        ("*/*", "application/json"),
        (";;q=x,,/", "application/json"),
        ("text/csv;q=2", "text/csv; charset=utf-8"),
    ],
)
@pytest.mark.parametrize("path", [URL, LINKS])
def test_the_accept_header_chooses_by_its_weights(client, db, path, accept, kind):
    response = client.get(path, headers={"accept": accept})
    assert (response.status_code, response["Content-Type"]) == (200, kind)
    assert "Accept" in response["Vary"]
    response.getvalue()


def test_who_asks_for_the_head_alone_gets_it_before_a_row_is_read(client, db):
    with CaptureQueriesContext(connection) as captured:
        response = client.head(f"{URL}{NDJSON}")
    assert (response.status_code, response["Content-Type"]) == (200, "application/x-ndjson")
    assert not [one["sql"] for one in captured.captured_queries if "COPY" in one["sql"]]


def test_lines_go_in_pieces_and_the_first_one_at_once():
    lines = [b"x" * 999 + b"\n"] * 1000
    pieces = list(by_piece(iter(lines), b"head\n"))
    assert pieces[0] == b"head\n" + lines[0]
    assert b"".join(pieces) == b"head\n" + b"".join(lines)
    assert max(map(len, pieces)) < 70_000
    assert list(by_piece(iter([]))) == [b""]


# As many as may be


def asked(method: str = "get", **environ: object) -> Request:
    return Request(getattr(RequestFactory(), method)("/", **environ))


@pytest.fixture
def one_place(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.SONAR_STREAMS = 1
    monkeypatch.setattr(streaming, "places", BoundedSemaphore(1))


def test_one_more_than_may_be_is_a_503_that_says_when(client, small_world, one_place):
    def pieces() -> Iterator[bytes]:
        yield b"1"
        yield b"2"

    first = stream(asked(), pieces(), "csv", "numbers")
    for path in (URL, LINKS):
        refused = client.get(f"{path}{NDJSON}")
        assert (refused.status_code, refused["Retry-After"]) == (503, "10")
        sentence = (
            "The maximum number of downloads (1) is already running: try again in 10 seconds."
        )
        assert refused.json() == {"detail": sentence, "errors": {}}
        assert client.get(path).status_code == client.head(f"{path}{NDJSON}").status_code == 200
    assert first.getvalue() == b"12"
    assert client.get(f"{LINKS}{NDJSON}").getvalue()


@pytest.mark.django_db
@pytest.mark.parametrize("taken", [0, 1, 2])
def test_a_reader_who_leaves_gives_up_the_place_and_what_was_open(taken, one_place):
    closed: list[int] = []

    def pieces() -> Iterator[bytes]:
        try:
            yield from (b"piece",) * 9
        finally:
            closed.append(1)

    response = stream(asked(), pieces(), "csv", "pieces")
    content = iter(response.streaming_content)
    for _ in range(taken):
        next(content)
    response.close()
    assert closed == [1]
    stream(asked(), pieces(), "csv", "pieces").close()


def test_an_error_before_the_first_piece_is_one_of_the_call(one_place):
    def pieces() -> Iterator[bytes]:
        raise OperationalError("gone")
        yield b""

    for _ in range(2):
        with pytest.raises(OperationalError):
            stream(asked(), pieces(), "csv", "pieces")


def test_an_error_later_cuts_the_connection_and_is_logged_in_one_line(caplog, one_place):
    def pieces() -> Iterator[bytes]:
        yield b"first"
        raise OperationalError("gone\nfor good")

    content = iter(stream(asked(), pieces(), "csv", "pieces").streaming_content)
    assert next(content) == b"first"
    with pytest.raises(ConnectionResetError):
        next(content)
    assert caplog.messages == ["A response ended early and was truncated: gone for good"]
    assert caplog.records[0].exc_info is None
    assert streaming.places.acquire(blocking=False)


@pytest.mark.django_db
def test_a_reader_who_takes_nothing_is_not_waited_for_for_ever():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        environ = {"gunicorn.socket": ours}
        stream(asked(**environ), iter([b""]), "csv", "nothing").close()
        assert ours.gettimeout() == streaming.PATIENCE_SECONDS


# Under gunicorn


@pytest.fixture
def web(web: Web) -> Web:
    """Start a web server that has room for one stream."""
    return partial(web, SONAR_STREAMS="1")


@pytest.fixture
def much(real_commits: None) -> datetime:
    """Results of 30 MB, which no buffer of a connection takes at once."""
    made, now, rng = world.make(), timezone.now(), random.Random(1)
    one = result(made.ral, made.glasgow, now, error="like all the others")
    store.store(
        replace(
            one,
            id=uuid4(),
            started_at=now - number * timedelta(seconds=1),
            error=rng.randbytes(4_900).hex(),
        )
        for number in range(3_000)
    )
    return now


def begin(web: loopback.Web, headers: dict[str, str] | None = None) -> http.client.HTTPResponse:
    """Ask for everything, and read the beginning of the first record."""
    own = http.client.HTTPConnection(urlsplit(web.url).netloc, timeout=120)
    own.request("GET", f"{URL}{NDJSON}", headers=headers or {})
    response = own.getresponse()
    assert response.status == 200, response.read()
    assert response.read(5)
    return response


def backends() -> list[int]:
    """Return the connections of the database that a stream has under way."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE state <> 'idle' AND query LIKE 'COPY (%'"
            " AND pid <> pg_backend_pid()"
        )
        return [pid for (pid,) in cursor.fetchall()]


def until(holds: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def beside(running: loopback.Web) -> int:
    """Return what another stream is answered, which has nothing but its head."""
    return running.get(URL, {"format": "csv", "size": "small"}).status


@pytest.mark.long
def test_a_stream_arrives_whole_or_has_no_end(web, much, tmp_path):
    """Of one server and another, which take seconds to start, all is asked that there is to ask."""
    running = web()
    for headers in ({}, {"Accept-Encoding": "gzip"}):
        all_of_it_arrives(running, headers)
        without_the_database_it_has_no_end(running, headers, tmp_path / "gunicorn.log")
    a_reader_who_leaves_frees_the_database_at_once(running)
    it_ends_when_its_time_is_over(web(SONAR_STREAM_SECONDS="5", SONAR_STATEMENT_SECONDS="60"))


def all_of_it_arrives(running: loopback.Web, headers: dict[str, str]) -> None:
    response = running.get(URL, {"format": "ndjson"}, headers)
    assert response.headers.get("Content-Encoding") == headers.get("Accept-Encoding")
    records = [json.loads(line) for line in response.data.splitlines()]
    assert [one["id"] for one in records] == [
        str(one)
        for one in Transfer.objects.order_by("-started_at", "-id").values_list("id", flat=True)
    ]


def a_reader_who_leaves_frees_the_database_at_once(running: loopback.Web) -> None:
    response = begin(running)
    assert len(backends()) == 1
    assert beside(running) == 503
    assert running.get(URL, {}).status == 200
    response.close()
    until(lambda: not backends())
    until(lambda: beside(running) == 200)


def without_the_database_it_has_no_end(
    running: loopback.Web, headers: dict[str, str], log: Path
) -> None:
    before = len(log.read_text())
    response = begin(running, headers)
    (backend,) = backends()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [backend])
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        response.read()
    until(lambda: beside(running) == 200)
    logged = log.read_text()[before:]
    assert (
        logged.count("WARNING matrix.api.streaming: A response ended early and was truncated:") == 1
    )
    assert "Traceback" not in logged


def it_ends_when_its_time_is_over(running: loopback.Web) -> None:
    response = begin(running)
    time.sleep(5.5)  # who reads nothing holds it up: it ends when it goes on
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        response.read()
