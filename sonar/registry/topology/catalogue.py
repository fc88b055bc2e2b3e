"""The sources that there are, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from sonar.movers.base import Limits
from sonar.notation.addresses import is_url
from sonar.registry.topology.model import Topology
from sonar.registry.topology.reading import MOST_BYTES, TopologyError, decoded, shown
from sonar.registry.topology.sources import cric_atlas, cric_wlcg, rucio, srr

LIMITS = Limits(connect=10, answer=60, total=300)
NO_ADDRESS = "a URL is https://host/path, without user or password"

Parser = Callable[[Mapping[str, dict[str, Any]]], Topology]

_MODULES = (cric_atlas, rucio, cric_wlcg, srr)
SOURCES: dict[str, Parser] = {module.NAME: module.parse for module in _MODULES}
ANSWERS: dict[str, str] = {module.NAME: module.ANSWERS for module in _MODULES}
"""What to read of each, in words."""


def read(source: str, places: Iterable[str], ca_file: str = "") -> Topology:
    """Return what a source says in these files or at these URLs; raise TopologyError.

    ``ca_file`` has the certificates to trust, empty for the usual ones.
    """
    return SOURCES[source](
        {shown(place): decoded(_content(place, ca_file), shown(place)) for place in places}
    )


def _content(place: str, ca_file: str) -> bytes:
    # Loaded when used: pages, which are given documents, ask nobody.
    from sonar.registry import documents

    try:
        if not is_url(place):
            return documents.of_file(place, MOST_BYTES)
        parts = urlsplit(place)
        if parts.scheme != "https" or parts.username or parts.password:
            raise TopologyError([f"{shown(place)}: {NO_ADDRESS}"])
        return documents.Questions(LIMITS, MOST_BYTES, "application/json", ca_file).ask(place)
    except documents.NoDocument as error:
        raise TopologyError([str(error)]) from None


def read_contents(source: str, contents: Mapping[str, bytes]) -> Topology:
    """Return what a source says in documents, by their names; raise TopologyError."""
    return SOURCES[source]({name: decoded(each, name) for name, each in contents.items()})
