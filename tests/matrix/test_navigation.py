"""The navigation: who sees which entries, where one is, and what it costs."""

from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.test import Client

from matrix.templatetags import navigation
from matrix.templatetags.navigation import ACCOUNT, ENTRIES, Navigation
from sonar.models import Site
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.matrix import responses
from tests.matrix.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]

SECTIONS_AND_TABS = "nav[aria-label=Sonar]"
TABS = "nav.pages a"
NOT_FOR_READERS = {"Aliases", "Topology", "Add site", "People", "History", "Admin"}
CLOSED = {
    None: {entry.label for entry in ACCOUNT} | NOT_FOR_READERS,
    Role.READER: NOT_FOR_READERS,
    Role.SITE_ADMIN: NOT_FOR_READERS - {"History"},
    Role.OPERATOR: {"People"},
    Role.ADMINISTRATOR: set(),
}
# Pages by their addresses: the section, and the tab, each marked.
PLACES = {
    "/": (["Overview"], ["Matrix"]),
    "/table/?size=small": (["Overview"], ["Table"]),
    "/sites/": (["Sites"], []),
    "/sites/RAL/": (["Sites"], []),
    "/incidents/": (["Problems"], ["Incidents"]),
    "/events/": (["Problems"], ["Events"]),
    "/causes/": (["Problems"], ["Causes"]),
    "/reports/": (["Reports"], ["Weekly and monthly"]),
    "/commissioning/": (["Reports"], ["Commissioning"]),
    "/meshes/": (["Setup"], ["Meshes"]),
    "/size-classes/": (["Setup"], ["Size classes"]),
    "/operations/": (["Health"], []),
    "/glossary/": ([], []),
    "/search/?q=DISK": ([], []),
}


def user_of(role: Role) -> User:
    return account(role, *Site.objects.filter(name="RAL")[: role is Role.SITE_ADMIN])


def client_of(role: Role | None) -> Client:
    return logged_in(user_of(role)) if role else Client()


@pytest.mark.parametrize("role", CLOSED)
def test_each_role_sees_what_it_may_open_and_nothing_else(small_world: World, role: Role | None):
    client = client_of(role)
    page = responses.page(client, "/meshes/")
    shown = {*page.texts("nav[aria-label=Sonar] a"), *page.texts("nav[aria-label=Account] a")}
    # A section with a single page is shown without a tab.
    shown |= {"All sites"}
    labels = {entry.label for entry in ENTRIES}
    assert labels - shown == CLOSED[role]
    for entry in ENTRIES:
        status = client.get(entry.path() + entry.query).status_code
        assert (status == 200) == (entry.label in shown), entry


def test_nobody_sees_pages_where_only_accounts_may_read(client: Client, settings):
    settings.SONAR_PUBLIC_READ = False
    page = responses.page(client, "/login/")
    assert page.texts(".head nav a") == []
    assert page.link("Log in") == "/login/"


@pytest.mark.parametrize("address", PLACES)
def test_the_section_and_the_tab_of_a_page_are_marked(
    client: Client, small_world: World, address: str
):
    page = responses.page(client, address)
    sections, tabs = PLACES[address]
    assert page.texts(f"{SECTIONS_AND_TABS} [aria-current]") == sections + tabs
    assert page.texts(f"{TABS}[aria-current]") == tabs
    assert len(page.parts(TABS)) >= 2 * len(tabs)


def test_a_page_below_another_one_is_in_its_place(client: Client, small_world: World):
    mesh = responses.page(client, "/meshes/everything/")
    marked = mesh.part(f"{TABS}[aria-current]")
    assert (marked.words, marked["aria-current"]) == ("Meshes", "true")
    meshes = responses.page(client, "/meshes/")
    assert meshes.part(f"{TABS}[aria-current]")["aria-current"] == "page"


def test_the_tabs_of_the_overview_keep_the_question(client: Client, small_world: World):
    matrix = responses.page(client, "/?size=small&order=tier")
    assert matrix.part("nav.pages").link("Table") == "/table/?size=small"
    assert matrix.part("nav.pages").link("Wall") == "/?size=small&order=tier&wall=1"
    table = responses.page(client, "/table/?size=small")
    assert table.part("nav.pages").link("Matrix") == "/?size=small"
    assert client.get(table.part("nav.pages").link("Wall")).status_code == 200


def test_saved_views_are_offered_the_page_that_one_comes_from():
    page = responses.page(client_of(Role.READER), "/sites/?size=small")
    assert page.link("Saved views") == "/views/?address=%2Fsites%2F%3Fsize%3Dsmall"


def test_the_menu_of_an_account_says_where_it_is(small_world: World):
    page = responses.page(client_of(Role.ADMINISTRATOR), "/people/")
    assert page.texts("nav[aria-label=Account] [aria-current=page]") == ["People"]


@pytest.mark.parametrize("role", CLOSED)
def test_it_takes_no_query(small_world: World, role: Role | None):
    """What an account may open is read with the rights that a page reads, or once a minute."""
    routes = frozenset(entry.route for entry in ENTRIES)
    user = user_of(role) if role else None
    for entry in ENTRIES:
        client = logged_in(user) if user else Client()
        if client.get(entry.path()).status_code != 200:
            continue
        with patch.object(navigation, "routes_for", return_value=routes):
            without = responses.statements(client.get, entry.path())
        counted = responses.statements(client.get, entry.path())
        assert len(counted) == len(without), (entry.path(), counted)


def test_a_request_without_an_account_has_no_entries(rf):
    assert navigation.navigation({"request": rf.get("/")}) == Navigation()
    assert navigation.navigation({}) == Navigation()
