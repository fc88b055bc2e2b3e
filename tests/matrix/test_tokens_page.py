"""/tokens/: an account's own tokens are made, shown once, listed and revoked there."""

import shlex
import subprocess
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from sonar.models import Token
from sonar.people import roles, tokens
from sonar.people.roles import Role
from tests.html import Page
from tests.matrix import responses
from tests.needs import needs

pytestmark = pytest.mark.django_db
URL = "/tokens/"
WISH = {"name": "cron", "scopes": ["read"], "days": "7"}


@pytest.fixture
def shifter(client: Client) -> User:
    user = User.objects.create_user("shifter")
    client.force_login(user)
    return user


def page(client: Client) -> Page:
    return responses.page(client, URL)


def make(client: Client, **change: Any) -> Any:
    return client.post(URL, WISH | change)


def text_in(response: Any) -> str:
    """Return the token that is shown once."""
    return Page(response.content.decode()).part("pre#token").text


def revoke(client: Client, token: Token) -> Any:
    return client.post("/tokens/revoke/", {"key": token.token_key})


def test_without_an_account_it_leads_to_the_login(client, settings):
    for answer in (client.get(URL), make(client)):
        assert (answer.status_code, answer["Location"]) == (302, "/login/?next=/tokens/")
    assert client.post("/tokens/revoke/")["Location"].startswith("/login/")
    assert 'href="/tokens/"' not in client.get("/login/").content.decode()


def test_a_new_token_works_and_is_shown_once(client, shifter):
    assert "There are no tokens yet." in page(client)
    response = make(client)
    text = text_in(response)
    made = Token.objects.get()
    assert (made.user, made.name, made.scopes) == (shifter, "cron", ["read"])
    assert timedelta(days=6.99) < made.expiry - timezone.now() <= timedelta(days=7)
    headers = {"authorization": f"Token {text}"}
    assert Client().get("/api/v1/sites/", headers=headers).status_code == 200
    again = page(client)
    assert "cron" in again
    assert made.token_key in again
    assert text not in again.source
    assert text[15:] not in again.source
    assert made.digest not in again.source


def test_nothing_keeps_the_answer_that_shows_it(client, shifter):
    for answer in (make(client), client.get(URL)):
        said = {part.strip() for part in answer["Cache-Control"].split(",")}
        assert said == {"no-store", "private"}
        assert "ETag" not in answer
        assert "Cookie" in answer["Vary"]


def test_the_command_beside_it_works(live_server, real_commits, settings):
    needs("curl")
    settings.SONAR_PUBLIC_READ = False
    client = Client(SERVER_NAME=live_server.url.removeprefix("http://").split(":")[0])
    client.force_login(User.objects.create_user("shifter"))
    port = live_server.url.rpartition(":")[2]
    answer = Page(client.post(URL, WISH, SERVER_PORT=port).content.decode())
    words = shlex.split(answer.part("pre#curl").text)
    said = subprocess.run(
        [*words, "--fail", "-sS"], check=False, capture_output=True, text=True, timeout=120
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("name,cloud,tier")


def offered(client: Client) -> list[str]:
    return [scope["value"] for scope in page(client).parts('[name="scopes"]')]


def test_only_scopes_that_the_account_can_use_are_offered(client, shifter):
    assert offered(client) == ["read"]
    response = make(client, scopes=["read", "operate"])
    assert response.status_code == 400
    assert "operate is not one of the available choices" in response.content.decode()
    assert not Token.objects.exists()
    roles.give(shifter, Role.OPERATOR)
    assert offered(client) == ["read", "ingest", "operate"]
    assert make(client, scopes=["ingest", "operate"]).status_code == 200


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "a b"}, "'a b' cannot be the name of a token: Use only letters"),
        ({"name": ""}, "name: This field is required."),
        ({"name": "x" * 81}, "name: Ensure this value has at most 80 characters"),
        ({"name": "a\0b"}, "name: Null characters are not allowed."),
        ({"scopes": []}, "scopes: This field is required."),
        ({"days": "0"}, "A token is valid for 1 to 3650 days, not 0."),
        ({"days": "9" * 30}, "A token is valid for 1 to 3650 days"),
        ({"days": "soon"}, "days: Enter a whole number."),
    ],
)
def test_a_bad_wish_is_a_400_that_says_why(client, shifter, change: dict[str, Any], said: str):
    response = make(client, **change)
    assert response.status_code == 400
    html = unescape(response.content.decode())
    assert said in html
    assert "No token was created." in html
    assert not Token.objects.exists()


def test_a_name_is_taken_once_even_by_two_clicks(client, shifter):
    make(client)
    response = make(client)
    assert response.status_code == 400
    said = "Shifter already has a token named 'cron': revoke it or choose another name."
    assert said in unescape(response.content.decode())
    assert Token.objects.count() == 1


def test_an_expired_one_is_marked_and_a_revoked_one_is_useless_at_once(client, shifter):
    make(client)
    assert "expired" not in page(client).texts("strong")
    Token.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    assert "expired" in page(client).texts("strong")
    text = text_in(make(client, name="other"))
    response = revoke(client, Token.objects.get(name="other"))
    assert (response.status_code, response["Location"]) == (302, "/tokens/")
    assert not Token.objects.filter(name="other").exists()
    headers = {"authorization": f"Token {text}"}
    assert Client().get("/api/v1/sites/", headers=headers).status_code == 401


def test_others_tokens_are_neither_shown_nor_revoked(client, shifter):
    foreign, _ = tokens.create(User.objects.create_user("other"), "not-mine", ["read"], 1)
    roles.give(shifter, Role.OPERATOR)
    assert "not-mine" not in page(client).source
    assert revoke(client, foreign).status_code == 404
    assert client.post("/tokens/revoke/", {"key": "\0"}).status_code == 404
    assert client.post("/tokens/revoke/").status_code == 404
    assert Token.objects.get() == foreign


def test_an_administrator_sees_and_revokes_all(client, shifter):
    foreign, _ = tokens.create(User.objects.create_user("other"), "foreign", ["read"], 1)
    roles.give(shifter, Role.ADMINISTRATOR)
    every = page(client)
    assert "Tokens of all accounts" in every
    assert "foreign" in every
    assert "other" in every.texts("td")
    assert revoke(client, foreign).status_code == 302
    assert not Token.objects.exists()


@pytest.mark.parametrize("path", [URL, "/tokens/revoke/"])
def test_a_form_from_elsewhere_does_nothing(shifter, path: str):
    made, _ = tokens.create(shifter, "old", ["read"], 1)
    client = Client(enforce_csrf_checks=True)
    client.force_login(shifter)
    assert client.post(path, WISH | {"key": made.token_key}).status_code == 403
    assert Token.objects.get() == made


def test_a_token_makes_no_tokens(shifter):
    _, text = tokens.create(shifter, "cron", ["read"], 1)
    response = Client().post(URL, WISH, headers={"authorization": f"Token {text}"})
    assert response["Location"].startswith("/login/")


def test_it_says_what_the_account_is(client, small_world, shifter):
    assert "You are a reader . You have read access." in page(client)
    sites = [small_world.ral.site, small_world.glasgow.site]
    roles.give(shifter, Role.SITE_ADMIN, sites)
    assert "You are a site admin of Glasgow and RAL ." in page(client)
    assert responses.page(client, "/sites/").link("API tokens") == "/tokens/"
