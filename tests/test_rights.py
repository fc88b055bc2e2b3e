"""Who may do what: every cell of the table in docs/routes.md is tried, by session and by token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import get_resolver
from pytest_django import DjangoDbBlocker, Settings

from sonar.models import SavedView, Site, Token
from sonar.roles import Role
from tests.accounts import account, logged_in
from tests.provider import AUDIENCE, Provider
from tests.rights_samples import SAMPLES, Sample, scene
from tests.scenes import standing
from tests.test_docs import routes

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
TABLE = Path(__file__).resolve().parent.parent / "docs" / "routes.md"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ALLOWED, NO_ACCOUNT, MAY_NOT = "allowed", "401", "403"
# Not Django's: WhiteNoise answers before there is a route.
STATIC = "/static/"
# Has methods and an order of its own.
ADMIN = "/admin/"


@dataclass(frozen=True)
class Row:
    """A row of the table, for one method. ``cells`` go by the column's name."""

    route: str
    method: str
    cells: dict[str, str]
    scope: str

    def __str__(self) -> str:
        return f"{self.method} {self.route}"

    @property
    def sample(self) -> Sample:
        return SAMPLES[self.route, self.method]

    def may(self, role: str, *, own: bool, public: bool) -> bool:
        return {"yes": True, "no": False, "public": public, "own": own}[self.cells[role]]


def table() -> Iterator[Row]:
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    head, _, *rest = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    for cells in rest:
        named = dict(zip(head, cells, strict=True))
        for method in named["method"].split(", "):
            yield Row(named["route"].strip("`"), method, named, named["scope"])


ROWS = [row for row in table() if row.route != STATIC]


@dataclass(frozen=True)
class Caller:
    """Who sends a request: an account of a role, by session or with a token; or nobody.

    ``own`` says that the samples concern its sites; ``key`` is that of a token of the account.
    """

    role: str
    own: bool = False
    session: str = ""
    token: str = ""
    scope: str = ""
    key: str = "none"
    word: str = "Token"

    def __str__(self) -> str:
        return f"{'own ' if self.own else ''}{self.role} by {self.scope or 'session'}"

    def expected(self, row: Row, *, public: bool) -> str:
        """Return what the table promises this caller."""
        anyone = row.may("anyone", own=False, public=public)
        if self.role == "anyone" or (self.scope and row.scope == "-"):
            return ALLOWED if anyone else NO_ACCOUNT
        right = row.may(self.role, own=self.own, public=public)
        if self.scope and self.scope != row.scope:
            right = row.scope == "read" and anyone
        return ALLOWED if right else MAY_NOT

    def client(self, row: Row) -> Client:
        """Return a client that is its own; what takes a token asks it for no CSRF token."""
        if self.token:
            headers = {"authorization": f"{self.word} {self.token}"}
            return Client(enforce_csrf_checks=row.scope != "-", headers=headers)
        client = Client()
        if self.session:
            client.cookies[settings.SESSION_COOKIE_NAME] = self.session
        return client


NOBODY = Caller("anyone")


def callers() -> list[Caller]:
    """Return nobody, and an account of each role with a session and a token of each scope.

    The tokens are made past `tokens.create`: it would not give all of these scopes.
    """
    found = [NOBODY]
    for role, own, user in accounts():
        key = Token.objects.create(user=user, name="mine", scopes=["read"])[0].token_key
        SavedView.objects.create(user=user, name="mine", address="/table/")
        session = logged_in(user).cookies[settings.SESSION_COOKIE_NAME].value
        found.append(Caller(role, own, session=session, key=key))
        for scope in Token.Scope.values:
            _, text = Token.objects.create(user=user, name=scope, scopes=[scope])
            found.append(Caller(role, own, token=text, scope=scope, key=key))
    return found


def accounts() -> Iterator[tuple[str, bool, User]]:
    ral, glasgow = (Site.objects.get(name=name) for name in ("RAL", "Glasgow"))
    yield "reader", False, account()
    yield "site admin", True, account(Role.SITE_ADMIN, ral, name="of-ral")
    yield "site admin", False, account(Role.SITE_ADMIN, glasgow, name="of-glasgow")
    yield "operator", False, account(Role.OPERATOR)
    yield "administrator", False, account(Role.ADMINISTRATOR)


@dataclass(frozen=True)
class Scene:
    """What all requests find; each takes back what it changed."""

    names: dict[str, str]
    callers: list[Caller]

    def send(self, row: Row, caller: Caller, client: Client | None = None) -> HttpResponse:
        with transaction.atomic():
            names = self.names | {"key": caller.key}
            response = row.sample.send(client or caller.client(row), row.method, names)
            transaction.set_rollback(True)
        return response

    def path(self, row: Row) -> str:
        return row.sample.path.format_map(self.names | {"key": ""})

    @property
    def administrator(self) -> Caller:
        return next(one for one in self.callers if one.role == "administrator" and one.session)


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Scene]:
    with standing(django_db_blocker, lambda: Scene(scene(), callers())) as made:
        yield made


def compare(row: Row, made: Scene, callers: list[Caller]) -> None:
    public = settings.SONAR_PUBLIC_READ
    said = {str(one): one.expected(row, public=public) for one in callers}
    found = {str(one): ended(made.send(row, one), row.sample, one) for one in callers}
    assert found == said, f"SONAR_PUBLIC_READ={public}"


def ended(response: HttpResponse, sample: Sample, caller: Caller) -> str:
    return outcome(response, sample, nobody=not caller.session)


def outcome(response: HttpResponse, sample: Sample, *, nobody: bool) -> str:
    """Say how a request ended, in the words of `Caller.expected`, or with its status."""
    to_login = response.status_code == 302 and "/login/?next=" in response["Location"]
    if to_login:
        return NO_ACCOUNT if nobody or not sample.asks_for_another else MAY_NOT
    if response.status_code in sample.good:
        return ALLOWED
    return str(response.status_code)


def test_the_table_has_every_route_and_no_other() -> None:
    assert {row.route for row in ROWS} == routes(get_resolver())
    assert [key for key, count in Counter(map(str, ROWS)).items() if count > 1] == []


def test_every_row_has_a_sample_and_every_sample_a_row() -> None:
    assert set(SAMPLES) == {(row.route, row.method) for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_each_caller_may_what_the_table_says(row: Row, made: Scene, settings: Settings) -> None:
    compare(row, made, made.callers)
    settings.SONAR_PUBLIC_READ = False  # which is nothing to who has an account, whatever its role
    compare(row, made, [one for one in made.callers if one.role in ("anyone", "reader")])


@pytest.mark.parametrize("public", [True, False])
def test_a_token_of_the_issuer_reads_as_a_reader_and_never_writes(
    public: bool, made: Scene, provider: Provider, settings: Settings
) -> None:
    settings.SONAR_PUBLIC_READ, settings.SONAR_OIDC_AUDIENCE = public, AUDIENCE
    script = Caller("reader", token=provider.token(), scope="read", word="Bearer")
    rows = [row for row in ROWS if not row.route.startswith("/login/oidc/")]
    said = {str(row): script.expected(row, public=public) for row in rows}
    found = {str(row): ended(made.send(row, script), row.sample, script) for row in rows}
    assert found == said
    assert MAY_NOT in said.values()


def test_every_other_method_is_a_405(made: Scene) -> None:
    """But Django's admin, which has methods of its own."""
    known = {(row.route, row.method) for row in ROWS}
    found = {
        f"{method} {row.route} by {caller}": getattr(caller.client(row), method.lower())(
            made.path(row)
        ).status_code
        for row in {row.route: row for row in ROWS if row.route != ADMIN}.values()
        for method in METHODS
        for caller in (made.administrator, NOBODY)
        if (row.route, method) not in known
    }
    assert {one: status for one, status in found.items() if status != 405} == {}
    assert len(found) > 200


READS = [row for row in ROWS if row.method == "GET" and row.route != ADMIN]


@pytest.mark.parametrize("public", [True, False])
def test_head_and_options_are_for_who_may_get(
    public: bool, made: Scene, settings: Settings
) -> None:
    settings.SONAR_PUBLIC_READ = public
    client = Client()
    for row in READS:
        said = NOBODY.expected(row, public=public)
        assert ended(client.head(made.path(row)), row.sample, NOBODY) == said, row
        if row.route.startswith("/api/v1/") and row.scope == "read":
            assert ended(client.options(made.path(row)), row.sample, NOBODY) == said, row


def test_a_session_writes_only_with_its_csrf_token(made: Scene) -> None:
    """That nothing else is wrong with the requests, the test of the table shows."""
    writes = [row for row in ROWS if row.method != "GET" and row.route != "/api/"]
    assert len(writes) > 20
    for row in writes:
        client = Client(enforce_csrf_checks=True)
        client.cookies[settings.SESSION_COOKIE_NAME] = made.administrator.session
        assert made.send(row, made.administrator, client).status_code == 403, row


# What may be wrong with a body, or beside it, and how it is answered to who may write.
JSON = {"content_type": "application/json"}
FAULTS: dict[str, tuple[dict[str, Any], set[int]]] = {
    "nothing": ({"data": b"", **JSON}, {400}),
    "no JSON": ({"data": b"{", **JSON}, {400}),
    "of another kind": ({"data": b'"x"', **JSON}, {400}),
    "unknown fields": ({"data": b'{"nothing": 1}', **JSON}, {400}),
    "of no kind": ({"data": b"x", "content_type": "text/plain"}, {415}),
    "a form": ({"data": b"name=x", "content_type": "application/x-www-form-urlencoded"}, {415}),
    "too large": (JSON, {413}),
    "in chunks": ({"data": b"", "headers": {"transfer-encoding": "chunked"}, **JSON}, {411}),
    "a parameter": ({"data": b"{}", "query_params": {"nothing": "1"}, **JSON}, {400}),
}
# Bytes that a body may have: results come in lists.
MOST = {"operate": 100_000, "ingest": 8_000_000}
CALLS_THAT_WRITE = [row for row in ROWS if row.scope in ("operate", "ingest")]


@pytest.mark.parametrize("row", CALLS_THAT_WRITE, ids=str)
def test_a_missing_right_comes_before_whatever_is_wrong(row: Row, made: Scene) -> None:
    """The order: 401, 403, then 413, 415 or 400. For which site it is, the body says.

    A 411 is about how the body comes, whatever it is: it may go before what the role allows.
    """
    wrong = {}
    for caller, (what, (fault, answers)) in product(made.callers, FAULTS.items()):
        if row.method == "DELETE" and what not in ("a parameter", "in chunks"):
            continue
        client = Client()
        if caller.session:
            client.cookies[settings.SESSION_COOKIE_NAME] = caller.session
        more = {"data": b"[" * (MOST[row.scope] + 1)} if what == "too large" else {}
        response = send(client, row, made, caller, fault | more)
        expected = expected_of_a_faulty(row, caller, answers)
        if what == "in chunks" and expected == {403}:
            expected = {403, 411}
        if response.status_code not in expected:
            wrong[f"{what} by {caller}"] = (response.status_code, expected)
    assert wrong == {}


def send(
    client: Client, row: Row, made: Scene, caller: Caller, fault: dict[str, Any]
) -> HttpResponse:
    headers = {"authorization": f"Token {caller.token}"} if caller.token else {}
    sent = fault | {"headers": headers | fault.get("headers", {})}
    return getattr(client, row.method.lower())(made.path(row), **sent)


def expected_of_a_faulty(row: Row, caller: Caller, answers: set[int]) -> set[int]:
    right = caller.expected(row, public=True)
    writes = not caller.scope or caller.scope == row.scope
    of_some_site = row.method == "POST" and row.cells["site admin"] == "own"
    if right == MAY_NOT and writes and of_some_site and caller.role == "site admin":
        return answers
    return {ALLOWED: answers, NO_ACCOUNT: {401}, MAY_NOT: {403}}[right]


def test_a_form_without_a_right_is_refused_before_it_is_looked_at(made: Scene) -> None:
    forms = [row for row in ROWS if row.method == "POST" and row.cells["reader"] == "no"]
    pages = [row for row in forms if row.scope == "-" and row.route != ADMIN]
    assert len(pages) == 12
    reader = next(one for one in made.callers if one.role == "reader" and one.session)
    for row, who, status in [(row, *it) for row in pages for it in ((reader, 403), (NOBODY, 302))]:
        response = who.client(row).post(made.path(row), {"nothing": "x" * 1_000})
        assert (str(row), response.status_code) == (str(row), status)
