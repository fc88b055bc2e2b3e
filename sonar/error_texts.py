"""Errors as all readers see them: endpoints by their names, and no address inside a network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from sonar.models import Endpoint

# Schemes of base URLs whose port may be left out, and is said by movers all the same.
PORTS = {"http": 80, "dav": 80, "https": 443, "davs": 443, "root": 1094, "xroot": 1094}
ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-fA-F:.]+\]")
HIDDEN, SERVER = "[internal address]", "[server]"


def for_all(error: str, ends: Iterable[Endpoint]) -> str:
    """Return an error without what only some may see: where endpoints are, and what is behind.

    `glasgow.example:1094/data/sonar/source/20: 403` is `GLASGOW_DATADISK/sonar/source/20: 403`.
    """
    for pattern, name in _places(list(ends)):
        error = pattern.sub(lambda _, name=name: name, error)  # type: ignore[misc]
    return ADDRESS.sub(_hidden, error)


def _places(ends: Sequence[Endpoint]) -> Iterator[tuple[re.Pattern[str], str]]:
    """Yield what stands for each end, the most special first: two may share a server."""
    places = [(urlsplit(end.base_url), end.name) for end in ends]
    hosts = [re.escape(parts.hostname or "") for parts, _ in places]
    for base in (True, False):
        for host, (parts, name) in zip(hosts, places, strict=True):
            path = re.escape(parts.path.rstrip("/")) if base else ""
            yield _address(f"{host}{_port(parts)}{path}"), name
    shared = len(set(hosts)) < len(hosts)
    for host, (_, name) in zip(hosts, places, strict=True):
        yield _address(rf"{host}(?::\d+)?"), SERVER if shared else name


def _address(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-])(?:\w+://)?{pattern}(?![\w:-]|\.\w)", re.IGNORECASE)


def _port(parts: SplitResult) -> str:
    return f":{parts.port}" if parts.port else f"(?::{PORTS.get(parts.scheme, 0)})?"


def _hidden(found: re.Match[str]) -> str:
    try:
        address = ip_address(found[0].strip("[]"))
    except ValueError:
        return found[0]
    return HIDDEN if address.is_private else found[0]
