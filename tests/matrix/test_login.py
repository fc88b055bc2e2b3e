"""Log-in: back to where it began, else a site admin to the own site and others to the matrix.

And whom to tell, where a page refuses, fails or asks for an account, if anybody is named.
"""

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.template.loader import render_to_string
from django.test import Client

from sonar import settings as project
from sonar.models import Site
from sonar.people import roles
from sonar.people.roles import Role
from tests.accounts import account

pytestmark = pytest.mark.django_db
EVIL = [
    "https://example.org/",
    "//example.org/",
    "///example.org/",
    "/\\example.org",
    "\\\\example.org",
    "javascript:alert(1)",
    "http:///example.org",
    "http:example.org",
    " //example.org",
    "/\t/example.org",
    "https://testserver@example.org/",
    "https://testserver.example.org/",
    "ftp://testserver/",
]


def member(role: Role, *sites: Site) -> User:
    user = User.objects.create_user("anna", password="four in the morning")
    roles.give(user, role, sites)
    return user


def log_in(client: Client, **more: str) -> str:
    form = {"username": "anna", "password": "four in the morning"}
    response = client.post("/login/", form | more)
    assert response.status_code == 302
    return response["Location"]


def test_a_site_admin_lands_on_the_own_site_which_becomes_my_site(client, small_world):
    member(Role.SITE_ADMIN, small_world.desy.site)
    assert log_in(client) == "/sites/DESY/"
    assert client.cookies["sonar_site"].value == "DESY"
    assert '<a href="/sites/DESY/" title="DESY">My site</a>' in client.get("/").content.decode()


@pytest.mark.parametrize(("cookie", "place"), [("", "DESY"), ("RAL", "RAL"), ("Glasgow", "DESY")])
def test_of_several_own_sites_it_is_the_chosen_one_or_the_first(client, small_world, cookie, place):
    member(Role.SITE_ADMIN, small_world.desy.site, small_world.ral.site)
    client.cookies["sonar_site"] = cookie
    assert log_in(client) == f"/sites/{place}/"
    assert client.cookies["sonar_site"].value == (cookie or "DESY")


@pytest.mark.parametrize("role", [Role.READER, Role.OPERATOR, Role.ADMINISTRATOR])
def test_others_land_on_the_matrix(client, small_world, role):
    user = member(role)
    small_world.desy.site.admins.add(user) if role is not Role.READER else None
    assert log_in(client) == "/"
    assert "sonar_site" not in client.cookies


def test_it_names_the_page_on_which_accounts_are_created(client):
    page = client.get("/login/").content.decode()
    assert "create accounts on the <em>People</em> page." in page


def test_it_comes_back_to_where_it_began(client, small_world):
    member(Role.SITE_ADMIN, small_world.desy.site)
    page = client.get("/table/?window=24h&ordering=-large.mean_mb_s").content.decode()
    link = page.partition('<a href="/login/?next=')[2].partition('"')[0]
    assert link == "/table/%3Fwindow%3D24h%26ordering%3D-large.mean_mb_s"
    page = client.get(f"/login/?next={link}").content.decode()
    hidden = 'name="next" value="/table/?window=24h&amp;ordering=-large.mean_mb_s"'
    assert hidden in page
    back = "/table/?window=24h&ordering=-large.mean_mb_s"
    assert log_in(client, next=back) == back


def test_the_front_page_and_the_login_page_itself_begin_nothing(client, small_world):
    for path in ("/", "/login/", "/login/?next=/table/"):
        assert '<a href="/login/">Log in</a>' in client.get(path).content.decode()
    assert 'href="/login/?next=/nowhere/"' in client.get("/nowhere/").content.decode()


@pytest.mark.parametrize("evil", EVIL)
def test_it_never_leads_to_another_host(client, small_world, evil):
    member(Role.SITE_ADMIN, small_world.desy.site)
    assert log_in(client, next=evil) == "/sites/DESY/"
    client.logout()
    response = client.post(
        f"/login/?{'next'}={evil}", {"username": "anna", "password": "four in the morning"}
    )
    assert response["Location"] == "/sites/DESY/"


MAIL = '<a href="mailto:grid-help@example.org">grid-help@example.org</a>'
ORDER = "/operations/probes/"


def pages(client: Client) -> dict[str, str]:
    """Return the pages that may say it: of a reader whom the second refuses."""
    client.force_login(account(Role.READER, name="reads"))
    found = {
        "operations": client.get("/operations/").content.decode(),
        "403": client.post(ORDER).content.decode(),
        "500": render_to_string("500.html"),
        "503": render_to_string("503.html", {"sentence": "The database does not answer."}),
    }
    client.logout()
    return found | {"log-in": client.get("/login/").content.decode()}


def test_whom_to_tell_is_said_where_it_is_needed(client, settings):
    settings.SONAR_CONTACT = "mailto:grid-help@example.org"
    without = [name for name, html in pages(client).items() if html.count(MAIL) != 1]
    assert without == []


def test_where_nobody_is_named_nothing_is_said(client):
    having = [name for name, html in pages(client).items() if "Administrators of" in html]
    assert having == []


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("", ""),
        (" grid-help@example.org ", "mailto:grid-help@example.org"),
        ("https://help.example.org/sonar?queue=1", "https://help.example.org/sonar?queue=1"),
    ],
)
def test_an_address_becomes_a_link(monkeypatch, text, link):
    monkeypatch.setenv("SONAR_CONTACT", text)
    assert project.envcontact("SONAR_CONTACT") == link


@pytest.mark.parametrize(
    "text",
    [
        "javascript:alert(1)",
        "http://help.example.org",
        "mailto:grid-help@example.org",
        "the shift leader",
        "https://",
        'https://help.example.org/"onclick="x',
        "a@b@example.org",
        "help@example.org?cc=x@example.org",
    ],
)
def test_anything_else_stops_the_start(monkeypatch, text):
    monkeypatch.setenv("SONAR_CONTACT", text)
    with pytest.raises(ImproperlyConfigured, match=r"SONAR_CONTACT=.* is not a contact\."):
        project.envcontact("SONAR_CONTACT")
