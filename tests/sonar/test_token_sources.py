"""Where tokens come from: files, an issuer over TLS, macaroons of endpoints, proxy certificates."""

import json
import re
import shutil
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from sonar.credentials import cache, sources
from sonar.credentials.cache import Entry
from sonar.credentials.sources import unverified
from sonar.credentials.sources.base import (
    CredentialError,
    Purpose,
    Right,
    SecretFile,
    StorageToken,
)
from sonar.credentials.sources.client_credentials import audience_of, scope_of
from sonar.credentials.sources.unverified import lifetime_of
from sonar.movers.base import MoverError, Where
from tests.needs import needs
from tests.sonar.world import in_threads
from tests.storage.issuer import CLIENT_ID, Issuer, secret_in, text_of
from tests.storage.serving import AnyMethod, serving
from tests.storage.xrootd import Authority
from tests.waiting import wait_for

SECRET = "Kx9wPq3Lr7Tn2Vb6"
SLACK = 30
"""Seconds that a busy machine may take between two looks at its clock."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    needs("openssl")
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def issuer(authority: Authority) -> Iterator[Issuer]:
    started = Issuer(authority, SECRET).start()
    yield started
    started.stop()


@pytest.fixture
def purpose(issuer: Issuer, tmp_path: Path) -> Purpose:
    return Purpose(
        name="grid",
        kind="client_credentials",
        secret=SecretFile(secret_in(tmp_path, "grid", f"{SECRET}\n")),
        where=Where.SOURCE,
        base_url="davs://se.example:443/atlas/disk",
        right=Right.OWN,
        issuer=issuer.url,
        client_id=CLIENT_ID,
        path_prefix="/atlas",
        ca_bundle=str(issuer.authority.bundle),
    )


def obtained(purpose: Purpose) -> StorageToken:
    return sources.get(purpose.kind).obtain(purpose)


def refusal(purpose: Purpose) -> str:
    with pytest.raises(CredentialError) as caught:
        obtained(purpose)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def expiry(token: str) -> float | None:
    return lifetime_of(token).expires_at


# Files


def test_a_token_in_a_file_is_used_as_it_is_and_says_itself_when_it_ends(purpose, tmp_path, issuer):
    of_file = replace(purpose, kind="file")
    assert obtained(of_file).text == SECRET
    assert obtained(of_file).expires_at is None
    issuer.life = 100
    signed = issuer.token("storage.read:/x", "https://se.example")
    secret_in(tmp_path, "grid", signed)
    assert obtained(of_file).expires_at == pytest.approx(time.time() + 100, abs=SLACK)
    issuer.ahead = -101
    secret_in(tmp_path, "grid", issuer.token("storage.read:/x", "https://se.example"))
    assert refusal(of_file) == "the token has expired"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "No such file or directory"),
        (b" \n", "the secret is empty"),
        (b"\xff\xfe", "the secret is not text"),
    ],
)
def test_a_file_that_holds_no_secret_is_said_without_its_content(
    purpose, tmp_path, content, sentence
):
    (tmp_path / "grid").unlink()
    if content is not None:
        (tmp_path / "grid").write_bytes(content)
    for kind in ("file", "client_credentials", "macaroon", "x509"):
        assert refusal(replace(purpose, kind=kind)) == sentence


@given(st.text(max_size=60) | st.binary(max_size=90).map(text_of))
def test_whatever_a_token_is_its_life_is_read_or_unknown(token: str):
    for text in (token, f"a.{token}.b"):
        for moment in lifetime_of(text):
            assert moment is None or moment > 0


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_whatever_claims_a_token_makes_its_life_is_read_or_unknown(claim: object):
    content = urlsafe_b64encode(json.dumps({"exp": claim, "iat": claim}).encode()).decode()
    assert all(moment is None or moment > 0 for moment in lifetime_of(f"a.{content}.b"))


# An issuer


def test_a_token_is_for_the_origin_the_directory_and_what_is_done_there(purpose, issuer):
    for right, scope in (
        (Right.OWN, "storage.read:/disk/sonar storage.modify:/disk/sonar"),
        (Right.LENT_TO_READ, "storage.read:/disk/sonar/source"),
        (Right.LENT_TO_WRITE, "storage.create:/disk/sonar/incoming"),
        (
            Right.LENT_TO_SERVICE,
            "storage.read:/disk/sonar/incoming storage.modify:/disk/sonar/incoming",
        ),
    ):
        token = obtained(replace(purpose, right=right))
        assert token.text == issuer.tokens[-1]
        assert issuer.forms[-1] == {
            "grant_type": "client_credentials",
            "scope": scope,
            "audience": "https://se.example",
        }
        assert token.left(time.time()) == pytest.approx(3600, abs=SLACK)
    assert SECRET not in str(issuer.forms)


def test_an_audience_that_is_named_counts_and_paths_are_whole_without_a_prefix(purpose, issuer):
    obtained(replace(purpose, audience="https://wlcg.cern.ch/jwt/v1/any", path_prefix=""))
    assert issuer.forms[-1]["audience"] == "https://wlcg.cern.ch/jwt/v1/any"
    assert issuer.forms[-1]["scope"].startswith("storage.read:/atlas/disk/sonar ")


@pytest.mark.parametrize(
    ("base_url", "audience"),
    [
        ("https://SE.example/x", "https://se.example"),
        ("davs://se.example:8443", "https://se.example:8443"),
        ("https://[2001:db8::1]:443/x", "https://[2001:db8::1]"),
        ("http://127.0.0.1:443/x", "http://127.0.0.1:443"),
        ("root://se.example:1094//x", "root://se.example:1094"),
    ],
)
def test_the_audience_is_the_origin_of_the_endpoint(base_url: str, audience: str):
    assert audience_of(base_url) == audience


@pytest.mark.parametrize("prefix", ["/other", "/atlas/di", "/atlas/disk/sonar/x"])
def test_a_prefix_that_is_none_of_the_path_gives_no_token(purpose, prefix: str):
    with pytest.raises(CredentialError, match="does not begin with the “path_prefix”"):
        scope_of(replace(purpose, path_prefix=prefix))


def test_a_path_with_odd_letters_is_one_scope(purpose):
    odd = replace(purpose, base_url="https://se.example/a%20b storage.modify:", path_prefix="")
    assert scope_of(odd).split() == [
        "storage.read:/a%20b%20storage.modify%3A/sonar",
        "storage.modify:/a%20b%20storage.modify%3A/sonar",
    ]


def test_the_earlier_of_two_ends_counts(purpose, issuer):
    issuer.ahead = -3000
    assert obtained(purpose).left(time.time()) == pytest.approx(600, abs=SLACK)
    issuer.ahead, issuer.changes = 0, {"token": {"expires_in": 60}}
    assert obtained(purpose).left(time.time()) == pytest.approx(60, abs=SLACK)
    issuer.changes = {"token": {"access_token": "opaque", "expires_in": None}}
    assert obtained(purpose).left(time.time()) == pytest.approx(300, abs=SLACK)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"discovery": {"token_endpoint": "https://evil.example/token"}}, "on another host"),
        ({"discovery": {"token_endpoint": "http://localhost/token"}}, "on another host"),
        ({"discovery": {"token_endpoint": ""}}, "does not name its token endpoint: 200"),
        ({"discovery": {"token_endpoint": 5}}, "does not name its token endpoint: 200"),
        ({"discovery": {"issuer": "https://evil.example"}}, "identifies itself with a different"),
        ({"token": {"access_token": ""}}, "did not issue a token: 200"),
        ({"token": {"access_token": "a\nb"}}, "something that is not a token"),
        ({"token": {"scope": "storage.read:/disk/sonar"}}, "does not grant storage.modify:/disk"),
        ({"token": {"scope": "storage.read:/disk/sonar storage.modify:/disk/sonar storage.read:/"}},
         "but the issuer granted storage.read:/"),
    ],
)  # fmt: skip
def test_an_issuer_that_says_something_else_gives_no_token(purpose, issuer, changes, sentence):
    issuer.changes = changes
    assert sentence in refusal(purpose)
    if "discovery" in changes:
        assert issuer.forms == []


def test_other_scopes_of_the_client_do_no_harm(purpose, issuer):
    scope = f"{scope_of(purpose)} openid wlcg"
    issuer.changes = {"token": {"scope": scope}}
    assert obtained(purpose).text == issuer.tokens[-1]


LENT = "storage.read:/disk/sonar/source"


@pytest.fixture
def lent(purpose: Purpose) -> Purpose:
    return replace(purpose, right=Right.LENT_TO_READ)


def gives(issuer: Issuer, scope: object, **claims: object) -> str:
    """Let an issuer give a token with this scope and say nothing of it beside."""
    token = issuer.token(scope, "https://se.example", **claims)
    issuer.changes = {"token": {"access_token": token, "scope": None}}
    return token


@pytest.mark.parametrize(
    ("scope", "given"),
    [
        ("storage.modify:/", "storage.modify:/"),
        (f"{LENT} storage.modify:/disk/sonar/source", "storage.modify:/disk/sonar/source"),
        ([LENT, "storage.create:/disk/sonar/source"], "storage.create:/disk/sonar/source"),
        ([f"{LENT} storage.stage:/disk/sonar/source"], "storage.stage:/disk/sonar/source"),
        ("storage.read:/disk/sonar", "storage.read:/disk/sonar"),
        ("storage.read:/disk/sonar/sources", "storage.read:/disk/sonar/sources"),
        ("storage.read:/", "storage.read:/"),
        ("storage.read://", "storage.read://"),
        ("storage.read", "storage.read"),
        ("storage.read:", "storage.read:"),
        (f"{LENT}/..", f"{LENT}/.."),
        (f"{LENT}/%2e%2e/%2E.", f"{LENT}/%2e%2e/%2E."),
        (f"{LENT}/../source", f"{LENT}/../source"),
        (f"{LENT} read:/", "read:/"),
        (f"{LENT} write:/disk/sonar/source", "write:/disk/sonar/source"),
        (f"{LENT} read", "read"),
        (f"{LENT} storage.anything:/x", "storage.anything:/x"),
    ],
)
def test_a_token_that_allows_more_than_was_asked_for_is_not_used_whatever_is_said_of_it(
    lent, issuer, scope, given
):
    token = gives(issuer, scope)
    sentence = f"the token is not used: {LENT} was requested, but the issuer granted {{}}"
    assert refusal(lent) == sentence.format(given)
    for said in (LENT, "openid"):
        issuer.changes["token"]["scope"] = said
        assert token not in refusal(lent)
    issuer.changes["token"] |= {"access_token": "opaque", "scope": f"{LENT} storage.modify:/"}
    assert refusal(lent) == sentence.format("storage.modify:/")


@pytest.mark.parametrize(
    "scope",
    [
        LENT, [LENT], f"{LENT}/", "storage.read:/disk//sonar/source", f"{LENT} openid wlcg",
        "storage.read:/disk/s%6fnar/source", f"{LENT}/20", "read:/disk/sonar/source", None,
    ],
)  # fmt: skip
def test_a_token_that_allows_what_was_asked_for_or_less_is_used(lent, issuer, scope):
    assert obtained(lent).text == issuer.tokens[-1]
    token = gives(issuer, scope)
    assert obtained(lent).text == token


def test_what_changes_files_may_make_them_too(purpose, issuer):
    asked = scope_of(purpose)
    for more in ("storage.create:/disk/sonar", "write:/disk/sonar/incoming"):
        token = gives(issuer, f"{asked} {more}")
        assert obtained(purpose).text == token
    gives(issuer, "storage.read:/disk/sonar storage.create:/disk/sonar")
    assert refusal(purpose) == "the issuer does not grant storage.modify:/disk/sonar"


@pytest.mark.parametrize("claim", ["scope", "scp"])
@pytest.mark.parametrize("value", [5, {"storage.read": "/"}, [LENT, 5]])
def test_scopes_that_cannot_be_read_are_not_used(lent, issuer, claim, value):
    gives(issuer, **{"scope": LENT, claim: value})
    assert refusal(lent) == f"the token is not used, because its claim {claim} cannot be read"


def test_both_names_of_the_claim_count(lent, issuer):
    gives(issuer, LENT, scp=["storage.modify:/"])
    assert "but the issuer granted storage.modify:/" in refusal(lent)


def test_rights_of_groups_are_not_used(lent, issuer):
    gives(issuer, LENT, **{"wlcg.groups": ["/atlas", "/atlas/production"]})
    assert refusal(lent) == (
        f"the token is not used: {LENT} was requested, but the issuer granted the rights of "
        "/atlas /atlas/production"
    )
    token = gives(issuer, LENT, **{"wlcg.groups": []})
    assert obtained(lent).text == token


def test_a_token_for_a_service_allows_nothing_at_storage(purpose, issuer):
    service = replace(purpose, right=Right.SERVICE, scope="fts wlcg.groups")
    groups = {"wlcg.groups": ["/atlas"]}
    token = gives(issuer, "fts wlcg.groups", **groups)
    assert obtained(service).text == token
    gives(issuer, "fts wlcg.groups storage.read:/", **groups)
    assert "but the issuer granted storage.read:/" in refusal(service)
    gives(issuer, "openid")
    assert refusal(service) == "the issuer does not grant fts wlcg.groups"


ANYBODY = "https://wlcg.cern.ch/jwt/v1/any"


@pytest.mark.parametrize(
    ("audience", "given"),
    [
        (ANYBODY, ANYBODY),
        (["https://se.example", ANYBODY], ANYBODY),
        (["https://se.example", "https://other.example"], "https://other.example"),
        ("https://se.example:8443", "https://se.example:8443"),
        ("http://se.example", "http://se.example"),
        (None, "anybody"),
        ([], "anybody"),
        (5, "anybody"),
        ([5], "anybody"),
    ],
)
def test_a_token_for_others_than_it_was_asked_for_is_not_used(lent, issuer, audience, given):
    gives(issuer, LENT, aud=audience)
    asked = "the token is not used: it was requested for https://se.example, but is for "
    assert refusal(lent) == f"{asked}{given}"


@pytest.mark.parametrize(
    "audience",
    ["https://se.example", ["https://se.example"], "https://se.example/", "https://SE.example:443"],
)
def test_an_audience_is_the_same_however_it_is_written(lent, issuer, audience):
    token = gives(issuer, LENT, aud=audience)
    assert obtained(lent).text == token


def test_a_credential_that_asks_for_tokens_for_anybody_gets_them(lent, issuer):
    for audience in (ANYBODY, ["https://a.example", "https://b.example"], None):
        token = gives(issuer, LENT, aud=audience)
        assert obtained(replace(lent, audience=ANYBODY)).text == token


def test_a_token_that_cannot_be_read_allows_what_its_issuer_says(lent, issuer):
    for text in ("opaque", "a.b.c", "eyJhbGciOiJkaXIifQ..x.y.z"):
        for scope in (None, LENT):
            issuer.changes = {"token": {"access_token": text, "scope": scope}}
            assert obtained(lent).text == text
    for text in ("x" * 16_385, issuer.token(" ".join([LENT] * 999), "https://se.example")):
        issuer.changes = {"token": {"access_token": text, "scope": None}}
        assert refusal(lent) == "the issuer sent something that is not a token"


def test_no_part_of_a_token_or_secret_is_in_a_refusal(lent, issuer):
    token = gives(issuer, LENT)
    issuer.changes["token"]["scope"] = f"storage.modify:/{token}"
    assert token[:40] not in refusal(lent)
    assert len(refusal(lent)) < 400


def test_an_issuer_that_refuses_is_quoted_by_its_code_alone(purpose, issuer, tmp_path):
    issuer.refuses = 400
    assert refusal(purpose) == "the issuer did not issue a token: 400 invalid_scope"
    secret_in(tmp_path, "grid", "wrong-secret")
    assert refusal(purpose) == "the issuer did not issue a token: 401 invalid_client"


def test_an_issuer_that_is_away_or_not_trusted_is_said(purpose, issuer):
    assert "the issuer is not responding: " in refusal(replace(purpose, ca_bundle=""))
    issuer.stop()
    assert "the issuer is not responding: " in refusal(purpose)


# Macaroons


def macaroon(*caveats: str, third_party: str = "") -> str:
    """Return a macaroon in format 1, as dCache and XRootD write it."""
    packets = [("location", b"se"), ("identifier", b"x"), *(("cid", c.encode()) for c in caveats)]
    if third_party:
        packets += [("cid", third_party.encode()), ("vid", b"v" * 40), ("cl", b"https://other")]
    packets.append(("signature", bytes(range(32))))
    content = b""
    for name, value in packets:
        packet = name.encode() + b" " + value + b"\n"
        content += b"%04x" % (len(packet) + 4) + packet
    return text_of(content)


def macaroon_2(*caveats: str, third_party: str = "") -> str:
    """Return a macaroon in the binary format 2."""

    def field(kind: int, value: bytes) -> bytes:
        low, high = len(value) & 0x7F, len(value) >> 7
        return bytes([kind, low | 0x80, high] if high else [kind, low]) + value

    content = b"\x02" + field(1, b"se") + field(2, b"x") + b"\0"
    for caveat in caveats:
        content += field(2, caveat.encode()) + b"\0"
    if third_party:
        content += field(1, b"https://other") + field(2, third_party.encode())
        content += field(4, b"v" * 40) + b"\0"
    return text_of(content + b"\0" + field(6, bytes(range(32))))


class Dcache(AnyMethod):
    """Answers as dCache does, or with ``status``, or a macaroon with other ``caveats``."""

    status = 200
    leads_to = ""
    caveats: tuple[str, ...] = ()
    more: dict[str, object] = {}
    write = staticmethod(macaroon)
    given = ""
    heard: list[tuple[str, dict[str, Any], str]] = []

    def serve(self) -> None:
        asked = json.loads(self.body())
        assert self.headers["Content-Type"] == "application/macaroon-request"
        self.heard.append((self.path, asked, str(self.headers["Authorization"])))
        url = f"https://se.example{self.path}"
        usual = ("iid:x", "id:1;2;sonar", ENDS, f"path:{self.path}", *asked["caveats"])
        given = Dcache.given = Dcache.write(*(self.caveats or usual))
        target = {"targetWithMacaroon": f"{url}?authz={given}", "target": url}
        content = json.dumps({"macaroon": given, "uri": target} | self.more).encode()
        self.answer(self.status, {"Location": self.leads_to} if self.leads_to else {}, content)


ENDS_AT = datetime(2100, 1, 1, 12, tzinfo=UTC)
ENDS = "before:2100-01-01T12:00:00.123Z"


@pytest.fixture
def dcache() -> Iterator[ThreadingHTTPServer]:
    Dcache.status, Dcache.leads_to, Dcache.heard = 200, "", []
    Dcache.caveats, Dcache.more, Dcache.write = (), {}, macaroon
    with serving(Dcache) as server:
        yield server


@pytest.fixture
def macaroons(purpose: Purpose, dcache: ThreadingHTTPServer) -> Purpose:
    base_url = f"http://127.0.0.1:{dcache.server_address[1]}/atlas/disk"
    return replace(purpose, kind="macaroon", base_url=base_url)


def test_a_macaroon_is_asked_from_its_directory_for_what_is_done_there(macaroons):
    for right, path, activities in (
        (Right.OWN, "/atlas/disk/sonar", "DOWNLOAD,UPLOAD,DELETE,MANAGE,LIST"),
        (Right.LENT_TO_READ, "/atlas/disk/sonar/source", "DOWNLOAD,LIST"),
        (Right.LENT_TO_WRITE, "/atlas/disk/sonar/incoming", "UPLOAD,LIST"),
        (
            Right.LENT_TO_SERVICE,
            "/atlas/disk/sonar/incoming",
            "DOWNLOAD,UPLOAD,DELETE,LIST",
        ),
    ):
        token = obtained(replace(macaroons, right=right))
        assert token.text == Dcache.given
        body = {"caveats": [f"activity:{activities}"], "validity": "PT3600S"}
        assert Dcache.heard[-1] == (path, body, f"Bearer {SECRET}")
        # dCache does not say how long it counts: it was asked for an hour.
        assert token.left(time.time()) == pytest.approx(3600, abs=SLACK)


# JSON's own whole numbers end at 64 bits: longer ones are read as these.
@pytest.mark.parametrize("seconds", [1.7e308, 1e11, -1e308, 2**64 - 1, 0, -5, True, "60", [60]])
def test_a_life_that_cannot_be_is_not_believed(macaroons, issuer, purpose, seconds: object):
    """When a token ends is a time for people, too, and there is none for some."""
    Dcache.more = {"expires_in": seconds}
    assert obtained(macaroons).left(time.time()) == pytest.approx(3600, abs=SLACK)
    issuer.changes = {"token": {"access_token": "opaque", "expires_in": seconds}}
    assert obtained(purpose).left(time.time()) == pytest.approx(300, abs=SLACK)


def test_a_macaroon_ends_with_the_first_of_its_caveats(macaroons):
    both = (ENDS, "before:2101-01-01T12:00:00Z")
    for write in (macaroon, macaroon_2):
        for text in (write(*both), write(*reversed(both)), write(*both) + "=="):
            assert expiry(text) == ENDS_AT.timestamp()
        # Of who else is asked first nobody knows when that ends.
        assert expiry(write(third_party=ENDS)) is None
    soon = datetime.now(UTC) + timedelta(seconds=600)
    path = "path:/atlas/disk/sonar/source"
    Dcache.caveats = (f"before:{soon:%Y-%m-%dT%H:%M:%SZ}", path, "activity:DOWNLOAD,LIST")
    token = obtained(replace(macaroons, right=Right.LENT_TO_READ))
    assert token.left(time.time()) == pytest.approx(600, abs=SLACK)


def test_a_macaroon_without_the_rights_that_are_needed_is_not_used(macaroons):
    path = "path:/atlas/disk/sonar"
    Dcache.caveats = (path, "activity:READ_METADATA", "activity:DOWNLOAD,UPLOAD,DELETE")
    assert refusal(macaroons) == "the endpoint issued a macaroon without DELETE, DOWNLOAD, UPLOAD"
    Dcache.caveats = (f"{path}/source", "activity:DOWNLOAD,LIST", "activity:DOWNLOAD,UPLOAD")
    assert obtained(replace(macaroons, right=Right.LENT_TO_READ)).text == Dcache.given
    Dcache.caveats = (f"{path}/incoming", "activity:DOWNLOAD,LIST", "activity:DOWNLOAD,UPLOAD")
    narrow = replace(macaroons, right=Right.LENT_TO_WRITE)
    Dcache.caveats = (f"{path}/incoming", "activity:UPLOAD,LIST", "activity:LIST")
    assert refusal(narrow).endswith("without UPLOAD")


LENT_PATH, LENT_ACTIVITY = "path:/atlas/disk/sonar/source", "activity:DOWNLOAD,LIST"


@pytest.mark.parametrize("write", [macaroon, macaroon_2])
@pytest.mark.parametrize(
    ("caveats", "given"),
    [
        ((LENT_PATH,), "every activity"),
        ((LENT_ACTIVITY,), "every path"),
        ((ENDS,), "every activity below every path"),
        ((LENT_PATH, "activity:DOWNLOAD,LIST,DELETE"), "DELETE"),
        ((LENT_PATH, "activity:DOWNLOAD, DELETE"), "DELETE"),
        ((LENT_PATH, "activity:DOWNLOAD,SOMETHING_NEW"), "SOMETHING_NEW"),
        ((LENT_PATH, "activity:DOWNLOAD,UPLOAD", "activity:DOWNLOAD,UPLOAD,LIST"), "UPLOAD"),
        (("path:/atlas/disk/sonar", LENT_ACTIVITY), "below /atlas/disk/sonar"),
        (("path:/", LENT_ACTIVITY), "below /"),
        (("path:/atlas/disk/sonar/sources", LENT_ACTIVITY), "below /atlas/disk/sonar/sources"),
        ((f"{LENT_PATH}/..", LENT_ACTIVITY), "below /atlas/disk/sonar/source/.."),
        ((f"{LENT_PATH}/%2e%2E/x", LENT_ACTIVITY), "below /atlas/disk/sonar/source/%2e%2E/x"),
        (("path:", LENT_ACTIVITY), "below /"),
        (("Path:/atlas/disk/sonar/source", LENT_ACTIVITY), "every path"),
    ],
)  # fmt: skip
def test_a_macaroon_that_allows_more_than_was_asked_for_is_not_used(
    macaroons, caveats, given, write
):
    Dcache.caveats, Dcache.write = caveats, write
    sentence = refusal(replace(macaroons, right=Right.LENT_TO_READ))
    assert sentence.startswith(
        "the macaroon is not used: DOWNLOAD,LIST below /atlas/disk/sonar/source was requested, but "
        "the endpoint granted: "
    )
    assert given in sentence
    assert Dcache.given not in sentence


def test_what_somebody_else_must_confirm_first_is_no_limit_that_can_be_read(macaroons):
    for write in (macaroon, macaroon_2):
        Dcache.write = lambda *caveats, write=write: write(*caveats, third_party=LENT_ACTIVITY)
        Dcache.caveats = (LENT_PATH,)
        assert "every activity" in refusal(replace(macaroons, right=Right.LENT_TO_READ))


@pytest.mark.parametrize(
    "path",
    ["/atlas/disk/sonar/source/", "//atlas//disk/sonar/source", "/atlas/d%69sk/sonar/source/x"],
)
def test_a_macaroon_for_the_same_path_or_less_is_used_however_it_is_written(macaroons, path: str):
    Dcache.caveats = (f"path:{path}", "path:/atlas", "activity:DOWNLOAD,READ_METADATA")
    assert obtained(replace(macaroons, right=Right.LENT_TO_READ)).text == Dcache.given


@pytest.mark.parametrize(
    "text",
    ["opaque", "a.b.c", macaroon(LENT_PATH)[:-8], macaroon(LENT_PATH)[8:], macaroon_2("x")[:-4],
     text_of(b"\x02" + b"\xff" * 40), text_of(b"\x02\x02\x7fx"), text_of(b"0004" * 9),
     text_of(b"-001location x\n"), "MDAx" * 5000,
     text_of(b"000flocation x\n0011identifier x\nffffsignature x\n")],
)  # fmt: skip
def test_what_no_macaroon_can_be_read_in_is_not_used(macaroons, text: str):
    Dcache.write = lambda *_: text
    assert refusal(macaroons) in {
        "the endpoint did not issue a readable macaroon, so its rights are unknown",
        "the endpoint did not issue a macaroon: 200",
    }


@given(st.binary(max_size=90) | st.binary(max_size=60).map(lambda rest: b"\x02" + rest))
def test_whatever_bytes_a_macaroon_has_its_caveats_are_read_or_unknown(content: bytes):
    assert unverified.caveats_of(text_of(content)) is None or content


@given(st.lists(st.text(max_size=200), max_size=4))
def test_caveats_are_read_as_they_were_written(caveats: list[str]):
    for write in (macaroon, macaroon_2):
        assert unverified.caveats_of(write(*caveats)) == caveats


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405])
def test_an_endpoint_that_gives_no_macaroon_is_a_matter_of_the_credential(macaroons, status: int):
    Dcache.status = status
    assert refusal(macaroons) == f"the endpoint did not issue a macaroon: {status}"


@pytest.mark.parametrize("status", [500, 503, 0])
def test_an_endpoint_that_is_in_trouble_is_a_failure_of_its_own(macaroons, dcache, status: int):
    Dcache.status = status
    if not status:
        dcache.socket.close()
    with pytest.raises(MoverError) as caught:
        obtained(macaroons)
    assert caught.value.where is Where.SOURCE
    assert SECRET not in str(caught.value)


def test_no_secret_follows_a_redirect(macaroons, purpose, issuer, dcache):
    """Neither to another host nor to another port of the same."""
    heard: list[tuple[str, str | None]] = []

    class Stranger(AnyMethod):
        def serve(self) -> None:
            heard.append((self.body().decode(), self.headers["Authorization"]))
            self.answer(403)

    with serving(Stranger) as server:
        port = server.server_port
        Dcache.status = 307
        Dcache.leads_to = f"http://localhost:{port}/"
        with pytest.raises(MoverError, match="not one of its declared data hosts"):
            obtained(macaroons)
        Dcache.leads_to = f"http://127.0.0.1:{port}/atlas/disk/sonar"
        assert refusal(macaroons) == "the endpoint did not issue a macaroon: 403"
        for leads_to in (f"https://127.0.0.1:{port}/", f"http://localhost:{port}/"):
            issuer.leads_to = leads_to
            assert "not followed" in refusal(purpose)
    ((body, shown),) = heard
    assert shown is None
    assert SECRET not in body


# Proxy certificates


def certificate(days: float) -> bytes:
    """Return a certificate that ends in so many days, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "proxy")])
    now = datetime.now(UTC)
    begun = now - timedelta(days=20)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    built = built.public_key(key.public_key()).serial_number(1)
    built = built.not_valid_before(begun).not_valid_after(now + timedelta(days=days))
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return built.sign(key, hashes.SHA256()).public_bytes(pem) + key.private_bytes(pem, *form)


def test_a_proxy_is_given_by_its_path_and_ends_with_the_first_of_its_certificates(
    purpose, tmp_path
):
    proxy = replace(purpose, kind="x509")
    secret_in(tmp_path, "grid", (certificate(2) + certificate(1)).decode())
    token = obtained(proxy)
    assert token.text == str(tmp_path / "grid")
    assert token.left(time.time()) == pytest.approx(86_400, abs=SLACK)
    secret_in(tmp_path, "grid", (certificate(2) + certificate(-1)).decode())
    assert refusal(proxy) == "the proxy certificate has expired"


def test_a_proxy_that_programs_would_refuse_is_said(purpose, tmp_path):
    proxy = replace(purpose, kind="x509")
    both = certificate(2).decode()
    for text, sentence in (
        ("a token", "the secret contains no private key"),
        (both.partition("-----BEGIN PRIVATE")[0], "the secret contains no private key"),
        ("-----BEGIN PRIVATE KEY-----", "the secret contains no certificate"),
    ):
        secret_in(tmp_path, "grid", text)
        assert refusal(proxy) == sentence
    secret_in(tmp_path, "grid", both).chmod(0o640)
    assert "its mode must be 0600" in refusal(proxy)


# The cache


@pytest.fixture
def kept_in(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def usable(purpose: Purpose, directory: Path, needed: float = 60) -> str:
    return cache.obtain(purpose, directory, needed).token.text


def age(purpose: Purpose, directory: Path, **moments: float) -> None:
    """Let what is kept be older: moments of its token, from now."""
    file = directory / cache.name_of(purpose)
    entry = cache.read(file)
    assert entry.token
    since = {name: time.time() + seconds for name, seconds in moments.items()}
    cache.write(file, replace(entry, token=replace(entry.token, **since)))


def test_a_token_is_kept_in_a_file_of_its_own_that_nobody_else_may_read(purpose, issuer, kept_in):
    first = usable(purpose, kept_in)
    assert usable(purpose, kept_in) == first
    assert usable(replace(purpose, where=Where.DESTINATION), kept_in) == first
    for other in (
        replace(purpose, right=Right.LENT_TO_READ),
        replace(purpose, base_url="https://other.example/atlas/disk"),
        replace(purpose, audience="x"),
        replace(purpose, name="other"),
    ):
        assert usable(other, kept_in) != first
    assert len(issuer.tokens) == 5
    assert kept_in.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in kept_in.iterdir()} == {0o600}
    assert not [file for file in kept_in.iterdir() if file.name.startswith(".")]


def test_a_directory_that_is_open_to_others_is_not_used(purpose, issuer, kept_in):
    kept_in.mkdir(mode=0o755)
    with pytest.raises(CredentialError, match="its mode must be 0700"):
        usable(purpose, kept_in)
    assert issuer.forms == []


def test_a_token_is_renewed_at_two_thirds_of_its_life_or_when_a_test_may_take_longer(
    purpose, issuer, kept_in
):
    first = usable(purpose, kept_in)
    age(purpose, kept_in, began_at=-2300, expires_at=1300)
    assert usable(purpose, kept_in) == first
    second = usable(purpose, kept_in, needed=1400)
    assert second != first
    age(purpose, kept_in, began_at=-2500, expires_at=1100)
    assert usable(purpose, kept_in) not in {first, second}


def test_a_token_that_lives_shorter_than_a_test_is_not_asked_for_by_each(purpose, issuer, kept_in):
    issuer.life = 1200
    assert {usable(purpose, kept_in, needed=7260) for _ in range(5)} == {issuer.tokens[0]}
    age(purpose, kept_in, began_at=-100, expires_at=1100)
    assert usable(purpose, kept_in, needed=7260) == issuer.tokens[1]


def test_while_the_issuer_is_down_the_old_token_is_used_as_long_as_it_lasts(
    purpose, issuer, kept_in, monkeypatch
):
    first = usable(purpose, kept_in)
    age(purpose, kept_in, began_at=-2500, expires_at=1100)
    issuer.stop()
    got = cache.obtain(purpose, kept_in, 660)
    assert (got.token.text, "is not responding" in got.trouble) == (first, True)
    age(purpose, kept_in, began_at=-3000, expires_at=600)
    with pytest.raises(CredentialError, match="is not responding"):
        usable(purpose, kept_in, needed=660)
    issuer.start()
    # Nobody asks again so soon.
    with pytest.raises(CredentialError, match="is not responding"):
        usable(purpose, kept_in, needed=660)
    monkeypatch.setattr(cache, "RETRY_SECONDS", 0)
    assert usable(purpose, kept_in, needed=660) == issuer.tokens[-1] != first
    assert cache.obtain(purpose, kept_in, 660).trouble == ""


def test_an_endpoint_that_is_down_costs_no_macaroon_that_still_counts(macaroons, dcache, kept_in):
    assert usable(macaroons, kept_in) == Dcache.given
    age(macaroons, kept_in, began_at=-2500, expires_at=1100)
    Dcache.status = 503
    assert cache.obtain(macaroons, kept_in, 7260).trouble == ""
    age(macaroons, kept_in, began_at=-3100, expires_at=500)
    with pytest.raises(MoverError, match="answered with 503"):
        usable(macaroons, kept_in, needed=7260)


def test_one_of_many_renews_a_token_and_the_others_take_it(purpose, issuer, kept_in):
    issuer.pause = threading.Event()
    tokens: list[str] = []
    threading.Thread(
        target=lambda: wait_for(lambda: issuer.forms, 120) and issuer.pause.set()
    ).start()
    in_threads(8, lambda: tokens.append(usable(purpose, kept_in)))
    assert len(issuer.forms) == 1
    assert tokens == issuer.tokens * 8


def test_who_has_a_token_that_lasts_waits_for_nobody_who_renews_it(purpose, issuer, kept_in):
    first = usable(purpose, kept_in)
    age(purpose, kept_in, began_at=-2500, expires_at=1100)
    issuer.pause = threading.Event()
    renewing = threading.Thread(target=usable, args=(purpose, kept_in))
    renewing.start()
    assert wait_for(lambda: len(issuer.forms) == 2, 120, 0.01)
    assert usable(purpose, kept_in) == first
    issuer.pause.set()
    renewing.join()
    assert usable(purpose, kept_in) == issuer.tokens[1]


def test_what_is_no_entry_is_read_as_nothing(purpose, issuer, kept_in):
    usable(purpose, kept_in)
    file = kept_in / cache.name_of(purpose)
    for content in ("", "[]", '{"token": {"text": 1}}', '{"token": 5}', "\x00"):
        file.write_text(content)
        assert cache.read(file) == Entry()
        assert usable(purpose, kept_in) == issuer.tokens[-1]


def test_expired_tokens_are_forgotten_and_locks_are_not(purpose, kept_in):
    usable(purpose, kept_in)
    cache.forget(kept_in)
    assert len(cache.endings_in(kept_in)) == 1
    age(purpose, kept_in, began_at=-100, expires_at=-1)
    cache.forget(kept_in)
    assert [file.name for file in kept_in.iterdir()] == [f"{cache.name_of(purpose)}.lock"]
    shutil.rmtree(kept_in)
    assert cache.endings_in(kept_in) == []


def test_no_token_shows_in_what_is_printed_of_values(purpose, kept_in):
    token = usable(purpose, kept_in)
    shown = repr([cache.obtain(purpose, kept_in, 60), purpose, StorageToken(token, 0)])
    assert token not in shown
    assert not re.search(SECRET, shown)


def test_a_token_that_has_expired_when_it_comes_is_said(purpose, issuer, kept_in):
    issuer.ahead = -3700
    with pytest.raises(CredentialError, match="has already expired: compare the clocks"):
        usable(purpose, kept_in)
