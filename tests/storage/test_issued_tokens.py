"""Tokens that Sonar asks for, verified by real servers: audience, path, life, and who is told."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from matrix.answers.status import figures
from sonar import scheduler
from sonar.credentials import cache
from sonar.credentials.sources import client_credentials
from sonar.credentials.sources.base import Right
from sonar.credentials.sources.unverified import lifetime_of
from sonar.models import (
    Credential,
    CredentialState,
    Endpoint,
    Mesh,
    MeshInterval,
    Probe,
    Schedule,
    Site,
    SizeClass,
    Transfer,
)
from sonar.movers.base import End, MoverError, Order, Where
from sonar.movers.fts3 import poll
from sonar.movers.http.exchange import Request
from sonar.movers.http.webdav import WebDav
from sonar.movers.watch import Watch
from sonar.obstacles import credential_states
from sonar.work import credential_checks, probes, transfer_request
from tests.needs import needs, needs_mounts
from tests.small_disks import small_disk
from tests.sonar.world import queued
from tests.storage.conftest import LIMITS, Pair
from tests.storage.fts import FtsServer, fts_server
from tests.storage.issuer import CLIENT_ID, Issuer, secret_in
from tests.storage.scitokens import TokenServer
from tests.storage.xrootd import Authority, make_room
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("real_commits")
SECRET = "Wd4kYq8Zt1Rb6Mx3"
SIZE = 200_000


@dataclass
class Grid:
    """An issuer, two servers that believe it alone, and their endpoints."""

    issuer: Issuer
    source: TokenServer
    destination: TokenServer
    ends: dict[str, Endpoint]


@pytest.fixture(scope="module")
def servers(authority: Authority) -> Iterator[tuple[Issuer, TokenServer, TokenServer]]:
    needs("xrootd", "openssl")
    needs_mounts()
    issuer = Issuer(authority, SECRET).start()
    pair = [TokenServer(make_room(), issuer, base_path).start() for base_path in ("/base", "/")]
    for server in pair:
        server.make_directory("base/sonar")
    yield issuer, pair[0], pair[1]
    for server in pair:
        server.close()
    issuer.stop()


@pytest.fixture
def credentials_dir(settings: Settings, tmp_path: Path, authority: Authority) -> Path:
    settings.SONAR_CREDENTIALS_DIR = tmp_path / "credentials"
    settings.SONAR_TOKEN_CACHE_DIR = tmp_path / "cache"
    settings.SONAR_CA_BUNDLE = str(authority.bundle)
    settings.SONAR_CREDENTIALS_DIR.mkdir()
    figures.forget()
    return tmp_path / "credentials"


@pytest.fixture
def grid(servers: tuple[Issuer, TokenServer, TokenServer], credentials_dir: Path) -> Grid:
    """Two endpoints that a client of the issuer reads and writes, and that lend."""
    issuer, source, destination = servers
    issuer.life, issuer.ahead, issuer.forms[:] = 3600, 0, []
    issuer.changes, issuer.refuses = {}, 0
    secret_in(credentials_dir, "client", SECRET)
    facts = {"kind": "client_credentials", "issuer": issuer.url, "client_id": CLIENT_ID}
    of_source = Credential(name="client", hosts=["localhost"], path_prefix="/base", **facts)
    secret_in(credentials_dir, "other", SECRET)
    of_destination = Credential(name="other", hosts=["localhost"], **facts)
    ends = {
        "A": registered("A", source.url, of_source),
        "B": registered("B", destination.url, of_destination),
    }
    return Grid(issuer, source, destination, ends)


def registered(name: str, url: str, credential: Credential) -> Endpoint:
    credential.full_clean()
    credential.save()
    made = Endpoint(name=name, site=Site.objects.create(name=f"site-{name}"))
    made.base_url, made.credential, made.lend_credential = f"{url}/base", credential, True
    made.full_clean()
    made.save()
    return made


def ordered(source: Endpoint, destination: Endpoint, mode: str = "pull") -> Probe:
    return queued(source, destination, bytes=SIZE, mover="http-tpc", mode=mode)


def result(probe: Probe) -> Transfer:
    probes.run(probe.id)
    return Transfer.objects.get(id=probe.id)


def looks(server: TokenServer, path: str, token: str) -> int:
    """Return 200 where a server lets this token look at a path, or the status of its refusal."""
    end = End(Where.SOURCE, f"{server.url}{path}", f"{server.url}/base", token)
    bundle = str(server.authority.bundle)
    order = Order(end, end, bytes=1, ca_bundle=bundle, limits=LIMITS)
    reply = WebDav().web.ask(Request("HEAD", end), order)
    # That a file is not there is said to who may look.
    return 200 if reply.status == 404 else reply.status


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_tests_run_between_servers_that_verify_each_token(grid: Grid, mode: str):
    done = result(ordered(grid.ends["A"], grid.ends["B"], mode))
    assert (done.state, done.error) == ("done", "")
    scopes = {form["audience"]: set() for form in grid.issuer.forms}
    for form in grid.issuer.forms:
        scopes[form["audience"]].add(form["scope"])
    own, lent = "storage.read:{0} storage.modify:{0}", "storage.{}:{}"
    at_source = {own.format("/sonar")}
    at_destination = {own.format("/base/sonar")}
    if mode == "pull":
        at_source.add(lent.format("read", "/sonar/source"))
    else:
        at_destination.add(lent.format("create", "/base/sonar/incoming"))
    assert scopes == {grid.source.url: at_source, grid.destination.url: at_destination}
    assert not list(grid.destination.data.glob("base/sonar/incoming/*"))


def token_of(end: Endpoint, right: Right) -> str:
    credential = end.credential
    assert credential
    where = Where.SOURCE
    return transfer_request.token_for(end, credential, where, right, 60).token.text


def test_the_server_lets_a_token_no_further_than_its_path_and_audience(grid: Grid):
    own, lent = (token_of(grid.ends["A"], right) for right in (Right.OWN, Right.LENT_TO_READ))
    places = ("/base/sonar/x", "/base/sonar/source/x", "/base/sonar/incoming/x", "/base/x", "/base")
    assert [looks(grid.source, path, own) for path in places] == [200, 200, 200, 403, 403]
    assert [looks(grid.source, path, lent) for path in places] == [403, 200, 403, 403, 403]
    assert looks(grid.destination, "/base/sonar/x", own) == 403
    assert looks(grid.source, "/base/sonar/x", token_of(grid.ends["B"], Right.OWN)) == 403


def test_a_token_that_allows_too_much_reaches_no_server_and_tests_wait(grid: Grid, settings):
    wide = grid.issuer.token("storage.modify:/ storage.read:/", grid.source.url)
    grid.issuer.changes = {"token": {"access_token": wide, "scope": None}}
    probe = ordered(grid.ends["A"], grid.ends["B"])
    probes.run(probe.id)
    probe.refresh_from_db()
    assert probe.state == "waiting"
    assert CredentialState.objects.get().sentence == (
        "the token is not used: storage.read:/sonar storage.modify:/sonar was requested, but the "
        "issuer granted storage.modify:/ storage.read:/"
    )
    assert cache.endings_in(settings.SONAR_TOKEN_CACHE_DIR) == []


def test_a_credential_for_another_audience_or_path_is_refused_by_the_server(grid: Grid):
    for values in ({"audience": "https://elsewhere.example"}, {"path_prefix": ""}):
        Credential.objects.filter(name="client").update(
            **({"audience": "", "path_prefix": "/base"} | values)
        )
        failed = result(ordered(grid.ends["A"], grid.ends["B"]))
        assert (failed.state, failed.error_where) == ("failed", "source")
        assert "403" in failed.error


def test_a_token_that_expires_in_the_queue_of_an_hour_is_renewed(grid: Grid):
    grid.issuer.ahead = -3594  # its hour is over in six seconds, by this clock
    probe = ordered(grid.ends["A"], grid.ends["B"])
    old = transfer_request.order_for(probe)
    asked = len(grid.issuer.forms)
    # Each was issued in a second of its own.
    over = max(lifetime_of(end.token).expires_at for end in (old.source, old.destination))
    assert wait_for(lambda: over < time.time() - 0.1, 30)
    # Not shown to it before: what XRootD has verified it lets in for a minute more.
    for server, end in ((grid.source, old.source), (grid.destination, old.destination)):
        assert looks(server, "/base/sonar/x", end.token) == 403
    grid.issuer.ahead = 0
    assert result(probe).state == "done"
    assert len(grid.issuer.forms) == asked + 3


def test_tests_run_while_no_token_can_be_kept_and_each_is_asked_for_once(
    grid: Grid, settings, tmp_path
):
    with small_disk(tmp_path / "disk") as disk:
        settings.SONAR_TOKEN_CACHE_DIR = disk.path / "cache"
        disk.fill()
        for _ in range(2):
            assert result(ordered(grid.ends["A"], grid.ends["B"])).state == "done"
    assert len(grid.issuer.forms) == 3


def age(directory: Path, left: float) -> None:
    """Let all tokens that are kept have been given an hour ago but for these seconds."""
    now = time.time()
    for file in directory.glob("*"):
        entry = cache.read(file)
        if entry.token:
            aged = replace(entry.token, began_at=now + left - 3600, expires_at=now + left)
            cache.write(file, replace(entry, token=aged))


def planned(moment: datetime) -> int:
    """Plan and run what may; return how many tests were begun."""
    ids = scheduler.claim_due(moment)
    for number in ids:
        probes.run(number)
    return len(ids)


def waiting() -> set[str]:
    return set(Schedule.objects.values_list("skipped_because", flat=True))


def test_an_issuer_that_is_down_for_ten_minutes_costs_no_failed_link(
    grid: Grid, settings, monkeypatch, client
):
    monkeypatch.setattr(cache, "RETRY_SECONDS", 0)
    mesh = Mesh.objects.create(name="all", mover="http-tpc")
    small = SizeClass.objects.get(name="small")
    SizeClass.objects.update(timeout_seconds=600)
    MeshInterval.objects.create(mesh=mesh, size_class=small, every_seconds=120)
    SizeClass.objects.filter(pk=small.pk).update(test_bytes=SIZE)
    now = timezone.now() + timedelta(seconds=600)
    assert planned(now) == 2
    grid.issuer.stop()
    try:
        age(settings.SONAR_TOKEN_CACHE_DIR, left=1000)
        # Tokens that still last are used.
        assert planned(now + timedelta(minutes=3)) == 2
        credential_checks.check(timezone.now(), 20)
        assert set(CredentialState.objects.values_list("role", "holds")) == {
            ("own", False),
            ("lent", False),
        }
        age(settings.SONAR_TOKEN_CACHE_DIR, left=500)
        begun = [planned(now + timedelta(minutes=6 + minute)) for minute in range(10)]
        assert begun[0] == 2  # of these workers find out, and are not asked again
        assert sum(begun) == 2
        assert waiting() == {"credential"}
        figures.forget()
        assert "The credential of A does not work.</strong>" in client.get("/operations/").text
        assert 'endpoint="A",mesh="",role="own",tests="wait"' in client.get("/metrics").text
        order = ordered(grid.ends["A"], grid.ends["B"])
        probes.run(order.id)
        order.refresh_from_db()
        assert order.state == "waiting"
        credential_checks.check(timezone.now(), 20)
        assert CredentialState.objects.filter(holds=True).exists()
    finally:
        grid.issuer.start()
    credential_checks.check(timezone.now(), 20)
    assert not CredentialState.objects.exists()
    # First what was ordered, then what is due of its link.
    for seconds in (0, 10):
        planned(now + timedelta(minutes=17, seconds=seconds))
    assert waiting() == {""}
    assert set(Transfer.objects.values_list("state", flat=True)) == {"done"}
    assert Transfer.objects.count() == 7
    assert not Probe.objects.exists()


# A service


@pytest.fixture
def by_fts(
    grid: Grid, credentials_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[FtsServer, Probe]]:
    """Return an FTS3 server that knows us by a token, and a test that asks it."""
    monkeypatch.setattr(poll, "POLL_SECONDS", 0.1)
    secret_in(credentials_dir, "fts", "fts-knows-us-by-this")
    known_by = Credential.objects.create(name="fts", hosts=["localhost"])
    bundle = str(grid.source.authority.bundle)
    with fts_server(token="fts-knows-us-by-this", bundle=bundle) as fts:
        named = {"service": f"http://localhost:{fts.port}", "service_credential": known_by}
        mesh = Mesh.objects.create(name="by-fts", mover="fts3", **named)
        ends = grid.ends["A"], grid.ends["B"]
        yield fts, queued(*ends, bytes=SIZE, mover="fts3", mesh=mesh)


def test_a_service_looks_at_both_ends_with_the_tokens_that_it_is_lent(
    grid: Grid, by_fts: tuple[FtsServer, Probe]
):
    """With a token that may only create, each test failed: FTS may not look at the destination."""
    _, probe = by_fts
    done = result(probe)
    assert (done.state, done.error, done.verified) == ("done", "", True)
    assert done.profile.mode == ""  # FTS chooses, and does not tell
    scopes = {form["scope"] for form in grid.issuer.forms}
    lent = "storage.read:/base/sonar/incoming storage.modify:/base/sonar/incoming"
    assert scopes == {
        "storage.read:/sonar storage.modify:/sonar",
        "storage.read:/base/sonar storage.modify:/base/sonar",
        "storage.read:/sonar/source",
        lent,
    }


def test_a_token_that_may_only_create_shows_a_service_nothing(
    by_fts: tuple[FtsServer, Probe], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(client_credentials.SCOPES, Right.LENT_TO_SERVICE, ("storage.create",))
    _, probe = by_fts
    failed = result(probe)
    assert failed.error == "FTS: DESTINATION [1] HTTP 403 : Permission refused"
    assert failed.error_where == "destination"


def test_what_a_service_may_be_lent_is_checked_while_one_is_in_use(by_fts: tuple[FtsServer, Probe]):
    def checked() -> set[Right]:
        lent = [use for use in credential_checks.uses() if use.role == credential_states.LENT]
        return {purpose.right for use in lent for purpose in use.purposes()}

    both = {Right.LENT_TO_READ, Right.LENT_TO_WRITE}
    assert checked() == both | {Right.LENT_TO_SERVICE}
    Mesh.objects.update(enabled=False)
    assert checked() == both


# Macaroons


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_macaroons_are_asked_from_each_endpoint_and_lent_narrow(
    guarded: Pair, credentials_dir: Path, mode: str
):
    ends = []
    for server in (guarded.source, guarded.destination):
        server.make_directory("base/sonar")
    for name, server in (("A", guarded.source), ("B", guarded.destination)):
        # XRootD knows who asks by a certificate alone.
        secret_in(credentials_dir, name, server.authority.client_pem.read_text())
        credential = Credential(name=name, hosts=["localhost"], kind="macaroon")
        ends.append(registered(name, server.url, credential))
    done = result(ordered(ends[0], ends[1], mode))
    assert (done.state, done.error) == ("done", "")
    passive = ends[0] if mode == "pull" else ends[1]
    right = Right.LENT_TO_READ if mode == "pull" else Right.LENT_TO_WRITE
    lent, server = (
        token_of(passive, right),
        guarded.source if mode == "pull" else guarded.destination,
    )
    # To upload where it is not for, or with one that only reads.
    end = End(Where.SOURCE, f"{server.url}/base/sonar/source/{SIZE}", f"{server.url}/base", lent)
    order = Order(end, replace(end, url=f"{server.url}/x"), bytes=1)
    with pytest.raises(MoverError, match="403"):
        WebDav().put(replace(order, ca_bundle=str(server.authority.bundle)), Watch())


def test_an_endpoint_that_refuses_a_macaroon_lets_tests_wait_and_one_that_is_down_fails_them(
    guarded: Pair, credentials_dir: Path
):
    secret_in(credentials_dir, "A", "no-token-of-anybody")
    credential = Credential(name="A", hosts=["localhost"], kind="macaroon")
    end = registered("A", guarded.source.url, credential)
    other = Endpoint(name="B", site=Site.objects.create(name="site-B"))
    other.base_url = f"{guarded.destination.url}/base"
    other.save()
    probe = ordered(other, end)
    probes.run(probe.id)
    probe.refresh_from_db()
    assert probe.state == "waiting"
    assert CredentialState.objects.get().sentence == (
        "the endpoint issued a macaroon without DELETE, DOWNLOAD, UPLOAD"
    )
    Probe.objects.all().delete()
    Credential.objects.update(hosts=["127.0.0.1"])
    Endpoint.objects.filter(pk=end.pk).update(base_url="https://127.0.0.1:1/base")
    failed = result(ordered(other, Endpoint.objects.get(pk=end.pk)))
    assert (failed.state, failed.error_where) == ("failed", "destination")
    shutil.rmtree(credentials_dir)
