"""Who may do what: every cell of the table in docs/routes.md is tried, by session and by token."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, product
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import get_resolver
from pytest_django import DjangoDbBlocker, Settings
from rest_framework.permissions import SAFE_METHODS

from matrix.http.exceptions import not_found
from matrix.http.permissions import MayOperate
from sonar.models import SavedView, Site, Token
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.provider import AUDIENCE, Provider
from tests.rights_samples import API, CHECK, SAMPLES, Sample, own_subscription, scene
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

    ``own`` says that the samples concern its sites; ``key`` is that of a token of the account,
        ``mine`` the id of its subscription, and ``confirm`` has what a link to confirm it has.
    """

    role: str
    own: bool = False
    session: str = ""
    token: str = ""
    scope: str = ""
    key: str = "none"
    mine: str = "0"
    confirm: str = ""
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

    def client(self, row: Row, *, brief: bool = False) -> Client:
        """Return a client that is its own; what takes a token asks it for no CSRF token.

        A brief one has each answer to a question already: what it may, is a 304.
        """
        headers = {"if-none-match": "*"} if brief and row.method == "GET" else {}
        if self.token:
            headers |= {"authorization": f"{self.word} {self.token}"}
            return Client(enforce_csrf_checks=row.scope != "-", headers=headers)
        client = Client(headers=headers)
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
        subscribed = own_subscription(user)
        of_user = {"key": key, "mine": subscribed["mine"], "confirm": subscribed["token"]}
        session = logged_in(user).cookies[settings.SESSION_COOKIE_NAME].value
        found.append(Caller(role, own, session=session, **of_user))
        for scope in Token.Scope.values:
            _, text = Token.objects.create(user=user, name=scope, scopes=[scope])
            found.append(Caller(role, own, token=text, scope=scope, **of_user))
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
            names = self.names_for(caller)
            response = row.sample.send(client or caller.client(row), row.method, names)
            transaction.set_rollback(True)
        return response

    def names_for(self, caller: Caller) -> dict[str, str]:
        """Return the names that requests of a caller have, with those of what is its own."""
        return self.names | {"key": caller.key, "mine": caller.mine, "token": caller.confirm}

    def path(self, row: Row) -> str:
        return row.sample.path.format_map(self.names_for(self.administrator))

    @property
    def administrator(self) -> Caller:
        return next(one for one in self.callers if one.role == "administrator" and one.session)


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Scene]:
    with standing(django_db_blocker, lambda: Scene(scene(), callers())) as made:
        yield made


def compare(row: Row, made: Scene, callers: list[Caller]) -> None:
    """Hold what they may to the table; the whole answer is for each role, and for nobody."""
    public = settings.SONAR_PUBLIC_READ
    said = {str(one): one.expected(row, public=public) for one in callers}
    clients = [one.client(row, brief=bool(one.token) or not public) for one in callers]
    found = {
        str(one): ended(made.send(row, one, client), row.sample, one)
        for one, client in zip(callers, clients, strict=True)
    }
    assert found == said, f"SONAR_PUBLIC_READ={public}"


def ended(response: HttpResponse, sample: Sample, caller: Caller) -> str:
    """Say how a request ended, in the words of `Caller.expected`, or with its status."""
    to_login = response.status_code == 302 and "/login/?next=" in response["Location"]
    if to_login:
        return MAY_NOT if caller.session and sample.asks_for_another else NO_ACCOUNT
    if response.status_code in (*sample.good, 304):
        return ALLOWED
    return str(response.status_code)


def test_the_table_has_every_route_and_no_other_and_each_row_a_sample() -> None:
    assert {row.route for row in ROWS} == routes(get_resolver())
    assert [key for key, count in Counter(map(str, ROWS)).items() if count > 1] == []
    assert set(SAMPLES) == {(row.route, row.method) for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_each_caller_may_what_the_table_says(row: Row, made: Scene, settings: Settings) -> None:
    compare(row, made, [one for one in made.callers if is_told_apart(one, row)])
    settings.SONAR_PUBLIC_READ = False  # which is nothing to who has an account, whatever its role
    compare(row, made, [one for one in made.callers if one.role in ("anyone", "reader")])


def is_told_apart(caller: Caller, row: Row) -> bool:
    """Say whether a caller may be answered otherwise than another who asks, too.

    Who reads a page with a token, or with one that has not the scope to read, does so as anyone,
    and by one that has it as by session: those of an administrator show it, and of a reader where
    reading is not public. Who may not write is asked with a body that nobody may read
    (test_of_who_may_not_no_body_is_read).
    """
    if row in WRITES:
        may = caller.expected(row, public=True) == ALLOWED
        return may or depends_on_its_body(row, caller)
    if not caller.token or row.method != "GET":
        return True
    return caller.role == "administrator" and (row.scope == "read" or caller.scope == "read")


@pytest.mark.long
@pytest.mark.parametrize("public", [True, False])
def test_a_token_of_the_issuer_reads_as_a_reader_and_never_writes(
    public: bool, made: Scene, provider: Provider, settings: Settings
) -> None:
    settings.SONAR_PUBLIC_READ, settings.SONAR_OIDC_AUDIENCE = public, AUDIENCE
    script = Caller("reader", token=provider.token(), scope="read", word="Bearer")
    # Nor pages that all may read, which show nothing of a token; others do not take it.
    rows = [
        row
        for row in ROWS
        if not row.route.startswith("/login/oidc/")
        and (row.scope != "-" or not row.may("anyone", own=False, public=public))
    ]
    said = {str(row): script.expected(row, public=public) for row in rows}
    found = {str(row): ended(made.send(row, script), row.sample, script) for row in rows}
    assert found == said
    assert MAY_NOT in said.values()


@pytest.mark.long
def test_every_other_method_is_a_405(made: Scene) -> None:
    """But Django's admin, which has methods of its own."""
    known = {(row.route, row.method) for row in ROWS}
    found = {
        f"{method} {row.route} by {caller}": getattr(browser(caller), method.lower())(
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


@pytest.mark.long
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


WRITES = [row for row in ROWS if row.method != "GET" and row.route != "/api/"]
CSRF = "s" * 32  # as the cookie has it; a form may have it masked
# What there is instead of the right token, beside nothing.
WRONG_TOKENS: list[dict[str, str]] = [
    {"x-csrftoken": "t" * 32},
    {"x-csrftoken": ""},
    {"x-csrftoken": CSRF, "origin": "https://evil.example.org"},
]


def browser(caller: Caller, cookie: str = CSRF, **headers: str) -> Client:
    """Return a client that must show the CSRF token of its cookie; with a token it is a script."""
    if caller.token:
        headers = {"authorization": f"{caller.word} {caller.token}"}
    client = Client(enforce_csrf_checks=True, headers=headers)
    client.cookies[settings.CSRF_COOKIE_NAME] = cookie
    if caller.session:
        client.cookies[settings.SESSION_COOKIE_NAME] = caller.session
    return client


@pytest.mark.long
def test_a_session_writes_only_with_its_csrf_token(made: Scene) -> None:
    assert len(WRITES) > 40
    for row in WRITES:
        client = browser(made.administrator)
        assert made.send(row, made.administrator, client).status_code == 403, row
        client = browser(made.administrator, **{"x-csrftoken": CSRF})
        response = made.send(row, made.administrator, client)
        assert ended(response, row.sample, made.administrator) == ALLOWED, row


@pytest.mark.parametrize("route", ["/notes/", ADMIN, f"{API}/probes/"])
def test_a_csrf_token_must_be_that_of_the_cookie_and_sent_by_a_page_of_this_site(
    route: str, made: Scene
) -> None:
    """Of what checks it, one each: Django for pages and for the admin, the framework for calls."""
    row = next(one for one in WRITES if one.route == route)
    clients = [browser(made.administrator, **headers) for headers in WRONG_TOKENS]
    clients.append(browser(made.administrator, cookie="", **{"x-csrftoken": CSRF}))
    for client in clients:
        assert made.send(row, made.administrator, client).status_code == 403


def test_a_form_may_have_the_csrf_token_and_the_body_of_a_call_may_not(made: Scene) -> None:
    for row in WRITES:
        token = {"csrfmiddlewaretoken": CSRF}
        path, method = made.path(row), row.method.lower()
        form = {**row.sample.filled(made.names_for(made.administrator)), **token}
        response = getattr(browser(made.administrator), method)(path, form)
        may = row.sample.form is not None
        assert (response.status_code == 403) is not may, (row, response.status_code)


class Trap:
    """A body that nobody may read."""

    def read(self, *_: object) -> bytes:
        raise AssertionError("the body was read")

    readline = read


KINDS = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "no kind",
)
LARGE = 10_000_000


@pytest.mark.parametrize("row", WRITES, ids=str)
def test_of_who_may_not_no_body_is_read(row: Row, made: Scene) -> None:
    """So nothing that is wrong with one can be said before: neither of its kind nor of its size.

    Every kind is sent by nobody, and by a session.
    """
    by_nobody = product([NOBODY], KINDS)
    for caller, kind in [*by_nobody, *zip(made.callers, cycle(KINDS), strict=False)]:
        said = caller.expected(row, public=True)
        if said == ALLOWED or depends_on_its_body(row, caller):
            continue
        response = browser(caller, **{"x-csrftoken": CSRF}).generic(
            row.method,
            made.path(row),
            content_type=kind,
            headers={"content-encoding": "gzip"},
            **{"CONTENT_LENGTH": str(LARGE), "wsgi.input": Trap()},
        )
        assert ended(response, row.sample, caller) == said, (caller, kind)


@pytest.mark.parametrize("page", ["sizeclass/add/", "sizeclass/1/change/", "site/1/delete/"])
def test_nor_in_the_admin_for_a_row_that_an_operator_may_not_write(page: str, made: Scene) -> None:
    operator = next(one for one in made.callers if one.role == "operator" and one.session)
    with transaction.atomic():
        User.objects.get(username="the-operator").groups.first().permissions.filter(
            codename="delete_site"
        ).delete()
        client = browser(operator, **{"x-csrftoken": CSRF})
        environ: Any = {"CONTENT_LENGTH": str(LARGE), "wsgi.input": Trap()}
        response = client.generic("POST", f"{ADMIN}sonar/{page}", content_type=KINDS[1], **environ)
        transaction.set_rollback(True)
    assert response.status_code == 403


def depends_on_its_body(row: Row, caller: Caller) -> bool:
    """Say whether a body may be about a site that this admin may write for: no path says it."""
    writes = not caller.scope or caller.scope == row.scope
    own = row.cells["site admin"] == "own" and row.method == "POST" and "<" not in row.route
    return own and writes and caller.role == "site admin"


# For who may: the kind of a form, its bytes, or None for too many to be read, and the status.
MULTIPART = "multipart/form-data; boundary=x"
PART = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
FORMS: dict[str, tuple[str, bytes | None, int | None]] = {
    "broken parts": ("multipart/form-data", b"x", 400),
    "parts that end early": (MULTIPART, PART + b"x", None),
    "a broken encoding": (
        MULTIPART,
        PART.replace(b"\r\n\r\n", b"\r\nContent-Transfer-Encoding: base64\r\n\r\n=\r\n--x--", 1),
        None,
    ),
    "large parts": (MULTIPART, None, 413),
    "a large form": ("application/x-www-form-urlencoded", None, 413),
    "many fields": ("application/x-www-form-urlencoded", b"f=1&" * 2000, 400),
    "no UTF-8": ("application/x-www-form-urlencoded", b"text=%ff%00&name=%ff%00", None),
    "another charset": ("application/x-www-form-urlencoded; charset=utf-16", b"name=x", None),
    "JSON": ("application/json", b'{"name": "x"}', None),
    "packed": ("application/x-www-form-urlencoded", b"\x1f\x8b", None),
}
PAGES_THAT_WRITE = [row for row in WRITES if row.scope == "-"]


@pytest.mark.long
@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_cannot_be_read_breaks_no_page(name: str, made: Scene) -> None:
    kind, body, status = FORMS[name]
    too_large: Any = {"CONTENT_LENGTH": str(LARGE), "wsgi.input": Trap()}
    client = browser(made.administrator, **{"x-csrftoken": CSRF})
    for row in PAGES_THAT_WRITE:
        with transaction.atomic():
            sent = too_large if body is None else {}
            response = client.post(made.path(row), body or b"", content_type=kind, **sent)
            transaction.set_rollback(True)
        assert response.status_code == (status or response.status_code), row
        assert response.status_code < 500, row


UNKNOWN = {
    "RAL_DATADISK": "NOWHERE",
    "/sites/RAL/": "/sites/Nowhere/",
    "/sites/Empty/": "/sites/Nowhere/",
    "/people/somebody/": "/people/nobody/",
    "everything": "nothing",
    "/idle/": "/nothing/",
    "/DDT/": "/nothing/",
    "/add/webhook/": "/add/nothing/",
    "/targets/kept/": "/targets/none/",
    "size-classes/large": "size-classes/none",
    "2026-W46": "2026-W99",
}


def test_who_may_not_learns_not_what_there_is(made: Scene, settings: Settings) -> None:
    """What there is not is answered as what there is, to who may see and do nothing with it."""
    settings.SONAR_PUBLIC_READ = False
    names = dict.fromkeys(made.names, str(UUID(int=7))) | {
        "note": "0",
        "downtime": "0",
        "incident": "0",
        "alias": "0",
        **dict.fromkeys(("key", "list", "mine", "token"), "0"),
    }
    reader = next(one for one in made.callers if one.role == "reader" and one.session)
    compared = 0
    for row, caller in product([row for row in ROWS if "<" in row.route], (NOBODY, reader)):
        if caller.expected(row, public=False) == ALLOWED:
            continue
        path = row.sample.path.format_map(names)
        for known, unknown in UNKNOWN.items():
            path = path.replace(known, unknown)
        assert path != made.path(row)
        client = browser(caller, **{"x-csrftoken": CSRF})
        response = getattr(client, row.method.lower())(path)
        assert ended(response, row.sample, caller) == caller.expected(row, public=False), row
        compared += 1
    assert compared > 40


def test_every_route_states_who_may_use_it() -> None:
    for view in views(get_resolver()):
        call = getattr(view, "cls", None)
        if call is None:
            assert getattr(view, "rights", None) or view is not_found, view
        elif MayOperate in call.permission_classes:
            writes = {one for one in call().allowed_methods if one not in SAFE_METHODS}
            assert writes <= {*call.needs} or "get_permissions" in vars(call), call


def views(resolver: Any) -> Iterator[Any]:
    """Return the views of all routes, but Django's admin's."""
    for each in resolver.url_patterns:
        if hasattr(each, "url_patterns"):
            yield from views(each) if each.app_name != "admin" else ()
        else:
            yield each.callback


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
    "nested": ({"data": b"[" * 50_000, **JSON}, {400}),
    "no UTF-8": ({"data": b'{"name": "\xff"}', **JSON}, {400}),
    "packed": ({"data": b"\x1f\x8b", "headers": {"content-encoding": "gzip"}, **JSON}, {400}),
    "broken parts": ({"data": b"x", "content_type": "multipart/form-data"}, {415}),
    "a parameter": ({"data": b"{}", "query_params": {"nothing": "1"}, **JSON}, {400}),
}
# Of those, what the head of a request could tell, and one for the rest: that no body of who may
# not is read, another test shows. Whoever may is told of a body as an administrator's script is.
TOLD_EARLY = ("no JSON", "a form", "too large", "in chunks", "a parameter")
# Bytes that a body may have: results come in lists.
MOST = {"operate": 100_000, "ingest": 8_000_000}
CALLS_THAT_WRITE = [row for row in ROWS if row.scope in ("operate", "ingest")]


@pytest.mark.long
@pytest.mark.parametrize("row", CALLS_THAT_WRITE, ids=str)
def test_a_missing_right_comes_before_whatever_is_wrong(row: Row, made: Scene) -> None:
    """The order: 401, 403, then 411, 413, 415 or 400. For which site it is, the body says."""
    wrong = {}
    for caller, (what, (fault, answers)) in product(asking(made, row), FAULTS.items()):
        if row.method == "DELETE" and what != "a parameter":
            continue
        if row.route == CHECK and what == "nothing":  # which takes none
            continue
        may = expected_of_a_faulty(row, caller, answers) == answers
        by_script = caller.role == "administrator" and caller.token
        if what not in TOLD_EARLY and not (may and by_script):
            continue
        client = browser(caller, **{"x-csrftoken": CSRF})
        more = {"data": b"[" * (MOST[row.scope] + 1)} if what == "too large" else {}
        response = getattr(client, row.method.lower())(made.path(row), **(fault | more))
        expected = expected_of_a_faulty(row, caller, answers)
        if response.status_code not in expected:
            wrong[f"{what} by {caller}"] = (response.status_code, expected)
    assert wrong == {}


def asking(made: Scene, row: Row) -> list[Caller]:
    """Return nobody, every session, and of tokens those of a reader and an administrator."""
    roles = ("reader", "administrator")
    return [one for one in made.callers if not one.scope or one.role in roles]


def expected_of_a_faulty(row: Row, caller: Caller, answers: set[int]) -> set[int]:
    right = caller.expected(row, public=True)
    if right == MAY_NOT and depends_on_its_body(row, caller):
        return answers
    return {ALLOWED: answers, NO_ACCOUNT: {401}, MAY_NOT: {403}}[right]
