"""Tokens of the issuer: scripts read the API with them, and never write."""

import json
import time
from typing import Any

import jwt
import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import example, given
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm
from jwt.utils import base64url_encode
from pytest_django import Settings

from sonar.people import issuer
from tests.provider import AUDIENCE, Provider, stranger

pytestmark = pytest.mark.django_db
CALL = "/api/v1/sites/"


@pytest.fixture
def accepting(provider: Provider, settings: Settings) -> Provider:
    """A Sonar that is read by accounts and tokens alone, of a provider whose tokens it takes."""
    settings.SONAR_OIDC_AUDIENCE = AUDIENCE
    settings.SONAR_PUBLIC_READ = False
    return provider


def ask(token: str, path: str = CALL) -> Any:
    return Client(headers={"authorization": f"Bearer {token}"}).get(path)


def refusal(token: str) -> str:
    answer = ask(token)
    assert answer.status_code == 401, answer.content
    assert answer["WWW-Authenticate"] == "Token"
    sentence: str = answer.json()["detail"]
    assert token not in sentence
    return sentence


def test_a_token_of_the_issuer_for_this_sonar_reads(accepting, small_world):
    assert ask(accepting.token()).status_code == 200
    assert ask(accepting.token(aud=["x", AUDIENCE])).status_code == 200
    assert ask(accepting.token(), "/api/v1/transfers/").status_code == 200
    # As a reader: what is internal stays so.
    endpoint = ask(accepting.token(), "/api/v1/endpoints/RAL_DATADISK/").json()
    assert "base_url" not in endpoint


def test_pages_take_none(accepting):
    assert ask(accepting.token(), "/sites/").status_code == 302


def test_it_costs_the_issuer_one_question_for_its_keys(accepting, small_world):
    for _ in range(5):
        assert ask(accepting.token()).status_code == 200
    assert accepting.asked == ["/.well-known/openid-configuration", "/jwks"]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "expired": ({"exp": int(time.time()) - 60}, "the token has expired"),
    "endless": ({"exp": None}, "the token lacks at least one of the required claims"),
    "another audience": ({"aud": "https://other.example.org"}, "the token is for another audience"),
    "any audience": (
        {"aud": "https://wlcg.cern.ch/jwt/v1/any"},
        "the token is for another audience",
    ),
    "no audience": ({"aud": None}, "the token lacks at least one of the required claims"),
    "another issuer": ({"iss": "https://iam.example.org"}, "the token comes from another issuer"),
    "not yet": ({"nbf": int(time.time()) + 3600}, "the token is not valid yet"),
    "nobody": ({"sub": None}, "the token lacks at least one of the required claims"),
}


@pytest.mark.parametrize("name", BAD)
def test_each_claim_is_checked(accepting, name):
    claims, sentence = BAD[name]
    assert sentence in refusal(accepting.token(**claims))


def test_only_the_keys_of_the_issuer_sign(accepting):
    claims = jwt.decode(accepting.token(), options={"verify_signature": False})
    kid = {"kid": accepting.name}
    for token, sentence in (
        (jwt.encode(claims, None, "none"), "the token is not signed"),
        (jwt.encode(claims, None, "none", headers=kid), "the token is not signed"),
        (
            jwt.encode(claims, stranger(), "RS256", headers=kid),
            "the signature of the token is not the issuer's",
        ),
        (jwt.encode(claims, "s" * 32, "HS256", headers=kid), "not signed with an accepted"),
        (jwt.encode(claims, accepting.key, "PS256", headers=kid), "This token is not accepted"),
        (accepting.token()[:-12] + "A" * 12, "the signature of the token is not the issuer's"),
        ("a.b.c", "the token is not a signed token (JWT)"),
    ):
        assert sentence in refusal(token)


Pairs = list[tuple[str, Any]]
SIGNING = RSAAlgorithm(RSAAlgorithm.SHA256)


def written(pairs: Pairs) -> bytes:
    """Write JSON that may have a name twice, numbers that are none, and halves of characters."""
    fields = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in pairs]
    return f"{{{', '.join(fields)}}}".encode()


def signed(header: Pairs, claims: bytes, key: Any) -> str:
    both = b".".join(map(base64url_encode, (written(header), claims)))
    return (both + b"." + base64url_encode(SIGNING.sign(both, key))).decode()


TEXTS = st.text(st.characters(), max_size=8) | st.just("x" * 2000)
SCALARS = st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=4
)
HEADER = ("alg", "kid", "typ", "crit", "b64", "jwk", "jku", "x5u", "x5c", "zip")
CLAIMS = ("iss", "sub", "aud", "exp", "iat", "nbf", "jti", "azp")


def pairs(names: tuple[str, ...]) -> st.SearchStrategy[Pairs]:
    return st.lists(st.tuples(st.sampled_from(names), VALUES), max_size=3)


@given(header=pairs(HEADER), claims=pairs(CLAIMS))
@example(header=[("alg", ["RS256"])], claims=[])
@example(header=[("alg", {}), ("kid", 1)], claims=[])
@example(header=[("crit", ["b64"]), ("b64", False)], claims=[])
@example(header=[], claims=[("sub", "a\0b")])
@example(header=[], claims=[("sub", "\ud800")])
@example(header=[], claims=[("sub", [])])
@example(header=[], claims=[("exp", float("inf"))])
def test_whatever_a_header_or_a_claim_is_it_is_read_or_refused(
    accepting, small_world, header, claims
):
    """Each is signed by the issuer, and right in all but what is appended."""
    right = jwt.decode(accepting.token(), options={"verify_signature": False})
    first = [("alg", "RS256"), ("kid", accepting.name)]
    token = signed(first + header, written([*right.items(), *claims]), accepting.key)
    answer = ask(token)
    assert answer.status_code in (200, 401), answer.content
    if answer.status_code == 401:
        assert answer.json()["detail"].startswith("This token is not accepted: ")
    if dict(header).get("alg", "RS256") != "RS256" or "\0" in str(dict(claims).get("sub")):
        assert answer.status_code == 401


DEEP = b'{"alg": ' + b"[" * 2000 + b"]" * 2000 + b"}"


@pytest.mark.parametrize(
    "token",
    [".".join([base64url_encode(DEEP).decode(), "e30", "e30"]), "é.e30.e30", "..", "a" * 8000],
)
def test_what_is_no_token_at_all_is_refused(accepting, token):
    assert "the token is not a signed token (JWT)" in refusal(token)
    assert accepting.asked == []


def test_a_deep_nest_in_what_is_signed_is_refused(accepting):
    token = signed([("alg", "RS256"), ("kid", accepting.name)], DEEP, accepting.key)
    assert "the token cannot be read" in refusal(token)


def test_no_key_is_taken_from_a_token(accepting, small_world):
    """Its header may bring a key, or lead to one: only the issuer's own counts."""
    claims = jwt.decode(accepting.token(), options={"verify_signature": False})
    forger = stranger()
    key = {**json.loads(RSAAlgorithm.to_jwk(forger.public_key())), "kid": accepting.name}
    for lure in ({"jwk": key}, {"jku": f"{accepting.url}/mine"}, {"x5u": f"{accepting.url}/mine"}):
        header = [("alg", "RS256"), ("kid", accepting.name), *lure.items()]
        token = signed(header, json.dumps(claims).encode(), forger)
        assert "the signature of the token is not the issuer's" in refusal(token)
    assert "/mine" not in accepting.asked


def test_without_a_name_the_only_key_is_meant(accepting, small_world):
    claims = jwt.decode(accepting.token(), options={"verify_signature": False})
    assert ask(jwt.encode(claims, accepting.key, "RS256")).status_code == 200
    assert "signature" in refusal(jwt.encode(claims, stranger(), "RS256"))


def test_a_new_key_is_looked_for_and_not_too_often(accepting, small_world, monkeypatch):
    assert ask(accepting.token()).status_code == 200
    claims = jwt.decode(accepting.token(), options={"verify_signature": False})
    newer = jwt.encode(claims, stranger(), "RS256", headers={"kid": "newer"})
    now = time.monotonic()
    for later, asked in ((1, 1), (30, 1), (61, 2), (62, 2), (119, 2), (130, 3)):
        monkeypatch.setattr(time, "monotonic", lambda at=now + later: at)
        assert "a key that the issuer does not have" in refusal(newer)
        assert accepting.asked.count("/jwks") == asked, later
    assert ask(accepting.token()).status_code == 200


def test_an_issuer_that_is_away_is_a_503_until_it_is_back(accepting, small_world, monkeypatch):
    accepting.broken.add("/jwks")
    answer = ask(accepting.token())
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "because its issuer is not responding" in answer.json()["detail"]
    # It is not asked again at once, and what it said before goes on counting while it is away.
    assert ask(accepting.token()).status_code == 503
    assert accepting.asked.count("/jwks") == 1
    accepting.broken.clear()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + issuer.SILENCE_PAUSE_SECONDS + 1)
    assert ask(accepting.token()).status_code == 200
    accepting.broken |= {"/jwks", "/.well-known/openid-configuration"}
    monkeypatch.setattr(time, "monotonic", lambda: now + 10 * issuer.KEPT_SECONDS)
    assert ask(accepting.token(exp=int(time.time()) + 60)).status_code == 200


def test_a_key_that_could_not_be_looked_for_is_not_said_to_be_unknown(
    accepting, small_world, monkeypatch
):
    """It may be new. And whoever shows it does not make Sonar ask all the time."""
    assert ask(accepting.token()).status_code == 200
    claims = jwt.decode(accepting.token(), options={"verify_signature": False})
    newer = jwt.encode(claims, stranger(), "RS256", headers={"kid": "newer"})
    accepting.broken.add("/jwks")
    now = time.monotonic()
    for later, asked in ((61, 2), (70, 2), (119, 2), (130, 3)):
        monkeypatch.setattr(time, "monotonic", lambda at=now + later: at)
        assert ask(newer).status_code == 503
        assert ask(accepting.token()).status_code == 200
        assert accepting.asked.count("/jwks") == asked, later


def test_questions_that_meet_an_issuer_which_is_away_are_counted(accepting, settings):
    settings.SONAR_RATE_ANONYMOUS = (2, 3600)
    accepting.broken.add("/jwks")
    found = [ask(accepting.token()).status_code for _ in range(3)]
    assert found == [503, 503, 429]


def test_a_person_whose_account_was_switched_off_reads_by_no_token_either(accepting, small_world):
    user = User.objects.create_user("anna", is_active=False)
    SocialAccount.objects.create(user=user, provider=accepting.url, uid="s-1")
    assert "has been disabled" in refusal(accepting.token(sub="s-1"))
    assert ask(accepting.token(sub="s-2")).status_code == 200


def test_tokens_are_counted_each_for_itself(accepting, small_world, settings):
    settings.SONAR_RATE_ACCOUNT = (2, 3600)
    found = [ask(accepting.token(sub=sub)).status_code for sub in ("a", "a", "b", "a", "b")]
    assert found == [200, 200, 200, 429, 200]


def test_without_an_audience_none_is_taken(accepting, small_world, settings):
    settings.SONAR_OIDC_AUDIENCE = ""
    assert refusal(accepting.token()) == "Send a token as “Authorization: Token ...”."
    assert accepting.asked == []


def test_sonars_own_token_is_no_bearer(accepting):
    assert refusal("sonar_abcdef") == "Send a token as “Authorization: Token ...”."
    assert accepting.asked == []
