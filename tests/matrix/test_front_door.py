"""What gunicorn believes, refuses and logs before Sonar sees a request: asked with raw bytes."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path

import pytest
from django.db import connection

from tests.benchmarks import loopback
from tests.matrix.test_limits_of_the_web import raw

CALL = b"/api/v1/probes/"
SECRET = "sonar_" + "5e" * 32


pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web")


@pytest.fixture(scope="module")
def web(django_db_setup: None, home: Path) -> Iterator[loopback.Web]:
    """One for all of them: nothing is written here."""
    with running(home) as web:
        yield web


@pytest.fixture
def log(home: Path) -> Callable[[], str]:
    """Return what gives the lines that were logged since the test began."""
    path = home / "gunicorn.log"
    before = len(path.read_text()) if path.exists() else 0
    return lambda: path.read_text()[before:]


def running(tmp_path: Path, **settings: str) -> AbstractContextManager[loopback.Web]:
    base = os.environ["DATABASE_URL"].rpartition("/")[0]
    url = f"{base}/{connection.settings_dict['NAME']}"
    return loopback.sonar(tmp_path, {"DATABASE_URL": url} | settings)


def get(path: bytes, *headers: bytes, host: bytes = b"localhost") -> bytes:
    lines = [b"GET " + path + b" HTTP/1.0", b"Host: " + host, b"Connection: close", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def parts(answer: bytes) -> tuple[dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = [line.partition(": ") for line in head.decode().split("\r\n")[1:]]
    return {name.lower(): value for name, _, value in lines}, body


FORWARDED = [
    b"SCRIPT_NAME: /elsewhere",
    b"SCRIPT_NAME: /api",
    b"PATH_INFO: /metrics",
    b"X-Forwarded-Proto: https",
    b"X-Forwarded-Proto: https\r\nX-Forwarded-Ssl: off",
    b"X-Forwarded-Protocol: ssl",
    b"X-Forwarded-Ssl: on",
    b"X-Forwarded-Host: evil.example.org",
    b"X-Forwarded-Port: 1",
    b"X-Forwarded-For: 198.51.100.1",
    b"X-Forwarded-Prefix: /elsewhere",
    b"Forwarded: for=198.51.100.1;proto=https;host=evil.example.org",
    b"Remote-User: admin",
    b"REMOTE_USER: admin",
    b"HTTP_HOST: evil.example.org",
    b"X-HTTP-Method-Override: DELETE",
]


@pytest.mark.long
def test_what_a_client_says_of_a_proxy_changes_nothing(web):
    """Asked from loopback, whose headers gunicorn believes if it is not told otherwise."""
    page = b"/api/v1/"
    plain = parts(raw(web, get(page)))[1]
    assert b"http://localhost/api/v1/" in plain
    for header in FORWARDED:
        answer = raw(web, get(page, header))
        assert (header, status(answer), parts(answer)[1]) == (header, 200, plain)
        leads = raw(web, get(b"/tokens/", header))
        assert (header, status(leads)) == (header, 302)
        assert parts(leads)[0]["location"] == "/login/?next=/tokens/"


def test_the_proxy_protocol_is_no_first_line(web):
    line = b"PROXY TCP4 198.51.100.1 127.0.0.1 1 8000\r\n"
    assert status(raw(web, line + get(CALL))) == 400
    second = (
        b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc6\x33\x64\x01\x7f\x00\x00\x01\x00\x01\x1f\x40"
    )
    assert status(raw(web, second + get(CALL))) == 400


@pytest.mark.long
def test_a_proxy_says_that_people_came_by_https_and_nothing_else(django_db_setup, tmp_path):
    with running(tmp_path, SONAR_PROXIES="1") as web:
        for header in FORWARDED:
            answer = raw(web, get(b"/api/v1/", header))
            scheme = b"https" if b"-Proto: https" in header else b"http"
            assert status(answer) == 200, header
            assert scheme + b"://localhost/api/v1/" in parts(answer)[1], header


UNREADABLE = [
    (414, b"GET {path}?q=" + b"x" * 5_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    (431, b"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 9_000 + b"\r\n\r\n"),
    (431, b"GET {path} HTTP/1.1\r\nHost: localhost\r\n" + b"X-One: 1\r\n" * 101 + b"\r\n"),
    (400, b"GET {path}  HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    (400, b"GET {path} HTTP/9\r\nHost: localhost\r\n\r\n"),
    (400, b"get {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    (400, b"GET {path}?\xff HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    (400, b"GET {path} HTTP/1.1\nHost: localhost\n\n"),
    (400, b"GET {path} HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n"),
    (400, b"GET {path} HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n"),
    (400, b"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-One: a\r\n b\r\n\r\n"),
    (400, b"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-One: \x01\r\n\r\n"),
    (400, b"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"),
    (411, b"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: x\r\n\r\n"),
    (417, b"GET {path} HTTP/1.1\r\nHost: localhost\r\nExpect: miracles\r\n\r\n"),
]


PATHS = [b"/api/v1/links/", b"/api", b"http://localhost/api/v1/", b"/", b"/apis/", b"/x/api/"]
TO_THE_API = PATHS[:3]


def test_what_cannot_be_read_is_refused_in_the_words_of_whom_was_asked(web):
    for path, (expected, request) in product(PATHS, UNREADABLE):
        kind = "application/json" if path in TO_THE_API else "text/html; charset=utf-8"
        answer = raw(web, request.replace(b"{path}", path))
        headers, body = parts(answer)
        assert (expected, kind) == (status(answer), headers["content-type"]), request[:80]
        assert int(headers["content-length"]) == len(body)
        assert (headers["connection"], headers["cache-control"]) == ("close", "no-store")
        assert headers["x-content-type-options"] == "nosniff"
        if kind == "application/json":
            told = json.loads(body)
            assert set(told) == {"detail", "errors"}
            assert told["errors"] == {}
            assert told["detail"].endswith(".")
        else:
            assert b"<h1>" in body
            assert b"gunicorn" not in body.lower()


def test_the_head_of_what_cannot_be_read_has_no_body(web):
    answer = raw(web, b"HEAD /api/v1/?q=" + b"x" * 5_000 + b" HTTP/1.1\r\n\r\n")
    assert (status(answer), parts(answer)[1]) == (414, b"")


def test_nothing_of_what_cannot_be_read_is_logged_or_sent_back(web, log):
    secret = SECRET.encode()
    for line in (
        b"GET /api/v1/?token=" + secret + b"  HTTP/1.1\r\n\r\n",
        secret + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization Token " + secret + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + secret + b"(): x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: " + secret + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nExpect: " + secret + b"\r\n\r\n",
        b"GET / " + secret + b"\r\n\r\n",
        b"GET /api/ HTTP/1.1\r\nHost: " + secret + b"\r\n\r\n",
    ):
        answer = raw(web, line)
        assert status(answer) in (400, 411, 417), line
        assert secret[6:] not in answer, line
    logged = log()
    assert "could not be read: 400" in logged
    assert SECRET[6:] not in logged
    assert "Traceback" not in logged


@pytest.mark.long
def test_a_host_that_is_not_ours_is_one_line_of_the_log(web, log):
    asked = raw(web, get(CALL, host=b"evil.example.org"))
    assert (status(asked), parts(asked)[0]["content-type"]) == (400, "application/json")
    assert json.loads(parts(asked)[1]) == {
        "detail": "The host name of this request is not allowed (SONAR_ALLOWED_HOSTS).",
        "errors": {},
    }
    assert status(raw(web, get(CALL, host=b"a b"))) == 400
    lines = log().splitlines()
    assert len(lines) == 2, lines
    assert all("SONAR_ALLOWED_HOSTS" in line for line in lines)


# The size of a chunk, or what follows it, is wrong in each of these bodies.
BAD_CHUNKS = [
    *(
        b"zz\r\nabc\r\n0\r\n\r\n",
        b"-5\r\nabc\r\n0\r\n\r\n",
        b"\r\n\r\n",
        b"3\r\nabcde\r\n0\r\n\r\n",
    ),
    *(b"3;\x01\r\nabc\r\n0\r\n\r\n", b"3\r\nab", b"3\r\nabc\r\n0\r\nbad trailer\r\n\r\n"),
    b"f" * 70_000,
]


@pytest.mark.parametrize("path", [b"/login/", b"/api/v1/transfers/"])
@pytest.mark.parametrize("ending", [b"Connection: close\r\n", b""], ids=["close", "keep-alive"])
def test_a_body_in_bad_chunks_leaves_one_line_of_the_log_at_most(web, log, path, ending):
    head = b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + ending
    head += b"Content-Type: application/x-www-form-urlencoded\r\n"
    for body in BAD_CHUNKS:
        answer = raw(web, head + b"Transfer-Encoding: chunked\r\n\r\n", body)
        assert status(answer) in (400, 401, 403, 405, 411), body[:20]
        assert answer.count(b"HTTP/1.1 ") == 1
    assert "Traceback" not in log()
    assert len(log().splitlines()) <= 2 * len(BAD_CHUNKS)
