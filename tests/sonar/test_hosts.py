"""What a host stands for in every notation, and that all who ask get the same answer."""

import socket

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st
from urllib3.util import parse_url

from sonar import settings as project
from sonar.credentials import kinds, rules
from sonar.movers.catalogue import kept
from sonar.movers.http.peers import ForbiddenPeer, Route, plain_host
from sonar.notation import addresses
from sonar.notation.addresses import (
    NOBODYS,
    Kind,
    address_of,
    ip_version,
    is_nobodys,
    is_this_machine,
    kind_of,
    name_of,
)
from sonar.notation.data_hosts import data_host
from sonar.redaction.servers import Servers

# Hosts as URLs have them, and what is there.
NOTATIONS = {
    "127.0.0.1": Kind.LOOPBACK,
    "127.255.0.9": Kind.LOOPBACK,
    "0x7f.1": Kind.LOOPBACK,
    "2130706433": Kind.LOOPBACK,
    "017700000001": Kind.LOOPBACK,
    "127.0.0.1.": Kind.LOOPBACK,
    "[::1]": Kind.LOOPBACK,
    "[::ffff:127.0.0.1]": Kind.LOOPBACK,
    "[::127.0.0.1]": Kind.LOOPBACK,
    "[64:ff9b::7f00:1]": Kind.LOOPBACK,
    "[2002:7f00:1::]": Kind.LOOPBACK,
    "10.1.2.3": Kind.PRIVATE,
    "172.16.0.1": Kind.PRIVATE,
    "192.168.1.1": Kind.PRIVATE,
    "[::ffff:10.0.0.1]": Kind.PRIVATE,
    "[64:ff9b:1::10.0.0.1]": Kind.PRIVATE,
    "[fd00::1]": Kind.PRIVATE,
    "[fec0::1]": Kind.PRIVATE,
    "100.64.0.1": Kind.SHARED,
    "169.254.169.254": Kind.LINK_LOCAL,
    "169.254.169.254.": Kind.LINK_LOCAL,
    "169.254.43518": Kind.LINK_LOCAL,
    "2852039166": Kind.LINK_LOCAL,
    "0xa9fea9fe": Kind.LINK_LOCAL,
    "0xA9.0xFE.0xa9.0xfe": Kind.LINK_LOCAL,
    "0251.0376.0251.0376": Kind.LINK_LOCAL,
    "%31%36%39.254.169.254": Kind.LINK_LOCAL,
    "\uff11\uff16\uff19\u3002254.169.254": Kind.LINK_LOCAL,
    "[fe80::1]": Kind.LINK_LOCAL,
    "[febf::1]": Kind.LINK_LOCAL,
    "[FE80::1%25eth0]": Kind.LINK_LOCAL,
    "[::169.254.169.254]": Kind.LINK_LOCAL,
    "[::ffff:a9fe:a9fe]": Kind.LINK_LOCAL,
    "[::ffff:0:169.254.169.254]": Kind.LINK_LOCAL,
    "[2002:a9fe:a9fe::]": Kind.LINK_LOCAL,
    "[64:ff9b::a9fe:a9fe]": Kind.LINK_LOCAL,
    "[64:ff9b:1::a9fe:a9fe]": Kind.LINK_LOCAL,
    "[64:ff9b:1:7:0:0:a9fe:a9fe]": Kind.LINK_LOCAL,
    "[64:ff9b:1:7:a9:fea9:fe00:0]": Kind.LINK_LOCAL,
    "[64:ff9b:1:a9:fe:a9fe::]": Kind.LINK_LOCAL,
    "[64:ff9b:1:a9fe:a9:fe00::]": Kind.LINK_LOCAL,
    "[64:ff9b:1:a9fe:a9:fe00::1]": Kind.LINK_LOCAL,
    "[2001:0:4136:e378:8000:63bf:5601:5601]": Kind.LINK_LOCAL,
    "[2001:0:a9fe:a9fe:8000:63bf:f7f7:f7f7]": Kind.LINK_LOCAL,
    "224.0.0.1": Kind.MULTICAST,
    "239.255.255.255": Kind.MULTICAST,
    "[ff02::1]": Kind.MULTICAST,
    "0.0.0.0": Kind.UNSPECIFIED,
    "0": Kind.UNSPECIFIED,
    "0x0": Kind.UNSPECIFIED,
    "[0:0:0:0:0:ffff:0:0]": Kind.UNSPECIFIED,
    "0.1.2.3": Kind.UNSPECIFIED,
    "[::]": Kind.UNSPECIFIED,
    "[64:ff9b:1::]": Kind.UNSPECIFIED,
    "255.255.255.255": Kind.BROADCAST,
    "240.0.0.1": Kind.RESERVED,
    "192.0.2.1": Kind.RESERVED,
    "[2001:db8::1]": Kind.RESERVED,
    "8.8.8.8": Kind.PUBLIC,
    "[::ffff:8.8.8.8]": Kind.PUBLIC,
    "[64:ff9b::808:808]": Kind.PUBLIC,
    "[64:ff9b:1::808:808]": Kind.PUBLIC,
    "[64:ff9b:1:fffe::808:808]": Kind.PUBLIC,
    "[2606:4700::1111]": Kind.PUBLIC,
}
NAMES = (
    *("storage.example.org", "256.1.1.1", "1.2.3.4.5", "0x.example.org", "x" * 300, "a..b", ""),
    *("169.254.example.org", "localhost"),
)

each_notation = pytest.mark.parametrize(("host", "kind"), NOTATIONS.items())


@each_notation
def test_an_address_is_of_one_kind_however_it_is_written(host: str, kind: Kind):
    address = address_of(host)
    assert address
    assert kind_of(address) == kind
    assert is_nobodys(host) == (kind in NOBODYS)
    assert address_of(name_of(host)) == address


@each_notation
def test_whoever_saves_a_host_gets_this_answer(monkeypatch, host: str, kind: Kind):
    refused = kind in NOBODYS
    url = f"https://{host}/data"
    for place in (url, f"https://{host}:1094/a.b/.c/..d/..."):
        assert addresses.problem(place) == (addresses.HOST_SENTENCE if refused else "")
    if host.isascii():  # the patterns of these want nothing else
        issuer = {"kind": "client_credentials", "client_id": "sonar", "issuer": url}
        values = {name: issuer.get(name, "") for name in kinds.SETTINGS}
        assert ("issuer" in kinds.problems("client_credentials", values)) == refused
    if host.isascii() and "%" not in host and not host.endswith("."):
        assert ("service" in rules.service_problems(kept("fts3"), url, None)) == refused
        if refused:
            assert data_host(host) is None
        monkeypatch.setenv("ISSUER", url)
        if refused:
            with pytest.raises(ImproperlyConfigured, match="ISSUER"):
                project.envissuer("ISSUER")
        else:
            assert project.envissuer("ISSUER")


@each_notation
def test_whoever_connects_gets_this_answer(host: str, kind: Kind):
    looked_up = socket.getaddrinfo(
        name_of(host).strip("[]"), 443, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
    )
    route = Route()
    if kind in NOBODYS:
        with pytest.raises(ForbiddenPeer, match=f"that no storage server can use \\({kind}\\)"):
            route.permitted(looked_up)
    else:
        assert route.permitted(looked_up) == looked_up
    route.lead(parse_url("http://a.example"), parse_url("http://b.example"), is_declared=True)
    if kind == Kind.PUBLIC:
        assert route.permitted(looked_up) == looked_up
    else:
        with pytest.raises(ForbiddenPeer, match=f"not public \\({kind}\\)"):
            route.permitted(looked_up)


@each_notation
def test_whoever_hides_or_compares_a_host_takes_it_for_the_same(host: str, kind: Kind):
    address = address_of(host)
    servers = Servers([("HERE", f"https://{host}:8443/data"), ("THERE", "https://x.example/data")])
    if str(address) != "::":  # which tells nothing
        assert servers.hide(f"no route to {address}.") == "no route to HERE."
    if host.isascii():  # what speaks HTTP takes no others
        assert plain_host(parse_url(f"https://{host}/")) == name_of(host)
    if host.isascii() and "%" not in host and not host.endswith("."):
        assert rules.names([name_of(host)], f"https://{host.lower()}/")


@pytest.mark.parametrize("host", NAMES)
def test_a_name_is_no_address(host: str):
    assert address_of(host) is None
    assert ip_version(host) is None
    assert not is_nobodys(host)
    assert addresses.problem(f"https://{host}:1094/data/...") == ""


def test_names_are_compared_as_the_dns_has_them():
    spellings = (
        "K\u00d6LN.example",
        "xn--kln-sna.example.",
        "ko\u0308ln\uff0eexample",
        "k%C3%B6ln.example",
    )
    assert {name_of(spelling) for spelling in spellings} == {"xn--kln-sna.example"}


def test_only_what_nobody_else_can_get_is_this_machine():
    for host in ("localhost", "LocalHost", "127.1", "[::1]", "[::ffff:127.0.0.1]"):
        assert is_this_machine(host)
        assert not rules.is_in_clear(f"http://{host}:80/")
    for host in ("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "10.0.0.1", "localhost.example", ""):
        assert not is_this_machine(host)
        assert rules.is_in_clear(f"http://{host}/")


@given(st.ip_addresses(v=4))
def test_every_notation_of_an_address_is_the_same_address(address):
    parts = str(address).split(".")
    notations = (
        *(str(int(address)), hex(int(address)), f"0{int(address):o}", str(address)),
        *(".".join(hex(int(part)) for part in parts), f"::ffff:{address}"),
    )
    assert {address_of(notation) for notation in notations} == {address}


@given(st.text())
def test_no_host_is_too_odd(host: str):
    assert name_of(name_of(host)) is not None
    assert is_nobodys(host) in {True, False}
