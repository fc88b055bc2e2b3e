"""Log-in at a provider and by a certificate: who gets in, as what, and each refusal's sentence.

The provider is a real one in a thread (tests/provider.py); what a browser does, the client does.
"""

import html
import re
import secrets
import time
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
import requests
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from flask import Response
from pytest_django import Settings

from matrix.http import throttling
from sonar.people import accounts, roles, tokens
from sonar.people.role_rules import Role
from tests.provider import CLIENT, DN, RULES, Provider, stranger

pytestmark = pytest.mark.django_db


def begin(client: Client, query: str = "") -> str:
    """Begin a log-in; return the address at the provider."""
    response = client.get(f"/login/oidc/{query}")
    assert response.status_code == 302
    return response["Location"]


def agree(address: str, subject: str) -> str:
    """Say yes at the provider, as this person; return the way back to Sonar."""
    response = requests.post(address, {"sub": subject}, allow_redirects=False, timeout=60)
    assert response.status_code == 302
    back = urlsplit(response.headers["Location"])
    return f"{back.path}?{back.query}"


def log_in(client: Client, subject: str, query: str = "") -> Any:
    return client.get(agree(begin(client, query), subject))


def log_in_with(client: Client, provider: Provider, *groups: str) -> Any:
    """Log in as a person whom the provider says to be in these groups."""
    provider.person("s-1", groups=list(groups))
    return log_in(client, "s-1")


def notice(response: Any) -> str:
    """Return the sentence of a refusal; nobody is logged in then."""
    page = response.content.decode()
    assert response.status_code in (403, 503), page
    assert response.wsgi_request.user.is_anonymous
    found = re.search(r'<p class="notice" role="alert">You were not logged in\. (.*?)</p>', page)
    assert found
    assert "no-store" in response["Cache-Control"]
    return html.unescape(found[1])


def test_nothing_of_it_is_there_while_it_is_off(client):
    assert client.get("/login/oidc/").status_code == 404
    assert client.get("/login/oidc/callback/?code=x&state=y").status_code == 404
    assert client.post("/login/certificate/").status_code == 404
    page = client.get("/login/").content.decode()
    assert "/login/oidc/" not in page
    assert "certificate" not in page


@pytest.mark.parametrize("path", ["signup", "email", "password/reset", "social/connections"])
def test_no_page_of_allauth_is_there(client, provider, path):
    for address in (f"/accounts/{path}/", f"/{path}/", f"/login/{path}/"):
        assert client.get(address).status_code == 404


ROLES: list[tuple[dict[str, Any], Role, list[str]]] = [
    ({"wlcg__groups": ["/grid"]}, Role.READER, []),
    ({"wlcg__groups": ["/grid", "/grid/sites/RAL"]}, Role.SITE_ADMIN, ["RAL"]),
    ({"groups": ["/grid/sites/RAL", "/grid/sites/DESY"]}, Role.SITE_ADMIN, ["DESY", "RAL"]),
    ({"groups": ["/grid/sites/Nowhere"]}, Role.READER, []),
    ({"groups": ["/grid/shifters", "/grid/sites/RAL"]}, Role.OPERATOR, []),
    ({"eduperson_entitlement": ["/grid/admins", "/else"]}, Role.ADMINISTRATOR, []),
    ({"entitlements": "/grid/admins"}, Role.ADMINISTRATOR, []),
    # The first claim that is there counts.
    ({"groups": ["/grid/admins"], "wlcg__groups": ["/grid"]}, Role.READER, []),
]


@pytest.mark.parametrize(("claims", "role", "sites"), ROLES)
def test_groups_give_roles(client, small_world, provider, claims, role, sites):
    provider.person("s-1", preferred_username="anna", **claims)
    response = log_in(client, "s-1")
    assert response.status_code == 302, response.content.decode()
    user = User.objects.get()
    assert user.username == "anna@localhost"
    assert roles.role_of(user) is role
    assert sorted(user.administered_sites.values_list("name", flat=True)) == sites
    assert not user.has_usable_password()
    assert client.session.get_expiry_age() == 12 * 3600


def test_it_leads_back_to_where_it_began_or_to_the_own_site(client, small_world, provider):
    assert log_in_with(client, provider, "/grid/sites/RAL")["Location"] == "/sites/RAL/"
    assert client.cookies["sonar_site"].value == "RAL"
    assert log_in(client, "s-1", "?next=/table/%3Fwindow%3D24h")["Location"] == "/table/?window=24h"
    for evil in ("//example.org/", "https://example.org/", "javascript:alert(1)"):
        assert log_in(client, "s-1", f"?next={evil}")["Location"] == "/sites/RAL/"


def test_what_the_provider_is_asked(client, provider):
    address = begin(
        client, "?next=/table/&scope=everything&auth_params=prompt%3Dnone&process=connect"
    )
    asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert address.startswith(f"{provider.url}/oauth2/authorize?")
    assert asked.pop("redirect_uri") == "http://testserver/login/oidc/callback/"
    assert sorted(asked.pop("scope").split()) == ["openid", "profile"]
    assert (asked.pop("response_type"), asked.pop("client_id")) == ("code", CLIENT)
    assert asked.pop("code_challenge_method") == "S256"
    assert min(len(asked.pop(name)) for name in ("code_challenge", "nonce", "state")) >= 16
    assert asked == {}


def test_another_site_logs_nobody_in(client, provider):
    headers = {"sec-fetch-site": "cross-site"}
    response = client.get("/login/oidc/?next=/table/", headers=headers)
    assert (response.status_code, response["Location"]) == (302, "/login/?next=%2Ftable%2F")
    assert provider.asked == []


def test_roles_are_lost_with_the_groups(client, small_world, provider):
    log_in_with(client, provider, "/grid/shifters")
    assert roles.role_of(User.objects.get()) is Role.OPERATOR
    log_in_with(client, provider, "/grid/sites/RAL")
    user = User.objects.get()
    assert roles.role_of(user) is Role.SITE_ADMIN
    assert not user.is_staff
    assert not user.groups.exists()
    log_in_with(client, provider, "/grid")
    assert roles.role_of(User.objects.get()) is Role.READER


def test_without_a_group_nothing_is_left_not_even_reading(client, small_world, provider, settings):
    settings.SONAR_PUBLIC_READ = False
    log_in_with(client, provider, "/grid/shifters")
    user = User.objects.get()
    elsewhere = Client()
    elsewhere.force_login(user)
    _, token = tokens.create(user, "cron", ["read", "operate"], 10)
    script = Client(headers={"authorization": f"Token {token}"})
    assert elsewhere.get("/sites/").status_code == 200
    assert script.get("/api/v1/sites/").status_code == 200

    sentence = notice(log_in_with(client, provider, "/else"))
    assert sentence == (
        "None of your groups has a role in this Sonar instance. Your groups, as reported by the "
        "log-in provider: /else."
    )
    assert client.get("/sites/").status_code == 302
    assert elsewhere.get("/sites/").status_code == 302
    assert script.get("/api/v1/sites/").status_code == 401
    assert roles.described(User.objects.get()) == "not active"
    assert not User.objects.get().groups.exists()

    assert log_in_with(client, provider, "/grid").status_code == 302
    assert roles.role_of(User.objects.get()) is Role.READER


def test_who_never_had_a_group_gets_no_account(client, provider):
    provider.person("s-1", email="anna@example.org")
    assert "provider: none." in notice(log_in(client, "s-1"))
    assert not User.objects.exists()
    assert not SocialAccount.objects.exists()


def test_whom_an_administrator_switched_off_no_group_lets_in(client, small_world, provider):
    log_in_with(client, provider, "/grid")
    User.objects.update(is_active=False)
    for groups in (["/grid"], ["/else"], ["/grid"]):
        provider.person("s-1", groups=groups)
        response = log_in(Client(), "s-1")
        assert ("was disabled" in notice(response)) is (groups == ["/grid"])
    assert not User.objects.get().is_active


def test_no_name_and_no_address_finds_an_account(client, small_world, provider):
    """An account of Sonar's own, and one of another person there, stay whose they are."""
    own = User.objects.create_user("anna", "anna@example.org", "four in the morning")
    roles.give(own, Role.ADMINISTRATOR)
    claims = {"email": "anna@example.org", "email_verified": True, "preferred_username": "anna"}
    for subject in ("s-1", "s-2"):
        provider.person(subject, groups=["/grid"], **claims)
        assert log_in(Client(), subject).status_code == 302
    names = User.objects.order_by("id").values_list("username", "email", "is_superuser")
    assert list(names) == [
        ("anna", "anna@example.org", True),
        ("anna@localhost", "", False),
        ("anna2@localhost", "", False),
    ]


def test_the_same_subject_of_another_issuer_is_another_person(client, small_world, provider):
    other = User.objects.create_user("other")
    SocialAccount.objects.create(user=other, provider="https://iam.example.org", uid="s-1")
    log_in_with(client, provider, "/grid")
    assert client.session["_auth_user_id"] != str(other.id)


def test_the_page_of_the_account_says_who_vouches_for_it(client, small_world, provider):
    log_in_with(client, provider, "/grid/admins")
    page = client.get(f"/admin/auth/user/{User.objects.get().id}/change/").content.decode()
    assert f"s-1 at {provider.url}; groups at the last log-in: /grid/admins" in page
    own = User.objects.create_user("own")
    page = client.get(f"/admin/auth/user/{own.id}/change/").content.decode()
    assert "no, a local account of this Sonar instance" in page
    index = client.get("/admin/").content.decode().lower()
    assert "social" not in index
    assert "email" not in index


def test_only_groups_are_kept_of_what_the_provider_says(client, small_world, provider):
    provider.person("s-1", groups=["/grid", "bad\0group"], email="anna@example.org", name="Anna")
    log_in(client, "s-1")
    record = SocialAccount.objects.get()
    assert (record.provider, record.uid) == (provider.url, "s-1")
    assert record.extra_data == {"groups": ["/grid"]}


def expired(claims: dict[str, Any], key: Any) -> str:
    return sign(claims | {"exp": int(time.time()) - 60}, key)


def sign(claims: dict[str, Any], key: Any, name: str | None = None) -> str:
    kid = {"kid": name or NAMES[0]}
    return jwt.encode(claims, key, "RS256", headers=kid)


NAMES: list[str] = []
LIES: dict[str, tuple[Callable[[dict[str, Any], Any], str], str]] = {
    "unsigned": (lambda claims, key: jwt.encode(claims, None, "none"), "the token is not signed"),
    "shared secret": (
        lambda claims, key: jwt.encode(claims, "x" * 32, "HS256", headers={"kid": NAMES[0]}),
        "the token is not signed with an accepted algorithm",
    ),
    "foreign key": (
        lambda claims, key: sign(claims, stranger()),
        "the signature of the token is not",
    ),
    "unknown key": (
        lambda claims, key: sign(claims, stranger(), "mine"),
        "a key that the issuer does not have",
    ),
    "expired": (expired, "the token has expired"),
    "audience": (
        lambda claims, key: sign(claims | {"aud": "another"}, key),
        "the token is for another audience",
    ),
    "party": (lambda claims, key: sign(claims | {"azp": "another"}, key), "another client"),
    "issuer": (lambda claims, key: sign(claims | {"iss": "https://x"}, key), "another issuer"),
    "nonce": (lambda claims, key: sign(claims | {"nonce": "old"}, key), "another log-in (nonce)"),
    "subject": (lambda claims, key: sign(claims | {"sub": "s-2"}, key), "is about another user"),
    "no subject": (
        lambda claims, key: sign({k: v for k, v in claims.items() if k != "sub"}, key),
        "the token lacks at least one of the required claims (iss, sub, aud, exp)",
    ),
    "rubbish": (lambda claims, key: "rubbish", "the token is not a signed token"),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_id_token_that_is_not_right_lets_nobody_in(client, provider, lie):
    NAMES[:] = [provider.name]
    provider.person("s-1", groups=["/grid/admins"])
    provider.lie, expected = LIES[lie]
    sentence = notice(log_in(client, "s-1"))
    assert sentence.startswith("The ID token of Grid IAM is not accepted: ")
    assert expected in sentence
    assert not User.objects.exists()


def test_a_state_works_once_and_in_its_own_browser(client, provider):
    provider.person("s-1", groups=["/grid"])
    back = agree(begin(client), "s-1")
    assert "has already ended" in notice(Client().get(back))
    assert client.get(back).status_code == 302
    client.logout()
    assert "has already ended" in notice(client.get(back))
    response = client.get("/login/oidc/callback/")
    assert "has already ended" in notice(response)
    # Whoever tries again from there comes back to no callback.
    assert '<a href="/login/">Log in</a>' in response.content.decode()
    assert "has already ended" in notice(client.get("/login/oidc/callback/?code=x&state=y"))


def test_a_state_is_good_for_ten_minutes(client, provider, monkeypatch):
    provider.person("s-1", groups=["/grid"])
    back = agree(begin(client), "s-1")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 601)
    assert "ten minutes old" in notice(client.get(back))


def test_a_log_in_that_is_begun_keeps_a_session_for_ten_minutes(client, provider):
    begin(client)
    assert client.session.get_expiry_age() == 600
    accounts.forget_sessions(timezone.now() + timezone.timedelta(seconds=590))
    assert Session.objects.count() == 1
    accounts.forget_sessions(timezone.now() + timezone.timedelta(seconds=610))
    assert not Session.objects.exists()
    # Who then takes the password instead stays as long as ever.
    begin(client)
    User.objects.create_user("anna", password="four in the morning")
    client.post("/login/", {"username": "anna", "password": "four in the morning"})
    assert client.session.get_expiry_age() == 7 * 86_400


def test_only_so_many_log_ins_are_begun_from_one_address(client, provider, monkeypatch):
    monkeypatch.setattr(throttling, "BEGUN_ELSEWHERE", throttling.Rate(2, 10**10))
    assert [client.get("/login/oidc/").status_code for _ in range(3)] == [302, 302, 429]
    assert Client(REMOTE_ADDR="192.0.2.9").get("/login/oidc/").status_code == 302


def test_a_log_in_that_ends_at_the_provider_says_so(client, provider):
    for error, sentence in (
        ("access_denied", "The log-in was cancelled at Grid IAM, or is not allowed there."),
        ("server_error", "Grid IAM ended the log-in with an error."),
    ):
        state = parse_qs(urlsplit(begin(client)).query)["state"][0]
        said = notice(client.get(f"/login/oidc/callback/?error={error}&state={state}"))
        assert said.startswith(sentence)


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/.well-known/openid-configuration", 503, "Grid IAM is not responding, or its"),
        ("/oauth2/token", 403, "Grid IAM did not complete the log-in."),
        ("/jwks", 503, "Grid IAM is not responding, or its response is not valid."),
        ("/userinfo", 503, "Grid IAM is not responding."),
    ],
)
def test_a_provider_that_is_broken_is_told(client, provider, path, status, sentence):
    provider.person("s-1", groups=["/grid"])
    provider.broken.add(path)
    response = client.get("/login/oidc/")
    if response.status_code == 302:
        response = client.get(agree(response["Location"], "s-1"))
    assert response.status_code == status
    assert notice(response).startswith(sentence)


def said(body: str, **headers: str) -> Callable[[], Response]:
    return lambda: Response(body, content_type="application/json", headers=headers)


DEEP = "[" * 100_000
ODD: dict[str, Callable[[], Response]] = {
    "a list": said("[1, 2]"),
    "a number": said("1"),
    "nested": said(DEEP),
    "nested deeper": said(f'{{"access_token": {DEEP}'),
    "large": said(f'{{"access_token": "{"x" * 10**6}"}}'),
    "no JSON": said("{"),
    "no text": lambda: Response(b"\xff\xfe\x00", content_type="application/octet-stream"),
    "packed": said("{}", **{"Content-Encoding": "gzip"}),
    "an endless token": said('{"access_token": "x", "expires_in": 1e999}'),
    "an old token": said(f'{{"access_token": "x", "expires_in": -{10**30}}}'),
    "half a character": said('{"access_token": "\\ud800", "id_token": "\\ud800", "sub": "\\0"}'),
    "other types": said('{"access_token": {}, "id_token": [], "sub": {}}'),
    "a redirect": lambda: Response(status=307, headers={"Location": "http://localhost:9/"}),
}


@pytest.mark.long
@pytest.mark.parametrize("path", ["/oauth2/token", "/userinfo"])
def test_whatever_a_provider_answers_lets_nobody_in_and_breaks_nothing(client, provider, path):
    provider.person("s-1", groups=["/grid/admins"])
    for name, answer in ODD.items():
        provider.instead[path] = answer()
        assert notice(log_in(client, "s-1")), name
    assert not User.objects.exists()


def test_a_provider_that_is_not_there_is_told(client, provider, settings):
    settings.SONAR_OIDC_ISSUER = "http://localhost:9"
    sentence = notice(client.get("/login/oidc/"))
    assert "Grid IAM is not responding" in sentence
    assert "(ConnectionError)" in sentence


def test_a_provider_that_is_another_issuer_is_told(client, provider, settings):
    settings.SONAR_OIDC_ISSUER = provider.url.replace("localhost", "127.0.0.1") + "/users/.."
    assert "Grid IAM is not responding" in notice(client.get("/login/oidc/"))


def test_without_passwords_none_is_taken_on_any_page(client, provider, settings):
    settings.SONAR_PASSWORDS = False
    User.objects.create_superuser("root", password="four in the morning")
    form = {"username": "root", "password": "four in the morning", "next": "/table/"}
    response = client.post("/login/", form)
    assert (
        notice(response) == "This Sonar instance does not accept log-ins with a name and password."
    )
    page = response.content.decode()
    assert 'name="password"' not in page
    assert '<a class="btn btn-primary" rel="nofollow" href="/login/oidc/?next=%2Ftable%2F">' in page
    assert 'name="password"' not in client.get("/login/").content.decode()
    response = client.post("/admin/login/?next=/admin/", form)
    assert (
        notice(response) == "This Sonar instance does not accept log-ins with a name and password."
    )
    assert 'name="password"' not in response.content.decode()
    assert not Client().login(username="root", password="four in the morning")


def test_the_admin_sends_to_the_page_with_all_ways(client, provider):
    response = client.get("/admin/", follow=True)
    assert response.request["PATH_INFO"] == "/admin/login/"
    page = response.content.decode()
    assert "Log in with Grid IAM" in page
    assert 'href="/login/oidc/?next=%2Fadmin%2F"' in page
    log_in_with(client, provider, "/grid")
    page = client.get("/admin/", follow=True).content.decode()
    assert "You are logged in as s-1@localhost. If the role of this account" in page


SHOWN = {"x-ssl-client-verify": "SUCCESS", "x-ssl-client-s-dn": DN}


@pytest.fixture
def behind_a_front_server(settings: Settings) -> None:
    settings.SONAR_X509_PROXIES = [ip_network("192.0.2.7"), ip_network("2001:db8::/64")]
    settings.SONAR_LOGIN_ROLES = RULES


def show(headers: dict[str, str], peer: str = "192.0.2.7", **form: str) -> Any:
    return Client(REMOTE_ADDR=peer).post("/login/certificate/", form, headers=headers)


@pytest.mark.usefixtures("behind_a_front_server")
@pytest.mark.parametrize("peer", ["192.0.2.7", "2001:db8::8", "::ffff:192.0.2.7"])
def test_a_certificate_that_the_front_server_checked_lets_in(peer):
    response = show(SHOWN, peer, next="/table/")
    assert (response.status_code, response["Location"]) == (302, "/table/")
    user = User.objects.get()
    assert user.username == "Anna-Storage@certificate"
    assert roles.role_of(user) is Role.OPERATOR


@pytest.mark.usefixtures("behind_a_front_server")
@pytest.mark.parametrize("peer", ["192.0.2.8", "127.0.0.1", "2001:db8:1::1", "", "192.0.2.7, x"])
def test_nobody_else_is_believed_about_certificates(peer):
    headers = SHOWN | {"x-forwarded-for": "192.0.2.7", "forwarded": "for=192.0.2.7"}
    assert "did not come through the front server" in notice(show(headers, peer))
    assert not User.objects.exists()


@pytest.mark.usefixtures("behind_a_front_server")
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"x-ssl-client-verify": "NONE"}, "Your browser sent no certificate"),
        ({"x-ssl-client-verify": "FAILED:expired"}, "Your browser sent no certificate"),
        ({"x-ssl-client-s-dn": ""}, "Your browser sent no certificate"),
        ({"x-ssl-client-s-dn": "CN=Eve,O=Grid"}, "Your certificate has no role in this Sonar"),
        ({"x-ssl-client-s-dn": f"CN={'x' * 200}"}, "1 to 191 printable characters"),
    ],
)
def test_a_certificate_that_gives_nothing_says_so(changed, sentence):
    assert sentence in notice(show(SHOWN | changed))
    assert not User.objects.exists()


@pytest.mark.usefixtures("behind_a_front_server")
def test_a_group_called_as_a_certificate_is_none(client, provider):
    provider.person("s-1", groups=[DN])
    assert "None of your groups" in notice(log_in(client, "s-1"))


def test_tokens_of_who_never_logs_in_again_lapse(client, small_world, provider):
    log_in_with(client, provider, "/grid/shifters")
    user = User.objects.get()
    own = User.objects.create_user("cron")
    texts = [tokens.create(account, "cron", ["read"], 100)[1] for account in (user, own)]
    long_ago = timezone.now() - accounts.LAPSE - timezone.timedelta(minutes=1)
    User.objects.update(last_login=long_ago)
    answers = [
        Client(headers={"authorization": f"Token {text}"}).get("/api/v1/sites/") for text in texts
    ]
    assert [answer.status_code for answer in answers] == [401, 200]
    assert "has not logged in for 30 days" in answers[0].json()["detail"]
    log_in(client, "s-1")
    script = Client(headers={"authorization": f"Token {texts[0]}"})
    assert script.get("/api/v1/sites/").status_code == 200


def test_two_first_log_ins_at_once_make_one_account(client, provider, monkeypatch):
    """The row is made by another process just as this one has seen that there is none."""
    person = accounts.Identity(provider.url, "s-1", "anna", ("/grid",))
    free_name, names = accounts.free_name, []

    def at_the_same_moment(other: accounts.Identity) -> str:
        if not names:
            names.append(secrets.token_hex(4))
            user = User.objects.create_user(names[0])
            SocialAccount.objects.create(user=user, provider=provider.url, uid="s-1")
        return free_name(other)

    monkeypatch.setattr(accounts, "free_name", at_the_same_moment)
    # Both stand in one transaction here, so what the other wrote goes with the savepoint, too.
    assert accounts.admit(person).username == "anna@localhost"
    assert SocialAccount.objects.count() == 1
