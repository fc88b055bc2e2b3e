"""Sonar may live below a path: every address that it gives is below that path, too."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings as configured
from django.db import transaction
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import clear_script_prefix, resolve, reverse, set_script_prefix
from pytest_django import DjangoDbBlocker, Settings

from matrix.api.about import document
from sonar.models import SavedView
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.imports import nodes
from tests.provider import Provider
from tests.rights_samples import SAMPLES, Sample, own_subscription, scene
from tests.scenes import standing

PREFIX = "/sonar"
ORIGIN = "http://testserver"
GIVEN = [key for key, sample in SAMPLES.items() if "{key}" not in str(sample.form)]
READ = [key for key in GIVEN if key[1] == "GET" and key[0] != "/api/"]
WRITTEN = [key for key in GIVEN if key[1] != "GET" and key[0] not in ("/api/", "/login/")]


class Strings(HTMLParser):
    """Collects what attributes say, and what the JSON in a page does."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._in_json = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {value for _, value in attrs if value}
        self._in_json = tag == "script" and ("type", "application/json") in attrs

    def handle_data(self, data: str) -> None:
        if self._in_json:
            self.found |= set(texts(json.loads(data)))
            self._in_json = False


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def addresses(response: HttpResponse) -> set[str]:
    """Return the paths in an answer: of links, forms, files, and of what a script asks for."""
    kind = response.headers.get("Content-Type", "")
    strings = {response.headers.get("Location", "")}
    if kind.startswith("text/html"):
        strings |= Strings(response.content.decode()).found
    elif kind.startswith("application/json"):
        strings |= {text for text in texts(response.json()) if text.startswith(ORIGIN)}
    # The command to copy has its address inside.
    inside = {match for text in strings for match in re.findall(rf"{ORIGIN}(/[^\s']*)", text)}
    return inside | {text for text in strings if re.match("/[a-z]|/$|/[?]", text)}


def outside(given: set[str]) -> set[str]:
    return {one for one in given if not f"{one}/".startswith(f"{PREFIX}/")}


@pytest.fixture(scope="module")
def below() -> Iterator[None]:
    with override_settings(FORCE_SCRIPT_NAME=PREFIX, STATIC_URL="static/"):
        set_script_prefix(f"{PREFIX}/")
        document.cache_clear()
        yield
    clear_script_prefix()
    document.cache_clear()


@dataclass(frozen=True)
class Scene:
    names: dict[str, str]
    session: str

    def client(self) -> Client:
        """Return the browser of an administrator."""
        client = Client()
        client.cookies[configured.SESSION_COOKIE_NAME] = self.session
        return client


def administered() -> Scene:
    names, user = scene(), account(Role.ADMINISTRATOR)
    SavedView.objects.create(user=user, name="mine", address=reverse("table"))
    names |= own_subscription(user)
    return Scene(names, logged_in(user).cookies[configured.SESSION_COOKIE_NAME].value)


@pytest.fixture(scope="module")
def made(below: None, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Scene]:
    with standing(django_db_blocker, administered) as made:
        yield made


def send(client: Client, sample: Sample, method: str, names: dict[str, str]) -> set[str]:
    """Send a request as a proxy would, which takes the path off; return the addresses given."""
    response = sample.send(client, method, names)
    assert response.status_code in sample.good, response.content[:500]
    given = set() if response.streaming else addresses(response)
    assert outside(given) == set(), sample.path
    return given


@pytest.mark.long
@pytest.mark.django_db
def test_every_page_and_call_leads_to_what_is_below_the_path(made: Scene, at_noon: None):
    client, given = made.client(), set()
    for route, method in READ:
        given |= send(client, SAMPLES[route, method], method, made.names)
    # The admin leads to the path without a slash.
    paths = {re.split("[?#]", one)[0].removeprefix(PREFIX) or "/" for one in given}
    pages = {path for path in paths if not re.search("^/static/|[:{]|%7B|/0{8}-", path)}
    reached = {resolve(path).route: path for path in pages}
    assert {"", "table/", "sites/", "operations/", "cells/", "search/", "tokens/"} <= set(reached)
    assert any(path.startswith("/static/js/") for path in paths)
    # One of each route that is reached is asked for in its turn, if none was.
    samples = {SAMPLES[key].path.format_map(made.names).partition("?")[0] for key in READ}
    asked = {resolve(path).route for path in pages & samples}
    for route in reached.keys() - asked:
        answer = client.get(reached[route])
        assert answer.status_code not in (404, 500), (route, reached[route])
        assert answer.streaming or outside(addresses(answer)) == set(), reached[route]


@pytest.mark.long
@pytest.mark.django_db
def test_forms_and_writing_calls_lead_to_what_is_below_the_path(made: Scene, at_noon: None):
    for key in WRITTEN:
        with transaction.atomic():
            send(made.client(), SAMPLES[key], key[1], made.names)
            transaction.set_rollback(True)


@pytest.mark.django_db
def test_logging_in_leads_to_what_is_below_the_path(made: Scene, settings: Settings):
    assert send(Client(), SAMPLES["/login/", "POST"], "POST", made.names) == {f"{PREFIX}/"}
    settings.SONAR_PUBLIC_READ = False
    location = Client().get("/table/?stat=p95").headers["Location"]
    assert location == f"{PREFIX}/login/?next={PREFIX}/table/%3Fstat%3Dp95"


@pytest.mark.django_db
def test_a_provider_sends_people_back_below_the_path_and_the_schema_names_it(
    below: None, provider: Provider, client: Client
):
    asked = parse_qs(urlsplit(client.get("/login/oidc/").headers["Location"]).query)
    assert asked["redirect_uri"] == [f"{ORIGIN}{PREFIX}/login/oidc/callback/"]
    schema = client.get("/api/v1/schema/").json()
    assert schema["servers"] == [{"url": PREFIX}]  # for those who try its calls
    assert all(path.startswith("/api/v1/") for path in schema["paths"])


def literals(path: Path) -> Iterator[str]:
    """Yield the texts in a module that are no docstrings."""
    docs = {
        node.value
        for node in nodes(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs:
            yield node.value


@pytest.mark.long
def test_no_address_is_written_by_hand():
    root = configured.PROJECT_DIR
    # Of the schema, which is made of patterns.
    allowed = {"/api/v1/"}
    for path in (root / "matrix").rglob("*.py"):
        written = {text for text in literals(path) if re.match(r"/([a-z]+/|$|\?)", text)}
        # What joins two parts of a text is no address.
        assert written - allowed - {"/"} == set(), path
    for path in (root / "static" / "js").rglob("*.js"):
        assert re.findall(r"""["'`]/[a-z?$][^"'`]*""", path.read_text()) == [], path
    for path in (root / "templates").rglob("*.html"):
        assert re.findall(r"""(?:href|src|action|hx-get|hx-post)=["']/""", path.read_text()) == []
