"""What a host stands for, however it is written, and what its address is for: one answer for all.

Whoever saves a host, connects to one, compares two or hides one asks here.
"""

import re
import socket
from contextlib import suppress
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import unquote

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


def is_nobodys(host: str) -> bool:
    """Say whether a host is an address at which no storage, service or issuer can be."""
    address = address_of(host)
    return address is not None and kind_of(address) in NOBODYS


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
