"""Whom an exchange with a storage server may reach by address; by name ``redirects`` decides.

- Nothing goes to an address that no storage has: link-local, multicast, unspecified, broadcast;
- after a redirect only public addresses are connected to, and those of the kind at which the
  endpoint itself answered: a loopback endpoint may lead to loopback, one in 10.0.0.0/8 to private
  addresses, a public one to neither.

The address is that of the socket, looked at before a byte of a request is written: a second look-up
of the name might be answered differently.
"""

import socket
from ipaddress import ip_address
from typing import Any

from urllib3.util import Url

from sonar.movers.file_address import PORTS
from sonar.notation.addresses import NOBODYS, Kind, kind_of, name_of

NOT_REPEATED = "text withheld, as it came from another server after a redirect"
"""Stands for the words of an answer that its endpoint did not give itself."""


class ForbiddenPeer(Exception):
    """A name or a redirect leads to an address where its endpoint has no business."""

    def __init__(self, kind: Kind, *, redirected: bool) -> None:
        if redirected:
            super().__init__(
                f"redirects to an address that is not public ({kind}): redirect not followed"
            )
        else:
            super().__init__(f"has an address that no storage server can use ({kind})")


Addresses = list[tuple[Any, ...]]
"""As ``socket.getaddrinfo`` returns them."""


class Route:
    """Where one exchange has been led so far, and what it may connect to next."""

    def __init__(self) -> None:
        self.elsewhere = False
        """Whether some redirect led to another scheme, host or port than the endpoint's."""
        self.data_server = ""
        """Host and port of the server to which it was led, if it is not the endpoint's own."""
        self.secrets: tuple[str, ...] = ()
        """Secrets in the URLs of redirects, which no message may repeat."""
        self._is_strange = False
        self._redirected = False
        self._own: Kind | None = None

    def lead(
        self, own: Url, target: Url, *, is_declared: bool, secrets: tuple[str, ...] = ()
    ) -> None:
        """Note a redirect; what led elsewhere once has led elsewhere, even if it came back."""
        self._redirected = True
        self.secrets += secrets
        is_elsewhere = origin(target) != origin(own)
        self.elsewhere = self.elsewhere or is_elsewhere
        self.data_server = host_and_port(target) if is_elsewhere else ""
        self._is_strange = self._is_strange or (is_elsewhere and not is_declared)

    def named(self, place: str) -> str:
        """Return a place, and that a request was led away from it if it was."""
        return f"{place}, redirected to another server" if self.elsewhere else place

    def quotable(self, words: str) -> str:
        """Return the words of an answer, unless who said them is not declared by the endpoint."""
        return NOT_REPEATED if self._is_strange else words

    def permitted(self, addresses: Addresses) -> Addresses:
        """Return those addresses of a host that may be connected to, or raise ForbiddenPeer."""
        kinds = [_kind_of(address[4][0]) for address in addresses]
        allowed = [
            address for address, kind in zip(addresses, kinds, strict=True) if self._allows(kind)
        ]
        if addresses and not allowed:
            raise ForbiddenPeer(kinds[0], redirected=self._redirected)
        return allowed

    def meet(self, sock: socket.socket) -> None:
        """Look at whom a socket is connected to; raise ForbiddenPeer if nothing may be sent."""
        kind = _kind_of(sock.getpeername()[0])
        if not self._allows(kind):
            raise ForbiddenPeer(kind, redirected=self._redirected)
        if not self._redirected:
            self._own = kind

    def _allows(self, kind: Kind) -> bool:
        if kind in NOBODYS:
            return False
        return not self._redirected or kind in {Kind.PUBLIC, self._own}


def _kind_of(address: str) -> Kind:
    return kind_of(ip_address(address))


def origin(address: Url) -> tuple[str, str, int]:
    """Return scheme, host and port: a credential for one of them is for no other."""
    scheme = str(address.scheme)
    return scheme, plain_host(address), address.port or PORTS.get(scheme, 0)


def host_and_port(address: Url) -> str:
    """Return what is connected to, as `st-048.example.org:8443` or `[2001:db8::48]:1094`."""
    _, host, port = origin(address)
    return f"{host}:{port}"


def plain_host(address: Url) -> str:
    """Return a host as one compares it."""
    return name_of(address.host or "")
