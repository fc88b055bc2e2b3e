"""Parameters that a page does not know: it says so, and its own address is without them."""

import re
from html import unescape

import pytest
from django.test import Client
from django.test.utils import override_settings

from tests.matrix import responses
from tests.matrix.world import World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
PAGES = ("/", "/table/", "/sites/", "/sites/RAL/", LINK, "/search/", "/operations/")
MAIL = "utm_source=mail&fbclid=1"


def line(html: str) -> str:
    match = re.search(r'<p [^>]*id="ignored".*?</p>', html, re.DOTALL)
    return unescape(responses.words(match[0])).strip() if match else ""


@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_what_it_ignores_and_its_links_are_without_it(
    client: Client, small_world: World, path: str
) -> None:
    response = client.get(f"{path}?{MAIL}")
    html = response.content.decode()
    assert response.status_code == 200
    assert line(html) == "Ignored: utm_source, fbclid"
    assert response["Link"] == f'<{path}>; rel="canonical"'
    assert f'data-canonical="{path}"' in html
    assert not re.search(r'(href|action|hx-get|data-copy)="[^"]*(utm_source|fbclid)', html)
    assert "Link" not in client.get(path)
    assert line(client.get(path).content.decode()) == ""


def test_a_page_of_one_transfer_ignores_them_too(client: Client, small_world: World) -> None:
    one = transfer(small_world.ral, small_world.glasgow, 10.0)
    assert line(client.get(f"/transfers/{one.id}/?{MAIL}").content.decode())


def test_what_is_known_counts_beside_what_is_ignored(client: Client, small_world: World) -> None:
    response = client.get(f"/?window=24h&{MAIL}&site=RAL&stat=mean")
    assert response.context["heading"] == (
        "Mean rate of large-file transfers, the last 24 hours, only from or to site RAL"
    )
    assert response["Link"] == '</?window=24h&site=RAL>; rel="canonical"'


@pytest.mark.parametrize("path", PAGES[:5])
def test_a_bad_value_of_what_is_known_is_a_400_all_the_same(
    client: Client, small_world: World, path: str
) -> None:
    response = client.get(f"{path}?{MAIL}&window=2h")
    assert response.status_code == 400
    assert "window “2h” is not known" in response.content.decode()


def test_the_line_says_which_there_are(client: Client, small_world: World) -> None:
    html = unescape(client.get("/table/?source.nam.has=RAL").content.decode())
    assert re.search("There is no parameter “source.nam.has”: use .*source.has,", html)


def test_many_and_long_names_stay_a_line_and_markup_is_text(
    client: Client, small_world: World
) -> None:
    names = "&".join(f"a{number}=1" for number in range(100))
    html = client.get(f"/?<script>alert(1)</script>=2&{names}").content.decode()
    assert line(html) == "Ignored: <script>alert(1)</script>, a0, a1, a2, a3, a4, a5, a6, …"
    assert "<script>alert" not in html


@pytest.mark.parametrize("call", ["matrix", "links", "sites", "sites/RAL", "status"])
def test_the_api_goes_on_refusing_them(client: Client, small_world: World, call: str) -> None:
    response = client.get(f"/api/v1/{call}/?{MAIL}")
    assert response.status_code == 400
    assert {"utm_source", "fbclid"} <= set(response.json()["errors"])


def test_the_numbers_behind_the_matrix_refuse_them(client: Client, small_world: World) -> None:
    assert client.get(f"/cells/?{MAIL}").status_code == 400


def test_who_must_log_in_is_asked_to_first(client: Client, small_world: World) -> None:
    with override_settings(SONAR_PUBLIC_READ=False):
        assert client.get(f"/?{MAIL}").status_code == 302
