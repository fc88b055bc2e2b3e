"""Where base URLs lead: which are the same place or lie within each other, and which none may be.

Two URLs are one place if they differ only in how they are written: the case of the host, a port
that goes without saying, http or dav, slashes, percent-encoding, the notation of an address.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

Address = IPv4Address | IPv6Address


class Protocol(NamedTuple):
    """What servers speak, its port where a URL says none, and whether all can read it."""

    name: str
    port: int
    is_in_clear: bool = False


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
# How inet_aton, and so every client, reads an IPv4 address: in one to four parts, each decimal,
# octal or hexadecimal.
IPV4 = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}", re.IGNORECASE)
BROADCAST = IPv4Address("255.255.255.255")
# Networks of IPv6 whose last four bytes are an address of IPv4: compatible ones, and NAT64.
WITH_IPV4 = (IPv6Network("::/96"), IPv6Network("64:ff9b::/96"))

DOTS_SENTENCE = "The path of a base URL must not contain . or .., however they are written."
HOST_SENTENCE = (
    "A base URL must not have a link-local, unspecified, multicast or broadcast address, however "
    "it is written."
)


class Place(NamedTuple):
    """What a URL leads to, whatever it is called."""

    protocol: str
    host: str
    port: int
    path: tuple[str, ...]

    def overlaps(self, other: Place) -> bool:
        """Say whether one is the other, or lies below it."""
        shared = min(len(self.path), len(other.path))
        return self[:3] == other[:3] and self.path[:shared] == other.path[:shared]


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
    name = (urlsplit(url).hostname or "").rstrip(".").casefold()
    address = literal(name)
    return str(address) if address else name


def segments(path: str) -> tuple[str, ...]:
    return tuple(segment for segment in unquote(path).split("/") if segment)


def literal(host: str) -> Address | None:
    """Return the address that a host is, in whatever notation; None for a name."""
    try:
        return plain(ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    if not IPV4.fullmatch(host):
        return None
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:  # 256.1.1.1 is a name, if anything
        return None


def plain(address: Address) -> Address:
    """Return the address of IPv4 that one of IPv6 stands for, if it does."""
    if isinstance(address, IPv4Address):
        return address
    if stands_for := address.ipv4_mapped or address.sixtofour:
        return stands_for
    # ::1 and :: are what they are.
    if int(address) > 1 and any(address in network for network in WITH_IPV4):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_nobody(address: Address) -> bool:
    """Say whether no single host of a network can have this address."""
    return (
        address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address == BROADCAST
        or (isinstance(address, IPv4Address) and address.packed[0] == 0)
    )


def problem(url: str) -> str:
    """Say why no endpoint can be at this URL, whatever else is registered; empty if one can."""
    if {".", ".."} & set(segments(urlsplit(url).path)):
        return DOTS_SENTENCE
    address = literal((urlsplit(url).hostname or "").rstrip("."))
    return HOST_SENTENCE if address and is_nobody(address) else ""


def overlap(url: str, others: Iterable[tuple[str, str]]) -> str:
    """Say of which other endpoint, as (name, URL), the files would lie where those of this do."""
    own = place_of(url)
    for name, other in others:
        if other != url and _overlaps(own, other):
            return (
                f"The base URL of {name} is the same location, or one of the two is inside the "
                "other: Sonar writes and deletes below each."
            )
    return ""


def _overlaps(own: Place, other: str) -> bool:
    try:
        return own.overlaps(place_of(other))
    except ValueError:  # registered before such URLs were refused
        return False
