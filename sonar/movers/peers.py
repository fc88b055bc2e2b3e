"""Whom an exchange with a storage server may reach: by name before, by address as it connects.

A server may redirect, and its owner may not be the owner of where that leads. So:

- what writes (all but GET and HEAD) stays at the host of its endpoint's base URL;
- what reads may also go to a host that the order knows;
- after a redirect only public addresses are connected to, and those of the kind at which the
  endpoint itself answered: a loopback endpoint may lead to loopback, one in 10.0.0.0/8 to private
  addresses, a public one to neither.

The address is that of the socket, looked at before a byte of a request is written: a second look-up
of the name might be answered differently.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from urllib3.exceptions import HTTPError
from urllib3.util import Url, parse_url

from sonar.movers.file_address import PORTS

READING = frozenset({"GET", "HEAD"})
NOT_REPEATED = "said by another server, to which it redirected"
"""Stands for the words of an answer that its endpoint did not give itself."""


class Kind(StrEnum):
    """What an IP address is for."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    PRIVATE = "private"
    SHARED = "shared by a provider"
    MULTICAST = "multicast"
    UNSPECIFIED = "unspecified"
    RESERVED = "reserved"


NOBODYS = {Kind.MULTICAST, Kind.UNSPECIFIED}
"""Where no server is, whatever its endpoint's own address is."""
SHARED = ip_network("100.64.0.0/10")
PRIVATE = [
    ip_network(network)
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")
]
# An IPv4 address stands in the last four bytes: compatible (given up long ago), and NAT64.
V4_AT_THE_END = [ip_network(network) for network in ("::/96", "64:ff9b::/96", "64:ff9b:1::/48")]


def kind_of(address: str) -> Kind:
    """Return what an IP address is for; one of IPv6 that stands for one of IPv4 is of its kind."""
    ip = behind(ip_address(address))
    kinds = {
        Kind.UNSPECIFIED: ip.is_unspecified,
        Kind.LOOPBACK: ip.is_loopback,
        Kind.LINK_LOCAL: ip.is_link_local,
        Kind.MULTICAST: ip.is_multicast,
        Kind.PRIVATE: any(ip in network for network in PRIVATE),
        Kind.SHARED: ip in SHARED,
        Kind.RESERVED: ip.is_reserved or not ip.is_global,
    }
    return next((kind for kind, it_is in kinds.items() if it_is), Kind.PUBLIC)


def behind(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that one of IPv6 stands for, or the address itself."""
    if isinstance(ip, IPv4Address) or ip in {IPv6Address("::"), IPv6Address("::1")}:
        return ip
    if any(ip in network for network in V4_AT_THE_END):
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or ip


class ForbiddenPeer(Exception):
    """A redirect leads to an address where its endpoint has no business."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(f"redirects to an address that is not public ({kind})")


Addresses = list[tuple[Any, ...]]
"""As ``socket.getaddrinfo`` returns them."""


class Route:
    """Where one exchange has been led so far, and what it may connect to next."""

    def __init__(self) -> None:
        self.elsewhere = False
        """Whether some redirect led to another scheme, host or port than the endpoint's."""
        self._redirected = False
        self._own: Kind | None = None

    def lead(self, *, elsewhere: bool) -> None:
        """Note a redirect; what led elsewhere once has led elsewhere, even if it came back."""
        self._redirected = True
        self.elsewhere = self.elsewhere or elsewhere

    def quotable(self, words: str) -> str:
        """Return the words of an answer, unless somebody else than the endpoint said them."""
        return NOT_REPEATED if self.elsewhere else words

    def permitted(self, addresses: Addresses) -> Addresses:
        """Return those addresses of a host that may be connected to, or raise ForbiddenPeer."""
        kinds = [kind_of(address[4][0]) for address in addresses]
        allowed = [
            address for address, kind in zip(addresses, kinds, strict=True) if self._allows(kind)
        ]
        if addresses and not allowed:
            raise ForbiddenPeer(kinds[0])
        return allowed

    def meet(self, sock: socket.socket) -> None:
        """Look at whom a socket is connected to; raise ForbiddenPeer if nothing may be sent."""
        kind = kind_of(sock.getpeername()[0])
        if not self._allows(kind):
            raise ForbiddenPeer(kind)
        if not self._redirected:
            self._own = kind

    def _allows(self, kind: Kind) -> bool:
        if not self._redirected:
            return True
        return kind == Kind.PUBLIC or (kind == self._own and kind not in NOBODYS)


def origin(address: Url) -> tuple[str, str, int]:
    """Return scheme, host and port: a credential for one of them is for no other."""
    scheme = str(address.scheme)
    return scheme, plain_host(address), address.port or PORTS.get(scheme, 0)


def plain_host(address: Url) -> str:
    """Return a host as one compares it: in lower case, no dot at its end, IPv6 in short."""
    host = (address.host or "").lower().removesuffix(".")
    try:
        return f"[{ip_address(host[1:-1])}]" if host.startswith("[") else host
    except ValueError:
        return host


def without_credentials(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers that a server may see which is not the endpoint's own.

    ``TransferHeader...`` is what a COPY lends: another site's credential.
    """
    return dict(_harmless(headers))


def _harmless(headers: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in headers.items():
        if name.lower() != "authorization" and not name.lower().startswith("transferheader"):
            yield name, value


def host_in(url: str) -> str:
    """Return the name of the host in a URL of any scheme, as one compares it; empty for none."""
    try:
        return plain_host(parse_url(url))
    except HTTPError:
        return ""
