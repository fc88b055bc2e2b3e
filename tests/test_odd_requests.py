"""Every address takes whatever it is asked: ends of ranges, strange names, and no UTF-8.

The parameters of each are those that it names itself in its refusal of another. With `make fuzz`
each parameter gets twenty values, without it one.
"""

from __future__ import annotations

import html
import os
import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings

from sonar.roles import Role
from tests import rights_samples
from tests.accounts import account, logged_in
from tests.api import edges
from tests.rights_samples import SAMPLES

pytestmark = pytest.mark.django_db
WHOLE = bool(os.environ.get("FUZZ_REQUESTS"))
# How many values a parameter of an address gets.
SHARE = 20 if WHOLE else 1
ROUTES = sorted(route for route, method in SAMPLES if method == "GET")
ROLES = ("anonymous", Role.ADMINISTRATOR) if WHOLE else (Role.ADMINISTRATOR,)
# A 503 of /readyz says that there is no worker in this test.
CRASH = 500
# Of forms of Django's own, which do not refuse what they do not know.
DJANGO_TAKES = {"/login/": ["next"]}


@pytest.fixture
def names(settings: Settings) -> dict[str, str]:
    """Make the world of the table of rights; nobody is asked to come back later."""
    settings.SONAR_RATE_ACCOUNT = settings.SONAR_RATE_ANONYMOUS = None
    return rights_samples.scene()


def caller(role: str) -> Client:
    client = Client() if role == "anonymous" else logged_in(account(Role(role)))
    client.raise_request_exception = False
    return client


def asked(client: Client, address: str, parameter: str, value: str | bytes) -> HttpResponse:
    text = f"{quote(parameter, safe='')}={quote(value, safe='')}"
    response = client.get(f"{address}{'&' if '?' in address else '?'}{text}")
    if response.streaming:
        b"".join(response.streaming_content)
    return response


def parameters(address: str, route: str, client: Client) -> list[str]:
    """Return the parameters that an address names when it is asked for one that it has not."""
    if route in DJANGO_TAKES:
        return DJANGO_TAKES[route]
    told = asked(client, address, "nonsense", "1")
    body = b"" if told.streaming else told.content
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


@pytest.mark.parametrize("role", ROLES)
def test_no_value_of_a_parameter_is_a_crash(role: str, names: dict[str, str]) -> None:
    client = caller(role)
    places = {route: SAMPLES[route, "GET"].path.format_map(names) for route in ROUTES}
    broken = [
        (address, parameter, value)
        for route, address in places.items()
        for parameter, value in dealt(parameters(address, route, client))
        if asked(client, address, parameter, value).status_code == CRASH
    ]
    assert broken == []


@pytest.mark.long
def test_no_name_in_a_path_is_a_crash(names: dict[str, str]) -> None:
    client = caller(Role.ADMINISTRATOR)
    odd = [
        quote(one, safe="") for one in (*edges.TEXTS, *edges.NOT_UTF_8, *map(str, edges.INTEGERS))
    ]
    broken = [
        address
        for route in ROUTES
        for address in {re.sub(r"<\w+:\w+>", one, route) for one in odd}
        if "<" in route and client.get(address).status_code == CRASH
    ]
    assert broken == []


def test_no_name_of_a_parameter_is_a_crash(names: dict[str, str]) -> None:
    client = caller(Role.ADMINISTRATOR)
    odd = ("nonsense", "", "\x00", *edges.NORMAL_FORMS, "a" * 300, "from[]", "__class__")
    broken = [
        (route, name)
        for route in ROUTES
        for name in odd
        if asked(client, SAMPLES[route, "GET"].path.format_map(names), name, "1").status_code
        == CRASH
    ]
    assert broken == []


def test_each_page_that_asks_names_its_parameters(names: dict[str, str]) -> None:
    """Without them the others would show nothing."""
    client = caller(Role.ADMINISTRATOR)
    found = {
        route: parameters(SAMPLES[route, "GET"].path.format_map(names), route, client)
        for route in ROUTES
    }
    assert {"before", "from", "show"} <= set(found["/links/<str:source>/<str:destination>/"])
    assert {"cursor", "page_size", "from"} <= set(found["/api/v1/transfers/"])
    assert sum(map(len, found.values())) > 400
