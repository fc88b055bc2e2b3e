"""Every address takes whatever it is asked: ends of ranges, strange names, and no UTF-8.

The parameters of each are those that it names itself where it is asked for others. With `make
fuzz` each parameter gets twenty values, without it one.
"""

import html
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlencode

import pytest
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import Resolver404, resolve
from pytest_django import DjangoDbBlocker

from matrix.http.exceptions import not_found
from sonar.people.roles import Role
from tests import rights_samples
from tests.accounts import account, logged_in
from tests.api import edges
from tests.rights_samples import SAMPLES
from tests.scenes import standing

pytestmark = pytest.mark.django_db
WHOLE = bool(os.environ.get("FUZZ_REQUESTS"))
# How many values a parameter of an address gets.
SHARE = 20 if WHOLE else 1
# Of paths with an odd name every so many, which is each name in some.
EACH = 1 if WHOLE else 3
ROUTES = sorted(route for route, method in SAMPLES if method == "GET")
ROLES = ("anonymous", Role.ADMINISTRATOR) if WHOLE else (Role.ADMINISTRATOR,)
# Of forms of Django's own, which do not refuse what they do not know.
DJANGO_TAKES = {"/login/": ["next"]}
# Names that no parameter has, and one that none can have: that is refused where others are not.
ODD_NAMES = ("nonsense", "", *edges.NORMAL_FORMS, "a" * 300, "from[]", "__class__")
NO_NAMES = ("\x00",)


@dataclass(frozen=True)
class Addresses:
    """Every address that is read, by its route; and who asks, by role."""

    names: dict[str, str]
    clients: dict[str, Client]

    def of(self, route: str) -> str:
        return SAMPLES[route, "GET"].path.format_map(self.names)

    @property
    def administrator(self) -> Client:
        return self.clients[Role.ADMINISTRATOR]


def addresses() -> Addresses:
    """Make the world of the table of rights."""
    names = rights_samples.scene()
    clients = {"anonymous": Client(), Role.ADMINISTRATOR: logged_in(account(Role.ADMINISTRATOR))}
    for client in clients.values():
        client.raise_request_exception = False
    return Addresses(names, clients)


@pytest.fixture(scope="module")
def places(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Addresses]:
    with standing(django_db_blocker, addresses, now=None) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def _nobody_is_asked_to_come_back_later() -> Iterator[None]:
    # Nor looked up in the database for each request.
    sessions = "django.contrib.sessions.backends.signed_cookies"
    rates = {"SONAR_RATE_ACCOUNT": None, "SONAR_RATE_ANONYMOUS": None}
    with override_settings(SESSION_ENGINE=sessions, **rates):
        yield


def asked(client: Client, address: str, *pairs: tuple[str, str | bytes]) -> HttpResponse:
    text = urlencode(pairs, safe="", quote_via=quote)
    response = client.get(f"{address}{'&' if '?' in address else '?'}{text}")
    if response.streaming:
        b"".join(response.streaming_content)
    return response


@pytest.fixture(scope="module")
def refusals(
    places: Addresses, django_db_blocker: DjangoDbBlocker
) -> dict[str, list[HttpResponse]]:
    """Return by route how it takes names that it has not."""
    with django_db_blocker.unblock():
        return {
            route: [
                asked(places.administrator, places.of(route), *((name, "1") for name in names))
                for names in (ODD_NAMES, NO_NAMES)
            ]
            for route in ROUTES
        }


def parameters(route: str, refusal: HttpResponse) -> list[str]:
    """Return the parameters that an address names when it is asked for one that it has not."""
    if route in DJANGO_TAKES:
        return DJANGO_TAKES[route]
    body = b"" if refusal.streaming else refusal.content
    listed = re.search(
        r"There is no parameter “nonsense”: use (.+?)\.(?:\s|</|\")", html.unescape(body.decode())
    )
    return re.split(r", | or ", listed[1]) if listed else ["nonsense"]


def values(parameter: str) -> list[str | bytes]:
    """Return what a parameter is asked: the ends of its kind, strange names, and no UTF-8."""
    kind = edges.OF[edges.kind_of(parameter)]
    return [*dict.fromkeys((*kind, *edges.TEXTS)), *edges.NOT_UTF_8]


def dealt(names: list[str]) -> Iterator[tuple[str, str | bytes]]:
    """Give each parameter its share: the next that no other of its kind had."""
    turns: Counter[str] = Counter()
    for name in names:
        every = values(name)
        kind = edges.kind_of(name)
        for _ in range(SHARE):
            yield name, every[turns[kind] % len(every)]
            turns[kind] += 1


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_no_value_of_a_parameter_is_a_crash(
    role: str, places: Addresses, refusals: dict[str, list[HttpResponse]]
) -> None:
    broken = [
        (route, parameter, value)
        for route in ROUTES
        for parameter, value in dealt(parameters(route, refusals[route][0]))
        if crashed(asked(places.clients[role], places.of(route), (parameter, value)))
    ]
    assert broken == []


def crashed(response: HttpResponse) -> bool:
    # A 503 of /readyz says that there is no worker in this test.
    return response.status_code == 500


def odd_paths() -> set[str]:
    """Return each route with each odd name in it.

    Of those that lead nowhere, as no text is an id, one for each name: all have one answer.
    """
    leading, nowhere = set(), {}
    for name in (*edges.TEXTS, *edges.NOT_UTF_8, *map(str, edges.INTEGERS)):
        for route in (one for one in ROUTES if "<" in one):
            path = re.sub(r"<\w+:\w+>", quote(name, safe=""), route)
            if leads_somewhere(path):
                leading.add(path)
            else:
                nowhere[name, route.startswith("/api/")] = path
    return leading | {*nowhere.values()}


def leads_somewhere(path: str) -> bool:
    try:
        return resolve(unquote(path)).func is not not_found
    except Resolver404:
        return False


@pytest.mark.long
def test_no_name_in_a_path_is_a_crash(places: Addresses) -> None:
    paths = odd_paths()
    assert len(paths) > 1000
    reader = places.clients["anonymous"]
    assert [path for path in sorted(paths)[::EACH] if crashed(reader.get(path))] == []


def test_no_name_of_a_parameter_is_a_crash_and_each_page_that_asks_names_its_own(
    refusals: dict[str, list[HttpResponse]],
) -> None:
    """Without them the others would show nothing."""
    assert [route for route, both in refusals.items() for one in both if crashed(one)] == []
    found = {route: parameters(route, both[0]) for route, both in refusals.items()}
    assert {"before", "from", "show"} <= set(found["/links/<str:source>/<str:destination>/"])
    assert {"cursor", "page_size", "from"} <= set(found["/api/v1/transfers/"])
    assert sum(map(len, found.values())) > 400
