"""Where the storage of an endpoint may lead clients on: the data servers that somebody declared.

    st-048.example.org          that host, at any port
    st-*.example.org:8443       all whose first part begins so, at one port
    192.0.2.0/24:20000-25000    a network, at a range of ports
    [2001:db8::/48]             a network of IPv6

A `*` stands for a part of the first label alone, and two labels at least stand after it: a domain
has many owners, a cluster has one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple

from sonar.notation.addresses import NOBODYS, address_of, kind_of

Network = IPv4Network | IPv6Network

SENTENCE = (
    "A data host is a lower-case host name, an IP address or a network, optionally with ports. "
    "Examples: st-048.example.org, st-*.example.org:8443, 192.0.2.0/24:20000-25000 or "
    "[2001:db8::/48]. The first label of a name with at least three labels can contain one *. "
    "The largest networks are /16 for IPv4 and /32 for IPv6."
)
MOST = 100
"""So many data hosts an endpoint may declare."""
FEWEST_OF_A_RANGE = 3
"""Servers of one pattern at fewer ports than these are suggested port by port."""
LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
NAME = rf"{LABEL}(?:\.{LABEL})*"
PATTERN = rf"[a-z0-9_-]*\*[a-z0-9_-]*(?:\.{LABEL}){{2,}}"
V4 = r"[0-9.]+(?:/[0-9]{1,2})?"
V6 = r"\[[0-9a-f:.]+(?:/[0-9]{1,3})?\]"
WHOLE = re.compile(
    rf"(?P<host>{V4}|{V6}|{NAME}|{PATTERN})(?::(?P<first>[1-9][0-9]{{0,4}})(?:-(?P<last>[1-9][0-9]{{0,4}}))?)?"
)
ALL_PORTS = range(1, 65536)
WIDEST = {4: 16, 6: 32}


class DataHost(NamedTuple):
    """Hosts that are declared in one line: names by a pattern, or a network of addresses."""

    pattern: str
    network: Network | None
    ports: range

    def covers(self, host: str, port: int) -> bool:
        """Say whether a host, as `name_of` writes it, is meant at this port."""
        return port in self.ports and self.has(host)

    def has(self, host: str) -> bool:
        """Say whether a host is meant, at whatever port."""
        if self.network is None:
            return self.matches(host)
        address = address_of(host)
        return address is not None and address in self.network

    def matches(self, name: str) -> bool:
        """Say whether the pattern is of this name."""
        before, star, after = self.pattern.partition("*")
        if not star:
            return name == self.pattern
        first, _, rest = name.partition(".")
        ending, _, domain = after.partition(".")
        longer = len(first) > len(before) + len(ending)
        return longer and rest == domain and first.startswith(before) and first.endswith(ending)


@lru_cache(maxsize=10_000)
def data_host(text: str) -> DataHost | None:
    """Read one declared data host; None if it is none that may be declared."""
    match = WHOLE.fullmatch(text)
    if match is None or len(text) > 255:
        return None
    first = int(match["first"] or ALL_PORTS[0])
    last = int(match["last"] or match["first"] or ALL_PORTS[-1])
    if not ALL_PORTS[0] <= first <= last <= ALL_PORTS[-1]:
        return None
    host, ports = match["host"], range(first, last + 1)
    address = None if "/" in host or "*" in host else address_of(host)
    if address or "/" in host or "[" in host:
        network = _network(str(address or host.strip("[]")))
        return DataHost("", network, ports) if network else None
    return DataHost(host, None, ports)


def _network(text: str) -> Network | None:
    try:
        network = ip_network(text)
    except ValueError:
        return None
    is_wide = network.prefixlen < WIDEST[network.version]
    return None if is_wide or kind_of(network.network_address) in NOBODYS else network


def problem(text: str) -> str:
    """Say why this cannot be declared; empty if it can."""
    return "" if data_host(text) else SENTENCE


@lru_cache(maxsize=1000)
def data_hosts(texts: tuple[str, ...]) -> tuple[DataHost, ...]:
    """Read what an endpoint declares; what was written past the forms allows nothing."""
    return tuple(filter(None, map(data_host, texts)))


def are_covered(declared: Iterable[DataHost], host: str, port: int) -> bool:
    """Say whether a host and port are among those declared."""
    return any(entry.covers(host, port) for entry in declared)


def covers_server(declared: Iterable[DataHost], server: str) -> bool:
    """Say the same of a server that is written as `host:port`."""
    host, _, port = server.rpartition(":")
    return port.isdecimal() and are_covered(declared, host, int(port))


def suggestions(servers: Iterable[str]) -> list[str]:
    """Return what to declare so that these servers, as `host:port`, are allowed.

    Pools of dCache have a port each: those of one pattern are suggested with the range of them.
    """
    ports: defaultdict[str, set[int]] = defaultdict(set)
    for server in servers:
        host, _, port = server.rpartition(":")
        ports[_with_siblings(host)].add(int(port))
    return sorted(f"{host}:{port}" for host, each in ports.items() for port in _at(each))


def _with_siblings(host: str) -> str:
    """Return a host as it is, or with its numbered siblings: `st-*.cern.ch`."""
    first, _, domain = host.partition(".")
    numbered = re.match(r"([a-z_-]+)[0-9]", first)
    if numbered and "." in domain and address_of(host) is None:
        return f"{numbered[1]}*.{domain}"
    return host


def _at(ports: set[int]) -> list[str]:
    if len(ports) < FEWEST_OF_A_RANGE:
        return [str(port) for port in ports]
    return [f"{min(ports)}-{max(ports)}"]
