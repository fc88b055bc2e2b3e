"""Saved views: an account's own names for pages; only pages of this Sonar, never another host."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_script_prefix

from sonar.models import SavedView
from sonar.people import saved_views
from sonar.people.saved_views import LONGEST_ADDRESS, MOST, SavedViewError, checked_address
from tests.accounts import account, logged_in
from tests.matrix.responses import words
from tests.matrix.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
ADDRESS = "/?size=small&source_tier=1&site=!RAL"


@pytest.fixture
def user(small_world: World) -> User:
    return account(name="shifter")


def saved(user: User) -> list[tuple[str, str]]:
    return list(SavedView.objects.filter(user=user).values_list("name", "address"))


def test_a_view_is_saved_listed_opened_renamed_and_deleted(user):
    client = logged_in(user)
    assert "You have no saved views" in client.get("/views/").content.decode()
    response = client.post("/views/", {"name": " T1s ", "address": ADDRESS})
    assert (response.status_code, response["Location"]) == (302, ADDRESS)
    assert saved(user) == [("T1s", ADDRESS)]
    html = client.get("/views/").content.decode()
    assert 'href="/?size=small&amp;source_tier=1&amp;site=!RAL"' in html
    assert client.get(ADDRESS, follow=True).status_code == 200
    assert client.post("/views/rename/", {"view": "T1s", "name": "Big"})["Location"] == "/views/"
    assert saved(user) == [("Big", ADDRESS)]
    assert client.post("/views/delete/", {"view": "Big"})["Location"] == "/views/"
    assert saved(user) == []


def test_each_account_has_its_own(user):
    saved_views.save(user, "mine", "/table/")
    other = account(name="another")
    client = logged_in(other)
    assert "mine" not in words(client.get("/views/").content.decode())
    assert client.post("/views/rename/", {"view": "mine", "name": "x"}).status_code == 404
    assert client.post("/views/delete/", {"view": "mine"}).status_code == 404
    assert saved(user) == [("mine", "/table/")]
    assert client.post("/views/", {"name": "mine", "address": "/sites/"}).status_code == 302
    user.delete()
    assert saved(other) == [("mine", "/sites/")]


@pytest.mark.parametrize(
    "address",
    [
        *("https://elsewhere.example/", "//elsewhere.example/table/", "/\\elsewhere.example/"),
        *("javascript:alert(1)", "table/", "", "/nowhere/", "/links/RAL_DATADISK/", "/admin/"),
        *("/api/v1/matrix/", "/table/?search=a\nb", "/table/\0"),
        "/table/?" + "x" * LONGEST_ADDRESS,
    ],
)
def test_what_is_no_page_of_this_sonar_is_refused(user, address: str):
    response = logged_in(user).post("/views/", {"name": "x", "address": address})
    assert response.status_code == 400
    html = words(response.content.decode())
    assert "Nothing was saved." in html
    assert "is not a page of this Sonar" in html or f"at most {LONGEST_ADDRESS} characters" in html
    assert saved(user) == []


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\nb", "a\0b"])
def test_a_bad_name_is_refused(user, name: str):
    client = logged_in(user)
    saved_views.save(user, "mine", "/table/")
    for response in (
        client.post("/views/", {"name": name, "address": "/table/"}),
        client.post("/views/rename/", {"view": "mine", "name": name}),
    ):
        assert response.status_code == 400
        assert (
            "The name of a view must have 1 to 80 printable characters."
            in response.content.decode()
        )
    assert saved(user) == [("mine", "/table/")]


def test_a_name_is_given_once(user):
    client = logged_in(user)
    for name in ("one", "two"):
        client.post("/views/", {"name": name, "address": "/table/"})
    again = client.post("/views/", {"name": "one", "address": "/sites/"})
    renamed = client.post("/views/rename/", {"view": "two", "name": "one"})
    for response in (again, renamed):
        assert response.status_code == 400
        assert "You already have a view “one”" in response.content.decode()
    assert saved(user) == [("one", "/table/"), ("two", "/table/")]


def test_no_account_keeps_any_number(user):
    SavedView.objects.bulk_create(
        SavedView(user=user, name=f"{number:03}", address="/table/") for number in range(MOST)
    )
    response = logged_in(user).post("/views/", {"name": "x", "address": "/table/"})
    assert response.status_code == 400
    assert f"You already have {MOST} views" in response.content.decode()


def test_markup_in_a_name_is_text(user):
    client = logged_in(user)
    client.post("/views/", {"name": "<b>x</b>", "address": "/table/"})
    assert "&lt;b&gt;x&lt;/b&gt;" in client.get("/views/").content.decode()


def test_below_a_path_addresses_are_below_it():
    with override_script_prefix("/sonar/"):
        assert checked_address("/sonar/table/?size=small#top") == "/sonar/table/?size=small"
        with pytest.raises(SavedViewError):
            checked_address("/table/")


@pytest.mark.parametrize("address", ["/sites/R%C3%A4L/", "/?site=RAL&stat=p95", "/operations/"])
def test_any_page_can_be_kept(user, address: str):
    assert saved_views.save(user, "x", address).address == address


def test_every_page_leads_an_account_to_its_views_with_the_page_to_save(user):
    html = logged_in(user).get("/table/?size=small", follow=True).content.decode()
    assert 'href="/views/?address=%2Ftable%2F' in html
    html = logged_in(user).get("/views/?address=/table/").content.decode()
    assert '<input type="hidden" name="address" value="/table/">' in html
    assert "/views/" not in Client().get("/").content.decode()
