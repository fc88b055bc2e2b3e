"""Errors of whole requests: JSON below /api/, a page elsewhere, and nothing that leaks."""

import logging
import re
from typing import Any

import psycopg
import pytest
from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import path
from psycopg.errors import QueryCanceled
from pytest_django import Settings
from rest_framework.request import Request
from rest_framework.response import Response

from matrix.api.base import ApiView
from matrix.http.page_rights import anyone, for_whom
from sonar.urls import handler400, handler500  # noqa: F401 - Django's names
from sonar.urls import urlpatterns as real

TOKEN = "sonar_0123456789abcdef"
AWAY = "The database is unavailable or busy: try again in a few seconds."
SLOW = "The database took longer than 7 s: request a shorter time range or fewer links."


def fail() -> None:
    """Raise what the running test wants; it sets this."""


@for_whom(GET=anyone)
def page(request: HttpRequest) -> None:
    fail()


class Call(ApiView, one_snapshot=False):
    permission_classes = []

    def get(self, request: Request, name: str = "") -> Response:
        fail()
        return Response({})


urlpatterns = [
    path("broken/", page),
    path("api/broken/", Call.as_view()),
    path("api/broken/<str:name>/", Call.as_view()),
    *real,
]


@pytest.fixture(autouse=True)
def broken_routes(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__
    settings.SONAR_STATEMENT_SECONDS = 7


@pytest.fixture
def client() -> Client:
    return Client(raise_request_exception=False)


def raising(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail_so() -> None:
        raise error

    monkeypatch.setattr(f"{__name__}.fail", fail_so)


def slow_statement() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '50ms'")
        cursor.execute("SELECT pg_sleep(60)")


def is_json(response: Any, status: int, detail: str) -> bool:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/json"
    assert response.json() == {"detail": detail, "errors": {}}
    return True


@pytest.mark.parametrize("debug", [False, True])
def test_a_crash_of_the_api_is_a_500_in_json_that_tells_nothing(
    client, settings, monkeypatch, debug: bool
):
    settings.DEBUG = debug
    raising(monkeypatch, RuntimeError(f"a secret: {TOKEN}"))
    response = client.get("/api/broken/")
    assert is_json(response, 500, "An internal error occurred in Sonar. Its log has the details.")


def test_a_crash_of_a_page_is_a_page_that_needs_no_database(client, monkeypatch):
    raising(monkeypatch, RuntimeError(f"a secret: {TOKEN}"))
    response = client.get("/broken/")  # the database is not open to this test
    assert response.status_code == 500
    assert b"Something went wrong" in response.content
    assert TOKEN.encode() not in response.content


@pytest.mark.parametrize(
    "template", ["500.html", "503.html", "429.html", "unreadable.html", "403_csrf.html"]
)
def test_pages_of_trouble_are_whole_and_lead_on_without_another_file(template: str):
    html = render_to_string(template, {"sentence": "Wait for 5 s."})
    assert re.search(r"<h1>\S.*</h1>", html)
    assert '<form method="get" action="/search/"' in html
    for address in ("/", "/sites/", "/incidents/", "/reports/", "/meshes/", "/operations/"):
        assert f'<a href="{address}">' in html
    assert not re.search(r"<script|<img|stylesheet| src=|url\(", html)


@pytest.mark.parametrize(
    ("origin", "is_told"), [("https://testserver:8443", True), ("https://testserver", False)]
)
def test_a_form_through_a_proxy_that_drops_the_port_says_what_to_set(
    db: None, origin: str, is_told: bool
):
    client = Client(enforce_csrf_checks=True)
    response = client.post("/login/", {"username": "x"}, secure=True, headers={"origin": origin})
    page = " ".join(response.content.decode().split())
    assert response.status_code == 403
    told = f"was sent from {origin}, but the address of this Sonar instance is https://testserver."
    assert (told in page) is is_told
    assert ("SONAR_TRUSTED_ORIGINS" in page) is is_told
    assert "Reload the page" in page


def test_a_crash_is_logged_with_its_traceback_and_without_what_was_sent(
    client, monkeypatch, caplog
):
    raising(monkeypatch, RuntimeError("seen in the log"))
    client.get("/broken/?token=" + TOKEN, headers={"authorization": f"Token {TOKEN}"})
    client.get("/api/broken/?token=" + TOKEN, headers={"cookie": f"other={TOKEN}"})
    assert caplog.text.count("RuntimeError: seen in the log") == 2
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    ("error", "sentence", "wait"),
    [
        (OperationalError("connection refused"), AWAY, "5"),
        (InterfaceError("connection already closed"), AWAY, "5"),
        (psycopg.OperationalError("server closed the connection"), AWAY, "5"),
        (QueryCanceled("canceling statement"), SLOW, "30"),
    ],
)
def test_without_its_database_sonar_says_not_now(
    client, monkeypatch, caplog, error: Exception, sentence: str, wait: str
):
    raising(monkeypatch, error)
    answered = client.get("/api/broken/")
    assert is_json(answered, 503, sentence)
    shown = client.get("/broken/")
    assert (
        (shown.status_code, shown["Retry-After"]) == (503, wait) == (503, answered["Retry-After"])
    )
    assert sentence.encode() in shown.content
    assert f"The database: {error}" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.django_db
def test_a_statement_that_took_too_long_is_a_503(client, monkeypatch):
    monkeypatch.setattr(f"{__name__}.fail", slow_statement)
    assert is_json(client.get("/api/broken/"), 503, SLOW)


def test_a_database_that_is_away_before_the_view_is_a_503_too(client, monkeypatch):
    def refused(*_: object) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", refused)
    client.cookies["sessionid"] = "x" * 32
    assert client.get("/login/").status_code == 503
    assert client.get("/nothing/").status_code == 503  # while the page of a 404 was drawn
    assert is_json(client.get("/api/v1/matrix/"), 503, AWAY)


@pytest.mark.parametrize("host", ["evil.example.org", "localhost:bad", ""])
def test_a_host_name_that_is_not_ours_is_a_400(client, host: str):
    sentence = "The host name of this request is not allowed (SONAR_ALLOWED_HOSTS)."
    assert is_json(client.get("/api/v1/matrix/", headers={"host": host}), 400, sentence)
    shown = client.get("/", headers={"host": host})
    assert shown.status_code == 400
    assert b"SONAR_ALLOWED_HOSTS" in shown.content
    assert not host or host.encode() not in shown.content


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete", "options"])
def test_where_there_is_nothing_every_method_says_so(method: str):
    answered = getattr(Client(enforce_csrf_checks=True), method)("/api/v1/downtimes/x/")
    assert is_json(answered, 404, "There is nothing at /api/v1/downtimes/x/.")


@pytest.mark.parametrize(
    ("path", "end"),
    [
        ("/api/v1/links", ": add a slash at the end."),
        ("/api/v1/link", "."),
        ("/api/v1/link/", "."),
        ("/api/v1/transfers/x", "."),
    ],
)
def test_a_slash_that_is_missing_is_missed(client, path: str, end: str):
    assert is_json(client.get(path), 404, f"There is nothing at {path}{end}")


@pytest.mark.django_db
def test_more_parameters_than_anyone_needs_are_a_400(client):
    query = "&".join(["site=RAL"] * 1001)
    sentence = "The request has more than 1,000 parameters or fields."
    assert is_json(client.get(f"/api/v1/matrix/?{query}"), 400, sentence)
    shown = client.get(f"/?{query}")
    assert (shown.status_code, sentence in shown.content.decode()) == (400, True)
    assert client.get(f"/api/v1/matrix/?{'&'.join(['cloud=UK'] * 1000)}").status_code == 200


@pytest.mark.django_db
def test_a_form_that_is_too_large_is_a_413(client):
    sent = client.post("/my-site/", {"site": "x" * 1_000_001}, REMOTE_ADDR="198.51.100.9")
    form = "application/x-www-form-urlencoded"
    sent = client.post("/my-site/", "site=" + "x" * 1_000_001, content_type=form)
    assert sent.status_code == 413
    assert "larger than 1 MB, files included" in sent.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong", ["/?site=%00", "/sites/%00/", "/%FF/", "/search/?q=%00", "/?a%00=1"]
)
@pytest.mark.parametrize("prefix", ["", "/api/v1"])
def test_what_no_name_can_hold_is_not_there(client, prefix: str, wrong: str):
    assert client.get(prefix + wrong).status_code in (400, 404)


@pytest.mark.parametrize(
    "error", [SuspiciousOperation("odd"), ValueError("x")], ids=["suspicious", "crash"]
)
def test_errors_are_kept_by_nobody(client, monkeypatch, error: Exception):
    raising(monkeypatch, error)
    for where in ("/broken/", "/api/broken/"):
        response = client.get(where)
        assert "ETag" not in response
        assert "max-age" not in response.get("Cache-Control", "")


def test_a_path_in_the_log_cannot_start_a_line(client, settings, monkeypatch, caplog):
    settings.DEBUG = True
    raising(monkeypatch, RuntimeError("x"))
    with caplog.at_level(logging.WARNING):
        client.get("/api/broken/a%0AERROR forged/")
    assert "\nERROR forged" not in caplog.text
