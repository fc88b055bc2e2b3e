"""Which site is the reader's own: kept in a cookie, one click away."""

import pytest
from django.test import Client

from tests.matrix.written import written

pytestmark = pytest.mark.django_db


def choose(client: Client, site: str, back: str = "/sites/RAL/", **more: object):
    return client.post("/my-site/", {"site": site, "next": back}, **more)


def test_the_site_is_kept_for_a_year_and_linked_from_every_page(client, small_world):
    assert "My site" not in written(client.get("/sites/"))
    response = choose(client, "RAL", "/sites/RAL/?window=24h")
    assert (response.status_code, response["Location"]) == (302, "/sites/RAL/?window=24h")
    cookie = response.cookies["sonar_site"]
    assert (cookie.value, cookie["max-age"], cookie["samesite"]) == ("RAL", 31_536_000, "Lax")
    assert cookie["httponly"]
    assert not cookie["secure"]
    html = written(client.get("/sites/"))
    assert '<a href="/sites/RAL/" title="RAL">My site</a>' in html
    assert ">my site</span>" in written(client.get("/sites/RAL/"))
    assert "Set as my site" in written(client.get("/sites/DESY/"))


def test_over_https_the_cookie_stays_there(client, small_world):
    assert choose(client, "RAL", secure=True).cookies["sonar_site"]["secure"]


def test_it_is_forgotten_when_asked(client, small_world):
    choose(client, "RAL")
    response = choose(client, "")
    assert response.status_code == 302
    assert response.cookies["sonar_site"]["max-age"] == 0
    assert "My site" not in written(client.get("/sites/"))


def test_an_unknown_site_is_a_400_and_nothing_is_kept(client, small_world):
    response = choose(client, "<b>Nowhere")
    assert response.status_code == 400
    assert "site “&lt;b&gt;Nowhere” is not known" in response.content.decode()
    assert "sonar_site" not in response.cookies


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://example.org/",
        "//example.org/",
        "/\\example.org",
        "///example.org",
        "javascript:alert(1)",
        "sites/",
        "",
    ],
)
def test_one_is_never_led_to_another_host(client, small_world, elsewhere):
    assert choose(client, "RAL", elsewhere)["Location"] == "/"


def test_it_is_only_changed_by_a_form_of_these_pages(small_world):
    client = Client(enforce_csrf_checks=True)
    assert choose(client, "RAL").status_code == 403
    assert client.get("/my-site/").status_code == 405


def test_without_public_read_names_of_sites_are_not_given_away(client, small_world, settings):
    settings.SONAR_PUBLIC_READ = False
    for name in ("RAL", "Nowhere"):
        response = choose(client, name)
        assert response["Location"].startswith("/login/")
        assert "sonar_site" not in response.cookies


@pytest.mark.parametrize("site", ["\0", "RAL\0"])
def test_a_null_byte_is_a_name_of_no_site(client, small_world, site):
    assert choose(client, site).status_code == 400
