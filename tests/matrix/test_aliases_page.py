"""The Aliases page: unknown aliases are assigned there, or dismissed."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from sonar.models import Alias, Site, UnknownAlias
from sonar.models.aliases import AliasKind
from sonar.people.roles import Role
from sonar.registry import aliases
from sonar.registry.aliases import Unknown
from tests.accounts import account
from tests.html import Page
from tests.matrix.registry import caller, get, patch, post
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
PAGE = "/operations/aliases/"
HOST = {"kind": "se_host", "name": "SE.example.org"}


def page_of(response: HttpResponse) -> Page:
    return Page(response.content.decode())


@pytest.fixture
def operator(client: Client, small_world: World) -> User:
    user = account(Role.OPERATOR)
    client.force_login(user)
    return user


@pytest.fixture
def unknown(small_world: World) -> None:
    told = Unknown(AliasKind.SE_HOST, "SE.example.org", "outage until <b>noon</b>")
    for _ in range(3):
        aliases.note_unknown("gocdb", [told], NOW - HOUR)


def test_it_lists_unknown_aliases_with_source_count_example_and_time(
    client, operator, unknown, django_assert_num_queries
):
    client.get(PAGE)  # the rights of the account are read once
    with django_assert_num_queries(9):
        response = client.get(PAGE)
    page = page_of(response)
    (row,) = page.parts("table.ranking tbody tr")
    assert row.cells() == [
        *("SE.example.org storage host", "Assign Dismiss", "gocdb", "3", "1 h ago"),
        "outage until <b>noon</b>",
    ]
    suggested = [option["value"] for option in page.parts("#places option")]
    assert {"RAL", "RAL_DATADISK"} <= set(suggested)
    assert "1 unknown alias: assign it" in page_of(client.get("/operations/"))


def test_a_name_is_assigned_in_the_log_too(client, operator, unknown, small_world):
    response = client.post(PAGE, {**HOST, "place": "RAL_DATADISK"}, follow=True)
    page = page_of(response)
    assert "SE.example.org is now an alias of the endpoint RAL_DATADISK." in page
    assert page.texts("h1") == ["Unknown aliases"]
    assert Alias.objects.get().target == small_world.ral
    assert LogEntry.objects.get().user == operator
    client.post(f"{PAGE}remove/", HOST)
    assert not Alias.objects.exists()
    assert LogEntry.objects.count() == 2


def test_a_site_and_an_endpoint_of_one_name_are_told_apart_by_the_kind(client, operator):
    Site.objects.create(name="RAL_DATADISK")
    for kind, word in (("rse", "endpoint"), ("rcsite", "site")):
        client.post(PAGE, {"kind": kind, "name": "X", "place": "RAL_DATADISK"})
        assert Alias.objects.get(kind=kind).target._meta.verbose_name == word


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"place": "nowhere"}, "No site or endpoint is named “nowhere”."),
        ({"place": ""}, "Enter a site or an endpoint."),
        ({"kind": "x"}, "Select a valid choice."),
        ({"name": " x"}, "An alias must be printable"),
        ({"name": "x\0"}, "Null characters are not allowed."),
    ],
)
def test_what_cannot_be_assigned_is_refused(client, operator, unknown, changed, said: str):
    response = client.post(PAGE, {**HOST, "place": "RAL", **changed})
    assert response.status_code == 400
    assert said in page_of(response)
    assert (Alias.objects.count(), UnknownAlias.objects.count()) == (0, 1)


def test_a_dismissed_alias_is_counted_but_no_longer_listed(client, operator, unknown):
    client.post(f"{PAGE}dismiss/", {**HOST, "source": "gocdb", "dismissed": "on"})
    page = page_of(client.get(PAGE))
    assert "All aliases seen in the last 30 days are known or dismissed." in page
    assert "Dismissed aliases: 1" in page
    aliases.note_unknown("gocdb", [Unknown(AliasKind.SE_HOST, "se.example.org")], NOW)
    assert UnknownAlias.objects.get().dismissed
    assert "unknown alias" not in page_of(client.get("/operations/"))
    client.post(f"{PAGE}dismiss/", {"kind": "se_host", "name": "se.example.org", "source": "gocdb"})
    assert not UnknownAlias.objects.get().dismissed
    gone = client.post(f"{PAGE}dismiss/", {**HOST, "source": "osg"})
    assert gone.status_code == 404


def test_hosts_are_for_operators_in_the_api(client, small_world):
    root = caller(Role.OPERATOR)
    body = HOST | {"site": "RAL"}
    made = post(root, "aliases/", body).json()
    assert made["origin"] == "hand"
    post(root, "aliases/", {"kind": "rcsite", "name": "RAL-LCG2", "site": "RAL"})
    assert [one["name"] for one in get(client, "aliases/")["aliases"]] == ["RAL-LCG2"]
    assert len(get(root, "aliases/?site=RAL")["aliases"]) == 2
    assert [one["id"] for one in get(root, "aliases/?kind=se_host")["aliases"]] == [made["id"]]
    assert client.get(f"/api/v1/aliases/{made['id']}/").status_code == 404
    taken = post(root, "aliases/", body | {"name": "se.EXAMPLE.org"})
    assert (taken.status_code, "“name” is already used by another" in str(taken.json())) == (
        409,
        True,
    )
    both = patch(root, f"aliases/{made['id']}/", {"endpoint": "RAL_DATADISK"})
    assert (both.status_code, "choose exactly one" in str(both.json())) == (400, True)
