"""Whatever a server says, no registered host, address or port comes out; the rest stays."""

import re
from ipaddress import IPv4Address, IPv6Address
from itertools import cycle
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sonar.redaction.disguises import View
from sonar.redaction.servers import Servers

REGISTRY = {
    "GLASGOW_DATADISK": "davs://Glasgow.example:1094/data/grid/",
    "RAL_DATADISK": "https://ral.example/disk",
    "RAL_SCRATCHDISK": "https://ral.example/scratch",
    "ECHO_DATADISK": "davs://webdav.ral.example:34567/pnfs/ral/x",
    "NODE_A": "http://127.0.0.1:8001",
    "NODE_B": "http://127.0.0.1:8002",
    "KOELN_DATADISK": "https://speicher.k\u00f6ln.example:8443/x",
    "SIX_DATADISK": "https://[2001:db8::17]:2880/base",
    "CONTAINER": "root://xrootd7:11094/store",
}
SERVERS = Servers(REGISTRY.items())
FIRST = ("GLASGOW_DATADISK", "RAL_DATADISK")


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            "HEAD glasgow.example:1094/data/grid/sonar/source/20: 403 Forbidden",
            "HEAD GLASGOW_DATADISK/sonar/source/20: 403 Forbidden",
        ),
        (
            "ral.example:443/disk/sonar/incoming/7: no answer within 30 s",
            "RAL_DATADISK/sonar/incoming/7: no answer within 30 s",
        ),
        (
            "https://ral.example/disk/sonar/incoming/7 is outside the base path",
            "RAL_DATADISK/sonar/incoming/7 is outside the base path",
        ),
        (
            "COPY glasgow.example:1094/data/grid/7 told of webdav.ral.example:34567: "
            "Could not connect",
            "COPY GLASGOW_DATADISK/7 told of ECHO_DATADISK: Could not connect",
        ),
        ("cannot resolve glasgow.example.", "cannot resolve GLASGOW_DATADISK."),
        ("glasgow.example:2811 refused", "GLASGOW_DATADISK refused"),
        ("no route to glasgow.example.:1094.", "no route to GLASGOW_DATADISK."),
        ("ral.example:443/scratch/sonar: 507", "RAL_SCRATCHDISK/sonar: 507"),
        ("no route to ral.example:8443", "no route to RAL_DATADISK"),
        ("127.0.0.1:8002/sonar: 404", "NODE_B/sonar: 404"),
        ("pool7.glasgow.example and ral.example2 failed", "[server] and ral.example2 failed"),
        (
            "10.1.2.3:20001, [fd00::7]:1 and 192.168.0.9 failed",
            "[address], [address] and [address] failed",
        ),
        ("130.209.1.1, 100.64.3.2 and 999.1.1.1", "[address], [address] and 999.1.1.1"),
        ("tcp:[2001:db8::17]:2880,tcp:[::1]:5", "tcp:SIX_DATADISK,tcp:[address]"),
        ("2001:db8::17: refused, fe80::1%eth0 too", "SIX_DATADISK: refused, [address] too"),
        ("[2001:DB8:0::17]:2880/base/sonar/7: 404", "SIX_DATADISK/sonar/7: 404"),
        ("::ffff:127.0.0.1, 0x7f000001 or 2130706433", "[address], [address] or [address]"),
        (
            "Failed to connect to xrootd7 port 11094 after 12 ms",
            "Failed to connect to CONTAINER port [port] after 12 ms",
        ),
        ("webdav%2Eral%2Eexample%3A34567: 500", "ECHO_DATADISK: 500"),
        ("webdav%252Eral.example and &#119;ebdav.ral.example", "ECHO_DATADISK and ECHO_DATADISK"),
        ('{"host": "webdav\\u002eral.example"}', '{"host": "ECHO_DATADISK"}'),
        (
            "web\u200bdav.ral.example \uff57ebdav\uff0eral\u3002example",
            "ECHO_DATADISK ECHO_DATADISK",
        ),
        ("xn--kln-sna.example", "xn--kln-sna.example"),
        ("speicher.xn--kln-sna.example", "KOELN_DATADISK"),
        ("SPEICHER.ko\u0308ln.EXAMPLE:8443", "KOELN_DATADISK"),
        (
            "https://webdav.ral.example@evil.example/ https://u:p@ral.example/disk/1",
            "ECHO_DATADISK@evil.example/ RAL_DATADISK/1",
        ),
        (
            "No such file: /data/grid/sonar/7, /scratch/8 nor /data/grid2",
            "No such file: GLASGOW_DATADISK/sonar/7, [base]/8 nor /data/grid2",
        ),
        (
            "34567: refused, 34567 bytes at 34567 MB/s of /sonar/source/34567",
            "[port]: refused, 34567 bytes at 34567 MB/s of /sonar/source/34567",
        ),
        ("it is webdav.ral.exa...", "it is [server]..."),
        ("it is webdata...", "it is webdata..."),
        ("", ""),
    ],
)
def test_an_error_tells_endpoints_by_name_and_nothing_of_where_they_are(error, shown):
    assert SERVERS.hide(error, FIRST) == shown


@pytest.mark.parametrize(
    "text",
    [
        "HEAD RAL_DATADISK/sonar/source/20000000: 403 Forbidden",
        "COPY B_DATADISK/sonar/incoming/0190a6a8-8a5c-7cc1-9e21-5f3a3c1d2e4f told of A_DATADISK: "
        "Remote side failed with status code 404",
        "at 12:30:45 XrdCl::File::Open and std::string::npos failed in Face::Off (file.cc:120)",
        "A_DATADISK: no bytes moved for 30 s, at 1654931403 of 2000000000 bytes",
        "2026-11-20T12:00:30Z [3011] No such file or directory; errno 2; XRootD 5.5.3",
        "the server's certificate is not accepted: self-signed certificate",
        "adler32 0a1b2c3d is not 0f0f0f0f; 100%25 done \ufb01le at 4.88 MB/s",
        "several examples, a webdav door; A & B",
    ],
)
def test_an_ordinary_text_stays_as_it_is(text: str):
    assert SERVERS.hide(text, FIRST) == text


LABEL = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=2, max_size=9)
NAMED = st.tuples(LABEL, LABEL, st.sampled_from(["example", "uk", "ch"])).map(".".join)
NAMED = NAMED.filter(lambda one: len(one) > 9)
V4 = st.integers(1 << 24, (224 << 24) - 1).map(lambda one: str(IPv4Address(one)))
V6 = st.integers(0x2000 << 112, (0x4000 << 112) - 1).map(lambda one: f"[{IPv6Address(one)}]")
HOSTS = st.one_of(NAMED, V4, V6)
PORTS = st.integers(10_000, 65_535)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=12)
DIVIDED_BY = st.sampled_from([" ", ": ", ", ", "(", '"', "=", "@", "://", "/", ":", "[", "\t", "<"])


def alternating(text: str) -> str:
    return "".join(one.upper() if odd else one.lower() for one, odd in zip(text, cycle([0, 1])))


def escaped(text: str) -> str:
    return "".join(f"%{ord(one):02x}" for one in text)


# How a server may write where it is; those for addresses are what software does to them.
WRITTEN = {
    "plain": str,
    "upper": str.upper,
    "alternating": alternating,
    "quoted": lambda text: quote(text, safe=""),
    "escaped": escaped,
    "escaped twice": lambda text: escaped(escaped(text)),
    "in JSON": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
    "in HTML": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "full width": lambda text: "".join(chr(ord(one) + 0xFEE0) for one in text),
    "without width between": "\u200b".join,
    "accented": "\u0301".join,
}


def plainly(text: str) -> str:
    """Return a text as a reader may decode it, without what divides it."""
    return re.sub(r"[\s\[\]]", "", View(text).text)


def tells(text: str, host: str, port: int) -> bool:
    seen, host = plainly(text), host.strip("[]")
    said = re.search(rf"(?<!\d){port}(?!\d)", View(text).text)
    return host in seen or said is not None


@given(HOSTS, PORTS, WORDS, WORDS, DIVIDED_BY, st.sampled_from(sorted(WRITTEN)))
@example("webdav.ral.example", 10940, "told of ", ": Could not connect", " ", "plain")
@example("[2001:db8::1]", 10940, "", "", "", "plain")
@example("100.64.0.7", 10940, "x", ". Bye", "=", "upper")
def test_however_a_server_writes_where_it_is_nothing_comes_out(
    host: str, port: int, before: str, after: str, divided_by: str, how: str
):
    servers = Servers([("THE_NAME", f"davs://{host}:{port}/pnfs/data"), *REGISTRY.items()])
    written = WRITTEN[how](f"{host}:{port}")
    assert not tells(servers.hide(f"{before}{divided_by}{written}: {after}"), host, port)
    assert not tells(servers.hide(f"{before} {WRITTEN[how](host)} port {port} {after}"), host, port)


@given(st.lists(st.one_of(WORDS, HOSTS, st.sampled_from(sorted(REGISTRY))), max_size=8))
def test_what_is_hidden_once_stays_as_it_is(words: list[str]):
    once = SERVERS.hide(" ".join(words), FIRST)
    assert SERVERS.hide(once, FIRST) == once


WHOLE_WORDS = """
    HEAD GET COPY PUT 403 Forbidden: no such file or directory, bytes 20 of 507 Insufficient Storage
    sonar/source/20000000 XrdCl::File TLS failed 12:30:45 30 s
"""
ORDINARY = st.lists(
    st.one_of(
        st.sampled_from(WHOLE_WORDS.split()),
        st.integers(0, 1023).map(str),
        st.uuids().map(lambda one: f"sonar/incoming/{one}"),
        st.sampled_from(sorted(REGISTRY)),
    ),
    max_size=20,
)


@given(ORDINARY)
def test_what_is_said_in_ordinary_words_stays_as_it_is(words: list[str]):
    text = " ".join(words)
    assert SERVERS.hide(text, FIRST) == text
