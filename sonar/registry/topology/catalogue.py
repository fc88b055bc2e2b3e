"""The sources that there are, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sonar.registry.topology.model import Topology
from sonar.registry.topology.reading import decoded
from sonar.registry.topology.sources import cric_atlas, cric_wlcg, rucio, srr

Parser = Callable[[Mapping[str, dict[str, Any]]], Topology]

_MODULES = (cric_atlas, rucio, cric_wlcg, srr)
SOURCES: dict[str, Parser] = {module.NAME: module.parse for module in _MODULES}
ANSWERS: dict[str, str] = {module.NAME: module.ANSWERS for module in _MODULES}
"""What to read of each, in words."""


def read(source: str, places: Iterable[str], ca_file: str = "") -> Topology:
    """Return what a source says in these files or at these URLs; raise TopologyError."""
    # Loaded when used: pages, which are given documents, ask nobody.
    from sonar.registry.topology.fetching import documents

    return SOURCES[source](documents(places, ca_file))


def read_contents(source: str, contents: Mapping[str, bytes]) -> Topology:
    """Return what a source says in documents, by their names; raise TopologyError."""
    return SOURCES[source]({name: decoded(each, name) for name, each in contents.items()})
