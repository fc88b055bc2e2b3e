"""Rucio: the answer of GET /export/, which has all RSEs with their attributes and protocols.

Attributes are free words of a VO: those that are as expected are used, others passed over.
"""

import re
from collections.abc import Mapping
from typing import Any

from sonar.models.aliases import AliasKind
from sonar.registry.topology.base_urls import base_url, best, hosts_of, unusable
from sonar.registry.topology.model import AliasFacts, EndpointFacts, SiteFacts, Topology, position
from sonar.registry.topology.reading import Shaped, Text, TopologyError, shaped
from sonar.registry.topology.several import of_hosts

NAME = "rucio"
ANSWERS = "the answer of Rucio to GET /export/"
TAPE = "TAPE"
# What a protocol may be for between sites, the likeliest first; 0 is off.
PURPOSES = ("third_party_copy_read", "third_party_copy_write", "read", "write")


class Domains(Shaped):
    wan: dict[str, int | None] | None = None


class Protocol(Shaped):
    scheme: Text
    hostname: Text | None = None
    port: int | None = None
    prefix: Text | None = None
    domains: Domains | None = None


class Rse(Shaped):
    rse: Text
    rse_type: Text | None = None
    availability_read: bool | None = None
    availability_write: bool | None = None
    deleted: bool | None = None
    latitude: float | None = None
    longitude: float | None = None
    attributes: dict[str, Any] | None = None
    protocols: list[Protocol] | None = None


class Export(Shaped):
    rses: dict[str, Rse]


def parse(documents: Mapping[str, dict[str, Any]]) -> Topology:
    """Return what these documents say, by the names of their files; raise TopologyError."""
    rses: dict[str, Rse] = {}
    for name, document in documents.items():
        if "rses" not in document:
            raise TopologyError([f"{name}: no answer of GET /export/: it has no `rses`"])
        rses |= {rse.rse: rse for rse in shaped(Export, document, name).rses.values()}
    return _topology([rse for rse in rses.values() if not rse.deleted])


def _topology(rses: list[Rse]) -> Topology:
    sites: dict[str, SiteFacts] = {}
    endpoints: list[EndpointFacts] = []
    left_out: list[str] = []
    hosts: dict[str, set[str]] = {}
    for rse in rses:
        urls = _urls(rse)
        if sentence := _unusable(rse, urls):
            left_out.append(f"{rse.rse}: {sentence}")
            continue
        site = _site(rse)
        sites.setdefault(site.name, site)
        endpoints.append(_endpoint(rse, site.name, best(urls)))
        hosts[rse.rse] = hosts_of(urls)
    of_endpoints, several = of_hosts(endpoints, hosts)
    names = [AliasFacts(kind=AliasKind.RSE, name=row.name, endpoint=row.name) for row in endpoints]
    return Topology(
        source=NAME,
        sites=list(sites.values()),
        endpoints=endpoints,
        aliases=[*names, *of_endpoints],
        left_out=[*left_out, *several],
    )


def _unusable(rse: Rse, urls: list[str]) -> str:
    is_tape = rse.rse_type == TAPE
    if not is_tape and not _attribute(rse, "site"):
        return "it has no attribute `site`"
    return unusable(urls, is_tape=is_tape)


def _endpoint(rse: Rse, site: str, url: str) -> EndpointFacts:
    said = [flag for flag in (rse.availability_read, rse.availability_write) if flag is not None]
    return EndpointFacts(
        name=rse.rse,
        site=site,
        base_url=url,
        label=_attribute(rse, "type") or None,
        retired=not any(said) if said else None,
    )


def _site(rse: Rse) -> SiteFacts:
    country, tier = _attribute(rse, "country"), re.fullmatch("T?([0-3])", _attribute(rse, "tier"))
    latitude, longitude = position(rse.latitude, rse.longitude)
    return SiteFacts(
        name=_attribute(rse, "site"),
        cloud=_attribute(rse, "cloud") or None,
        tier=int(tier[1]) if tier else None,
        country=country if re.fullmatch("[A-Z]{2}", country) else None,
        latitude=latitude,
        longitude=longitude,
    )


def _attribute(rse: Rse, name: str) -> str:
    """Return an attribute as text; empty if it has none, or one that is no text and no number."""
    value = (rse.attributes or {}).get(name)
    is_said = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value).strip()[:80] if is_said else ""


def _urls(rse: Rse) -> list[str]:
    """Return where files can be moved to and from, the likeliest first."""
    rated = [(_rank(protocol), protocol) for protocol in rse.protocols or []]
    usable = sorted(((rank, row) for rank, row in rated if rank), key=lambda pair: pair[0])
    return [_url(protocol) for _, protocol in usable]


def _rank(protocol: Protocol) -> tuple[int, int]:
    """Return what a protocol is for and with which priority; nothing if not between sites."""
    wan = (protocol.domains.wan if protocol.domains else None) or {}
    ranks = ((place, wan.get(purpose) or 0) for place, purpose in enumerate(PURPOSES, 1))
    return next(((place, priority) for place, priority in ranks if priority), ())  # type: ignore[return-value]


def _url(protocol: Protocol) -> str:
    host = (protocol.hostname or "").rpartition("://")[2]
    port = f":{protocol.port}" if protocol.port else ""
    return base_url(f"{protocol.scheme}://{host}{port}", protocol.prefix or "")
