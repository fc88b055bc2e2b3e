"""What browsers are told, whom the API answers, and that production passes Django's check."""

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from sonar import settings as project
from sonar.people import tokens
from sonar.sandbox import home
from tests.matrix import world

PROJECT = Path(__file__).resolve().parent.parent
CALL = "/api/v1/matrix/"
PORTAL = "https://portal.example.org"
PAGES = ["/", "/table/", "/sites/", "/login/", CALL, "/api/v1/nothing/", "/nothing/", "/?size=x"]
POLICY = {
    "default-src 'self'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# As docs/security.md and docker-compose.yml describe it.
PRODUCTION = {
    "SONAR_HTTPS": "true",
    "SONAR_PROXIES": "1",
    "SONAR_SECRET_KEY": secrets.token_urlsafe(50),
    "SONAR_CORS_ORIGINS": PORTAL,
    "SONAR_DATABASE_POOL": "8",
    "SONAR_URL": "https://sonar.example.org",
    "SONAR_SMTP_HOST": "mail.example.org",
    "SONAR_MAIL_FROM": "Sonar <sonar@example.org>",
}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run manage.py as production would, with nothing of this test's own settings."""
    kept = {name: os.environ[name] for name in ("PATH", "DATABASE_URL", "REDIS_URL")}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(
        command, cwd=PROJECT, env=kept | environment, capture_output=True, text=True, check=False
    )


# What a shell is asked to do.
CHECK = (
    "from django.core.management import call_command;"
    "call_command('check', deploy=True, fail_level='WARNING');"
)
PROXIES = (
    "from django.conf import settings as s;"
    "print(s.SECURE_PROXY_SSL_HEADER, s.REST_FRAMEWORK['NUM_PROXIES'])"
)


@pytest.mark.long
def test_production_settings_pass_the_check_of_django_and_believe_the_one_proxy(
    tmp_path: Path,
) -> None:
    checked = run("shell", "-v", "0", "-c", CHECK + PROXIES, **PRODUCTION, SONAR_HOME=str(tmp_path))
    assert checked.returncode == 0, checked.stderr
    assert "no issues (1 silenced)" in checked.stdout
    assert checked.stdout.splitlines()[-1] == "('HTTP_X_FORWARDED_PROTO', 'https') 1"
    assert project.SILENCED_SYSTEM_CHECKS == ["security.W021"]
    assert "W021" in (PROJECT / "docs" / "security.md").read_text()


@pytest.mark.long
def test_where_there_is_no_proxy_none_is_believed() -> None:
    shown = run("shell", "-v", "0", "-c", PROXIES, **PRODUCTION | {"SONAR_PROXIES": "0"})
    assert shown.stdout.strip() == "None 0", shown.stderr


def test_a_short_key_stops_the_start_where_there_is_https(tmp_path: Path) -> None:
    stopped = run("check", SONAR_HTTPS="true", SONAR_SECRET_KEY="short", SONAR_HOME=str(tmp_path))
    assert stopped.returncode != 0
    assert "SONAR_SECRET_KEY must have 50 characters or more" in stopped.stderr


def test_the_key_that_a_first_start_makes_is_long_enough(tmp_path: Path) -> None:
    home.make(tmp_path)
    key = tmp_path / "secret-key"
    assert len(key.read_text().strip()) >= project.SHORTEST_KEY
    assert key.stat().st_mode & 0o077 == 0


@pytest.mark.django_db
def test_every_answer_tells_browsers_what_they_may_do(client: Client) -> None:
    for path in PAGES:
        response = client.get(path)
        assert {name: response[name] for name in HEADERS} == HEADERS, path
        policy = response["Content-Security-Policy"].split("; ")
        assert set(policy) == POLICY, path


def test_no_page_has_a_script_or_a_handler_inline() -> None:
    """The policy would not run it; JSON in a page is data, no script."""
    for path in [*PROJECT.glob("templates/**/*.html"), *PROJECT.glob("matrix/**/*.py")]:
        text = path.read_text()
        inline = re.findall(r"<script(?![^>]*\b(?:src=|type=.application/json))[^>]*>", text)
        assert (path.name, inline) == (path.name, [])
        assert not re.search(r"\son(?:click|change|submit|load|input)=|javascript:|hx-on", text), (
            path
        )


def test_csv_is_a_file_and_nothing_else(client: Client, small_world: world.World) -> None:
    link = {"source": "RAL_DATADISK", "destination": "DESY_DATADISK"}
    for call in ("matrix", "links", "transfers", "sites", "series"):
        path = f"/api/v1/{call}/"
        response = client.get(path, {"format": "csv"} | (link if call == "series" else {}))
        assert response["Content-Type"].startswith("text/csv"), path
        assert response["X-Content-Type-Options"] == "nosniff", path
        assert re.fullmatch(
            r'(attachment|inline); filename="[\w.-]+\.csv"', response["Content-Disposition"]
        ), path


# Cookies


def test_the_cookie_of_a_session_is_for_the_server_alone_and_a_form_of_another_site_is_refused(
    db: None, settings: Settings
) -> None:
    User.objects.create_user("bob", password="right")
    client, form = Client(), {"username": "bob", "password": "right"}
    client.post("/login/", form)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 604_800)
    assert client.cookies["csrftoken"]["samesite"] == "Lax"
    refused = Client(enforce_csrf_checks=True).post("/login/", form)
    assert refused.status_code == 403
    assert "Reload the page and submit the form again." in " ".join(
        refused.content.decode().split()
    )


# https


@pytest.fixture
def https(settings: Settings) -> None:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 31_536_000
    settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = True


@pytest.mark.django_db
def test_http_leads_to_https_but_not_for_those_inside(https: None, client: Client) -> None:
    assert client.get("/table/?size=large")["Location"] == "https://testserver/table/?size=large"
    assert client.get(CALL).status_code == 301
    for inside in ("/healthz", "/readyz", "/metrics"):
        assert client.get(inside).status_code != 301
    response = client.get("/login/", secure=True)
    assert response["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"
    assert response.cookies["csrftoken"]["secure"]


@pytest.mark.django_db
def test_a_proxy_says_how_people_came(https: None, client: Client, settings: Settings) -> None:
    came = {"x-forwarded-proto": "https"}
    assert client.get("/login/", headers=came).status_code == 301
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert "Strict-Transport-Security" in client.get("/login/", headers=came)
    assert client.get("/login/", headers={"x-forwarded-proto": "http"}).status_code == 301


# Scripts of other sites


@pytest.fixture
def portal(settings: Settings) -> dict[str, str]:
    settings.CORS_ALLOWED_ORIGINS = [PORTAL]
    return {"origin": PORTAL}


@pytest.mark.django_db
def test_a_portal_may_read_and_push_with_a_token(client: Client, portal: dict[str, str]) -> None:
    response = client.get(CALL, headers=portal)
    assert response["Access-Control-Allow-Origin"] == PORTAL
    assert response["Access-Control-Expose-Headers"] == "ETag, Retry-After, Link"
    assert "Access-Control-Allow-Credentials" not in response
    assert "origin" in response["Vary"].lower()
    wish = portal | {"access-control-request-method": "POST"}
    asked = client.options("/api/v1/transfers/", headers=wish)
    assert asked.status_code == 200
    assert asked["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS, POST"
    allowed = "accept, authorization, content-type, if-none-match"
    assert asked["Access-Control-Allow-Headers"] == allowed


@pytest.mark.django_db
def test_nobody_else_and_nothing_else(
    client: Client, portal: dict[str, str], settings: Settings
) -> None:
    strangers = ("https://evil.example.org", "null", f"{PORTAL}.evil", "http://portal.example.org")
    asked = [(CALL, origin) for origin in strangers]
    for path, origin in [*asked, ("/", PORTAL), ("/login/", PORTAL), ("/cells/", PORTAL)]:
        answer = client.get(path, headers={"origin": origin})
        assert "Access-Control-Allow-Origin" not in answer, (path, origin)
    settings.CORS_ALLOWED_ORIGINS = []  # as where it is not set
    assert "Access-Control-Allow-Origin" not in client.get(CALL, headers=portal)


@pytest.mark.django_db
def test_errors_can_be_read_by_a_portal_too(
    client: Client, portal: dict[str, str], settings: Settings
) -> None:
    user = User.objects.create_user("bob")
    text = tokens.create(user, "read", ["read"], 1)[1]
    sent = portal | {"authorization": f"Token {text}"}
    for response in (
        client.get(f"{CALL}?size=none", headers=sent),
        client.post("/api/v1/transfers/", "[]", content_type="application/json", headers=sent),
    ):
        assert response.status_code in (400, 403)
        assert response["Access-Control-Allow-Origin"] == PORTAL


def test_an_origin_that_is_none_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (
        "portal.example.org",
        "*",
        f"{PORTAL}/path",
        "https://a b",
        "ftp://x.org",
        "null",
    ):
        monkeypatch.setenv("SONAR_CORS_ORIGINS", wrong)
        with pytest.raises(project.ImproperlyConfigured, match="SONAR_CORS_ORIGINS"):
            project.envorigins("SONAR_CORS_ORIGINS")
