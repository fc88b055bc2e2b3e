"""Whom to tell: said where a page refuses, fails or asks for an account, if anybody is named."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.template.loader import render_to_string
from django.test import Client

from sonar import settings as project
from sonar.people.roles import Role
from tests.accounts import account

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


@pytest.mark.django_db
def test_whom_to_tell_is_said_where_it_is_needed(client, settings):
    settings.SONAR_CONTACT = "mailto:grid-help@example.org"
    without = [name for name, html in pages(client).items() if html.count(MAIL) != 1]
    assert without == []


@pytest.mark.django_db
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
    with pytest.raises(
        ImproperlyConfigured, match=r"SONAR_CONTACT=.* is neither an e-mail address"
    ):
        project.envcontact("SONAR_CONTACT")
