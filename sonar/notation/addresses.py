"""What hosts and base URLs stand for, however they are written: one answer for all who ask.

Whoever saves a host, connects to one, compares two or hides one asks here. Two URLs are one place
if they differ only in how they are written: the case of the host, a port that goes without saying,
http or dav, slashes, percent-encoding, the notation of an address.
"""

from __future__ import annotations

import re
import socket
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

Address = IPv4Address | IPv6Address

# How inet_aton, and so every client, reads an IPv4 address: in one to four parts, each decimal,
# octal or hexadecimal.
IPV4 = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}")
# Networks of IPv6 whose last four bytes are an address of IPv4: compatible ones (given up long
# ago), translated ones and NAT64.
V4_AT_THE_END = [IPv6Network(text) for text in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")]
# NAT64 of a site (RFC 8215). How long its prefix is stands nowhere; where the address of IPv4
# is depends on it (RFC 6052): its first bit, by the bits of the prefix.
LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
PREFIXES = (96, 64, 56, 48)
PRIVATE = [
    ip_network(network)
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")
]
SHARED = ip_network("100.64.0.0/10")
BROADCAST = IPv4Address("255.255.255.255")


class Kind(StrEnum):
    """What an IP address is for; the first of those that one may stand for counts."""

    UNSPECIFIED = "unspecified"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    MULTICAST = "multicast"
    BROADCAST = "broadcast"
    PRIVATE = "private"
    SHARED = "shared by a provider"
    RESERVED = "reserved"
    PUBLIC = "public"


NOBODYS = {Kind.UNSPECIFIED, Kind.LINK_LOCAL, Kind.MULTICAST, Kind.BROADCAST}
"""Where no storage is: no single host has it, or none beyond a cable (and a cloud's metadata)."""
NO_HOSTS = {Kind.UNSPECIFIED, Kind.MULTICAST, Kind.BROADCAST, Kind.RESERVED}


def address_of(host: str) -> Address | None:
    """Return the address that a host is, in whatever notation; None for a name.

    One of IPv4 that is mapped into IPv6 is what sockets take it for.
    """
    text = _plain(host).partition("%")[0]
    try:
        return unmapped(ip_address(text))
    except ValueError:
        pass
    if not IPV4.fullmatch(text):
        return None
    try:
        return IPv4Address(socket.inet_aton(text))
    except OSError:  # 256.1.1.1 is a name, if anything
        return None


def name_of(host: str) -> str:
    """Return a host as it is compared: an address in its one usual notation, a name of the DNS."""
    address = address_of(host)
    if address is None:
        return _plain(host)
    return f"[{address}]" if isinstance(address, IPv6Address) else str(address)


def _plain(host: str) -> str:
    host = unquote(host).removeprefix("[").removesuffix("]")
    with suppress(UnicodeError):  # no name of the DNS: it is compared as it is written
        host = host.encode("idna").decode()  # as sockets do: other digits and dots become plain
    return host.rstrip(".").casefold()


def unmapped(address: Address) -> Address:
    """Return an address of IPv4 that is written as one of IPv6 as what it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def ip_version(host: str) -> int | None:
    """Return 4 or 6; None for a name."""
    address = address_of(host)
    return address.version if address else None


def is_this_machine(host: str) -> bool:
    """Say whether nobody else can be meant: what a translator may send elsewhere is not."""
    address = address_of(host)
    return address.is_loopback if address else name_of(host) == "localhost"


def is_inside(host: str) -> bool:
    """Say whether a host is an address that only those within a network can reach."""
    address = address_of(host)
    return is_this_machine(host) or (address is not None and not is_public(address))


def is_nobodys(host: str) -> bool:
    """Say whether a host is an address at which no storage, service or issuer can be."""
    address = address_of(host)
    return address is not None and kind_of(address) in NOBODYS


HOST = r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?|\[[0-9a-f:.]+\]"
WEB_SERVICE = re.compile(rf"(https?)://(?P<host>{HOST})(:[0-9]+)?(/[A-Za-z0-9._~%/-]*)?")


def is_url(place: str) -> bool:
    """Say whether a place is a URL; else it is the name of a file, or a host."""
    return "://" in place


def is_web_service(url: str) -> bool:
    """Say whether a service may be asked there whose answers are believed.

    By https, as nobody else can read or change what is said then, or on this machine.
    """
    parts = WEB_SERVICE.fullmatch(url)
    if parts is None or not is_printable(url) or is_nobodys(parts["host"]):
        return False
    return parts[1] == "https" or is_this_machine(parts["host"])


def is_public(address: Address) -> bool:
    """Say whether everything that an address may stand for is reached from anywhere."""
    return kind_of(address) is Kind.PUBLIC


def kind_of(address: Address) -> Kind:
    """Return what an IP address is for; one of IPv6 that stands for one of IPv4 is of its kind."""
    kinds = {_kind_of(meant) for meant in meanings(address)}
    return next(kind for kind in Kind if kind in kinds)


def _kind_of(ip: Address) -> Kind:
    is_zero = ip.is_unspecified or (isinstance(ip, IPv4Address) and ip.packed[0] == 0)
    kinds = {
        Kind.UNSPECIFIED: is_zero,
        Kind.LOOPBACK: ip.is_loopback,
        Kind.LINK_LOCAL: ip.is_link_local,
        Kind.MULTICAST: ip.is_multicast,
        Kind.BROADCAST: ip == BROADCAST,
        Kind.PRIVATE: any(ip in network for network in PRIVATE),
        Kind.SHARED: ip in SHARED,
        Kind.RESERVED: ip.is_reserved or not ip.is_global,
    }
    return next((kind for kind, it_is in kinds.items() if it_is), Kind.PUBLIC)


def meanings(address: Address) -> list[Address]:
    """Return what an address may stand for, the likeliest first; itself if for no other."""
    # ::1 and :: are what they are.
    if isinstance(address, IPv4Address) or int(address) <= 1:
        return [address]
    if address in LOCAL_NAT64:
        embedded: list[Address] = [_embedded(address, bits) for bits in PREFIXES]
        return [each for each in embedded if _kind_of(each) not in NO_HOSTS] or embedded[:1]
    if any(address in network for network in V4_AT_THE_END):
        return [_embedded(address, 96)]
    if address.teredo:
        return list(reversed(address.teredo))  # the host, and the server that finds it
    return [address.ipv4_mapped or address.sixtofour or address]


def _embedded(address: IPv6Address, bits: int) -> IPv4Address:
    """Return the address of IPv4 behind a prefix of so many bits; byte 8 is no part of it."""
    packed = address.packed
    if bits == PREFIXES[0]:
        return IPv4Address(packed[12:])
    first = bits // 8
    return IPv4Address((packed[first:8] + packed[9:])[:4])


class Protocol(NamedTuple):
    """What servers speak, its port where a URL says none, and whether all can read it."""

    name: str
    port: int
    is_in_clear: bool = False


class CredentialKind(StrEnum):
    """What storage servers can be shown."""

    BEARER_TOKEN = "bearer token"  # noqa: S105 - the name of a kind
    X509_PROXY = "X.509 proxy"


SHORT_NAMES = {
    CredentialKind.X509_PROXY: ("X.509 proxy", "X.509 proxies"),
    CredentialKind.BEARER_TOKEN: ("token", "tokens"),
}
"""One of a kind, and several, in sentences that say whose they are."""


# By the scheme of a base URL: two schemes may be two names of one protocol.
PROTOCOLS = {
    **dict.fromkeys(("http", "dav"), Protocol("http", 80, is_in_clear=True)),
    **dict.fromkeys(("https", "davs"), Protocol("https", 443)),
    **dict.fromkeys(("root", "xroot"), Protocol("root", 1094)),
    "gsiftp": Protocol("gsiftp", 2811),
    "ftp": Protocol("ftp", 21, is_in_clear=True),
    "iperf3": Protocol("iperf3", 5201, is_in_clear=True),
}
# What a URL without a port stands for.
PORTS = {scheme: protocol.port for scheme, protocol in PROTOCOLS.items()}
IN_CLEAR = tuple(scheme for scheme, protocol in PROTOCOLS.items() if protocol.is_in_clear)
# So often an escape may hide another one.
ROUNDS = 6

LETTERS_SENTENCE = (
    "A base URL must contain only printable UTF-8 characters, even after percent-decoding. "
    "Characters that change the text direction are not allowed."
)
DOTS_SENTENCE = (
    "The path of a base URL must not contain . or .. as a segment, even percent-encoded."
)
HOST_SENTENCE = (
    "The host of a base URL must not be a link-local, unspecified, multicast or broadcast address "
    "in any notation."
)


class Place(NamedTuple):
    """What a URL leads to, whatever it is called."""

    protocol: str
    host: str
    port: int
    path: tuple[str, ...]

    @property
    def server(self) -> tuple[str, str, int]:
        return self.protocol, self.host, self.port

    def overlaps(self, other: Place) -> bool:
        """Say whether one is the other, or lies below it."""
        shared = min(len(self.path), len(other.path))
        return self.server == other.server and self.path[:shared] == other.path[:shared]


def place_of(url: str) -> Place:
    """Return where a base URL leads; raise ValueError for one that has no host or port."""
    parts = urlsplit(url)
    protocol = PROTOCOLS.get(parts.scheme, Protocol(parts.scheme, 0))
    port = parts.port or protocol.port
    return Place(protocol.name, host_of(url), port, segments(parts.path))


def scheme_of(base_url: str) -> str:
    """Return the scheme of a base URL, as it is written."""
    return base_url.partition("://")[0]


def host_of(url: str) -> str:
    """Return the host as one name, an address in its one usual notation."""
    host = urlsplit(url).hostname or ""
    address = address_of(host)
    return name_of(str(meanings(address)[0]) if address else host)


def segments(path: str) -> tuple[str, ...]:
    return tuple(segment for segment in unquote(path).split("/") if segment)


def readings(text: str) -> Iterator[str]:
    """Yield a text as it is written, and as it reads each time that its escapes are decoded.

    A server in front of another may decode what that one decodes again. Raises ValueError where
    it is not UTF-8, or escapes hide escapes for too long.
    """
    for _ in range(ROUNDS):
        yield text
        before, text = text, unquote(text, errors="strict")
        if text == before:
            return
    raise ValueError("percent-encoded characters contain further percent-encoding")


def is_printable(text: str) -> bool:
    """Say whether a text has no character that ends a line of a protocol, or is not seen."""
    try:
        return all(reading.isprintable() for reading in readings(text))
    except ValueError:
        return False


def problem(url: str) -> str:
    """Say why no endpoint can be at this URL, whatever else is registered; empty if one can."""
    if not is_printable(url):
        return LETTERS_SENTENCE
    parts = urlsplit(url)
    if any({".", ".."} & set(segments(path)) for path in readings(parts.path)):
        return DOTS_SENTENCE
    return HOST_SENTENCE if is_nobodys(parts.hostname or "") else ""


class Places:
    """Where endpoints have their files; a look costs as much however many endpoints there are."""

    def __init__(self) -> None:
        self._place_of: dict[str, Place] = {}
        self._url_of: dict[str, str] = {}
        # Names by their place, and by their place and each directory above it.
        self._at: defaultdict[Place, dict[str, None]] = defaultdict(dict)
        self._within: defaultdict[Place, dict[str, None]] = defaultdict(dict)

    def add(self, name: str, base_url: str) -> None:
        """Note where an endpoint has its files, and no longer where it had them before."""
        self.remove(name)
        self._url_of[name] = base_url
        with suppress(ValueError):  # registered before such URLs were refused
            place = self._place_of[name] = place_of(base_url)
            self._at[place][name] = None
            for above in (*_directories_above(place), place):
                self._within[above][name] = None

    def remove(self, name: str) -> None:
        if place := self._place_of.pop(name, None):
            del self._at[place][name]
            for above in (*_directories_above(place), place):
                del self._within[above][name]

    def at(self, base_url: str) -> str:
        """Return which endpoint is at this very place; empty for none."""
        return next(iter(self._at.get(place_of(base_url), ())), "") if base_url else ""

    def others(self, base_url: str) -> Iterator[tuple[str, str]]:
        """Yield the name and the base URL of each that has its files there, above or below."""
        place = place_of(base_url)
        above = (self._at.get(each, {}) for each in _directories_above(place))
        for names in (*above, self._within.get(place, {})):
            yield from ((name, self._url_of[name]) for name in names)

    def overlapping(self, base_url: str, but: Collection[str] = ()) -> str:
        """Return which endpoint, but these, has its files there, above or below; empty for none."""
        return next((name for name, _ in self.others(base_url) if name not in but), "")


def _directories_above(place: Place) -> list[Place]:
    return [place._replace(path=place.path[:depth]) for depth in range(len(place.path))]


def overlap(url: str, others: Iterable[tuple[str, str]]) -> str:
    """Say of which other endpoint, as (name, URL), the files would lie where those of this do."""
    own = place_of(url)
    for name, other in others:
        if other != url and _overlaps(own, other):
            return (
                f"The base URL overlaps with that of {name}: the two URLs are the same, or one is "
                "below the other. Sonar writes and deletes files below each base URL, so choose a "
                "different base URL."
            )
    return ""


def _overlaps(own: Place, other: str) -> bool:
    try:
        return own.overlaps(place_of(other))
    except ValueError:  # registered before such URLs were refused
        return False
