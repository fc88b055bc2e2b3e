"""X.509 proxies: shown by a program to the two servers that want the same one, and to nobody."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from sonar.models import Credential
from sonar.movers import loading
from sonar.movers.base import End, MoverError, Order, Where
from sonar.movers.catalogue import kept
from sonar.movers.content import adler32
from sonar.movers.measure import Outcome, measure
from sonar.movers.programs import tool
from sonar.movers.programs.tool import Command
from sonar.movers.watch import Watch
from sonar.work import transfer_request
from tests.needs import needs
from tests.programs.gsi import PERSON, GridAuthority, GsiServer
from tests.programs.ways import write_source
from tests.sonar.world import endpoint, queued
from tests.storage.conftest import LIMITS

SIZE_BYTES = 100_000


class Guarded(NamedTuple):
    """Two servers that ask for a proxy, and who makes proxies for them."""

    authority: GridAuthority
    source: GsiServer
    destination: GsiServer

    def order(self, source: Path | str, destination: Path | str, mover: str = "xrootd") -> Order:
        ends = []
        for where, server, proxy in (
            (Where.SOURCE, self.source, source),
            (Where.DESTINATION, self.destination, destination),
        ):
            server.make_directory(f"base-{mover}")
            base = f"root://localhost:{server.port}/base-{mover}"
            name = f"source/{SIZE_BYTES}" if where == Where.SOURCE else "incoming/1"
            ends.append(End(where, f"{base}/{name}", base, proxy=str(proxy)))
        write_source(self.source, f"base-{mover}", SIZE_BYTES)
        return Order(
            *ends,
            bytes=SIZE_BYTES,
            adler32=adler32(SIZE_BYTES),
            ca_bundle=str(self.authority.directory),
            limits=LIMITS,
        )

    def logins(self) -> list[int]:
        """Return how often each server has seen who we are."""
        line = f"login as /O=Sonar tests/CN={PERSON}"
        return [server.log.count(line) for server in (self.source, self.destination)]

    def left_behind(self) -> list[Path]:
        return [path for path in self.destination.data.rglob("incoming/*") if path.is_file()]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    needs("xrootd", "xrdcp", "gfal-copy", "openssl")
    authority = GridAuthority()
    servers = [GsiServer(authority) for _ in range(2)]
    try:
        yield Guarded(authority, *(server.start() for server in servers))
    finally:
        for server in servers:
            server.close()
        shutil.rmtree(authority.room)


@pytest.fixture(scope="module")
def proxy(guarded: Guarded) -> Path:
    return guarded.authority.proxy("1")


def carried_out(order: Order, mover: str = "xrootd") -> Outcome:
    return measure(loading.load(kept(mover)), order, Watch())


def failure(order: Order) -> MoverError:
    error = carried_out(order).error
    assert error
    return error


def assert_that_it_goes_well(guarded: Guarded, order: Order, mover: str) -> None:
    """Hold that a file arrives and is gone, and that both servers see who it is."""
    before = guarded.logins()
    outcome = carried_out(order, mover)
    assert outcome.error is None
    assert (outcome.receipt and outcome.receipt.bytes, outcome.leftover) == (SIZE_BYTES, None)
    assert outcome.verified
    assert guarded.left_behind() == []
    assert all(now > then for now, then in zip(guarded.logins(), before, strict=True))


@pytest.mark.long
def test_both_servers_are_shown_the_proxy_and_see_who_it_is(guarded: Guarded, proxy: Path):
    """By gfal2; each question costs a third of a second, so xrootd is looked at below."""
    assert_that_it_goes_well(guarded, guarded.order(proxy, proxy, "gfal2"), "gfal2")


def test_without_a_proxy_none_is_shown_whatever_this_process_has(
    guarded: Guarded, proxy: Path, monkeypatch
):
    monkeypatch.setenv("X509_USER_PROXY", str(proxy))
    error = failure(guarded.order("", ""))
    assert (error.where, error.permanent) == (Where.SOURCE, True)
    assert "Auth failed" in str(error)


def test_a_proxy_that_has_expired_is_a_lasting_failure_of_the_first_end_that_says_so(
    guarded: Guarded,
):
    expired = guarded.authority.proxy("expired", days=-1)
    error = failure(guarded.order(expired, expired))
    assert (error.where, error.permanent) == (Where.SOURCE, True)
    assert str(expired) not in str(error)


def test_ends_with_different_proxies_are_refused_before_anything_is_copied(
    guarded: Guarded, proxy: Path
):
    order = guarded.order(proxy, guarded.authority.proxy("2"), "different")
    error = failure(order)
    assert (error.where, error.permanent) == (Where.CONTROL, True)
    assert "the endpoints have different X.509 proxies" in str(error)
    assert "both endpoints need the same credential" in str(error)
    assert not any((guarded.destination.data / "base-different").iterdir())


ORDER = Order(
    End(Where.SOURCE, "root://a.example/base/f", "root://a.example/base"),
    End(Where.DESTINATION, "root://b.example/base/f", "root://b.example/base"),
    bytes=1,
)
ENVIRONMENT = Command(("env",))


@pytest.mark.parametrize(
    ("source", "destination", "why"),
    [
        (
            "/a.proxy",
            "",
            "the destination has no X.509 proxy and would be sent the X.509 proxy of the other "
            "endpoint",
        ),
        (
            "",
            "/b.proxy",
            "the source has no X.509 proxy and would be sent the X.509 proxy of the other endpoint",
        ),
        ("/a.proxy", "/b.proxy", "the endpoints have different X.509 proxies"),
    ],
)
def test_who_has_none_is_not_shown_that_of_the_other_end(source: str, destination: str, why: str):
    order = replace(
        ORDER,
        source=replace(ORDER.source, proxy=source),
        destination=replace(ORDER.destination, proxy=destination),
    )
    with pytest.raises(MoverError, match=why) as caught:
        tool.move(ENVIRONMENT, order, Watch(), lambda _: None)
    assert caught.value.permanent
    assert ".proxy" not in str(caught.value)


def test_a_program_that_asks_one_end_finds_the_proxy_of_that_end_and_no_other(
    tmp_path, monkeypatch
):
    (usual := tmp_path / "x509up").touch()
    monkeypatch.setattr(tool, "USUAL_PROXY", str(usual))
    source = replace(ORDER.source, proxy="/a.proxy")
    for end, path in ((source, "/a.proxy"), (ORDER.destination, "/nonexistent")):
        told = tool.ask(ENVIRONMENT, end, replace(ORDER, source=source)).text
        assert f"X509_USER_PROXY={path}\n" in told
        assert told.count(".proxy") == (path != "/nonexistent")


def test_the_authorities_to_trust_are_those_of_sonar_where_it_has_a_directory(tmp_path):
    told = tool.ask(ENVIRONMENT, ORDER.source, replace(ORDER, ca_bundle=str(tmp_path))).text
    assert f"X509_CERT_DIR={tmp_path}\n" in told
    file = tmp_path / "ca.pem"
    file.touch()
    told = tool.ask(ENVIRONMENT, ORDER.source, replace(ORDER, ca_bundle=str(file))).text
    assert "X509_CERT_DIR" not in told


def test_gfal2_is_given_no_proxy_for_http(every_program):
    order = replace(
        ORDER, source=End(Where.SOURCE, "davs://a.example/f", "davs://a.example", proxy="/a.proxy")
    )
    with pytest.raises(MoverError, match="for root:// only: over HTTP it would delegate"):
        loading.load(kept("gfal2")).move(order, Watch())


@pytest.mark.django_db
def test_endpoints_of_the_registry_are_tested_with_the_proxy_of_their_credential(
    guarded: Guarded, proxy: Path, settings
):
    settings.SONAR_CREDENTIALS_DIR = proxy.parent
    settings.SONAR_CA_BUNDLE = str(guarded.authority.directory)
    own = Credential.objects.create(name=proxy.name, kind="x509", hosts=["localhost"])
    ends = []
    for name, server in (("A", guarded.source), ("B", guarded.destination)):
        server.make_directory("registered/sonar")
        base_url = f"root://localhost:{server.port}/registered"
        ends.append(endpoint(name, base_url=base_url, credential=own))
    probe = queued(*ends, bytes=SIZE_BYTES, mover="xrootd")
    assert_that_it_goes_well(guarded, transfer_request.order_for(probe), "xrootd")
