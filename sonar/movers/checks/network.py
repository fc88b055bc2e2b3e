"""The steps of a check below all protocols: the name of a host, and its port."""

import errno
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sonar.movers.base import End, MoverError
from sonar.movers.checks.sequence import sentence
from sonar.movers.file_address import PORTS, parsed
from sonar.movers.http.deadlines import UNKNOWN_NAME, Wait, resolve
from sonar.movers.http.failures import detail_of
from sonar.movers.http.peers import ForbiddenPeer
from sonar.notation.addresses import address_of
from sonar.notation.check_steps import CheckStep, StepState
from sonar.notation.units import format_seconds

CONNECT_SECONDS = 4.0
"""For each address: a host may have several that do not answer."""
MOST_ADDRESSES = 6
VERSIONS = {socket.AF_INET: "IPv4", socket.AF_INET6: "IPv6"}
WITHOUT_ROUTE = {errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
"""This machine has no network of that kind, so the address says nothing about others."""


@dataclass(frozen=True)
class Address:
    """One address of a host, as sockets take it."""

    family: int
    place: tuple[str | int, ...]

    @property
    def words(self) -> str:
        """Say which it is: `192.0.2.1 (IPv4)`."""
        return f"{self.place[0]} ({VERSIONS[socket.AddressFamily(self.family)]})"


@dataclass(frozen=True)
class Contact:
    """What became of a connection to one address: empty ``why`` if it was made."""

    address: Address
    seconds: float
    why: str = ""
    lacks_route: bool = False


class Host:
    """The server of a base URL as this machine's network knows it; each thing is found out once."""

    def __init__(self, end: End) -> None:
        self.where, address = end.where, parsed(end, end.base_url)
        self.scheme, self.name = str(address.scheme), str(address.host).strip("[]")
        self.port = address.port or PORTS[self.scheme]

    @cached_property
    def addresses(self) -> Sequence[Address]:
        """Return them, or raise MoverError where no storage can be found by the name."""
        wait = Wait(CONNECT_SECONDS, CONNECT_SECONDS)
        try:
            places = wait.route.permitted(resolve(self.name, self.port, wait.end, wait))
        except ForbiddenPeer as error:
            raise MoverError(self.where, f"{self.name} {error}", permanent=True) from error
        except TimeoutError as error:
            why = f"the DNS query for {self.name} was not answered within {CONNECT_SECONDS:g} s"
            raise MoverError(self.where, why) from error
        except (OSError, ValueError) as error:
            why = f"the host name {self.name} cannot be looked up"
            if isinstance(error, socket.gaierror):
                is_unknown = error.errno in UNKNOWN_NAME
                no_address = f"DNS has no address for {self.name}"
                why = no_address if is_unknown else f"{why}: {detail_of(error)}"
            raise MoverError(self.where, why) from error
        return [Address(each[0], each[4]) for each in places[:MOST_ADDRESSES]]

    @cached_property
    def contacts(self) -> Sequence[Contact]:
        return [self._contact(address) for address in self.addresses]

    def _contact(self, address: Address) -> Contact:
        began = time.monotonic()
        try:
            self.connected(address).close()
        except TimeoutError:
            return Contact(address, 0, f"no answer within {CONNECT_SECONDS:g} s")
        except OSError as error:
            return Contact(address, 0, detail_of(error), error.errno in WITHOUT_ROUTE)
        return Contact(address, time.monotonic() - began)

    @staticmethod
    def connected(address: Address) -> socket.socket:
        """Return a socket that is connected to an address; raises OSError."""
        sock = socket.socket(address.family, socket.SOCK_STREAM)
        sock.settimeout(CONNECT_SECONDS)
        try:
            sock.connect(address.place)
        except OSError:
            sock.close()
            raise
        return sock

    @property
    def first_reached(self) -> Address:
        return next(contact.address for contact in self.contacts if not contact.why)


NO_NETWORK = "this machine has no connectivity for this IP version"
ASK_DNS = (
    "Correct the host in the base URL, or the DNS settings of this worker. "
    "`getent ahosts HOST` shows the addresses of a host."
)
OPEN_PORT = (
    "Start the server, open its firewall for this worker, or correct the port in the base URL."
)
DEAD_ADDRESS = (
    "Make the server listen on all of its addresses, or delete the DNS entries of addresses that "
    "do not respond. Unresponsive addresses slow clients down."
)


def name_step(host: Host) -> CheckStep:
    """See which addresses a host has."""
    try:
        addresses = host.addresses
    except MoverError as error:
        return CheckStep("name", StepState.FAILED, sentence(str(error)), ASK_DNS)
    named = ", ".join(address.words for address in addresses)
    if address_of(host.name):
        return CheckStep("name", StepState.FINE, f"The base URL contains an IP address: {named}.")
    versions = {VERSIONS[socket.AddressFamily(each.family)] for each in addresses}
    lacking = [
        f" The host has no {each} address." for each in VERSIONS.values() if each not in versions
    ]
    return CheckStep("name", StepState.FINE, f"{host.name}: {named}.{''.join(lacking)}")


def port_step(host: Host) -> CheckStep:
    """See at which of its addresses a host takes connections."""
    open_ones = [each for each in host.contacts if not each.why]
    dead = [each for each in host.contacts if each.why and not each.lacks_route]
    untried = [each for each in host.contacts if each.lacks_route]
    took = [f"{each.address.words} in {format_seconds(each.seconds)}" for each in open_ones]
    parts = [f"Port {host.port} accepts connections: {', '.join(took)}."] if open_ones else []
    parts += [f"No connection to {each.address.words}: {each.why}." for each in dead]
    parts += [f"Not tried: {each.address.words}, as {NO_NETWORK}." for each in untried]
    if not open_ones:
        seen = f"Port {host.port} accepts no connections. {' '.join(parts)}"
        return CheckStep("port", StepState.FAILED, seen, OPEN_PORT)
    if dead:
        return CheckStep("port", StepState.WARNING, " ".join(parts), DEAD_ADDRESS)
    return CheckStep("port", StepState.FINE, " ".join(parts))
