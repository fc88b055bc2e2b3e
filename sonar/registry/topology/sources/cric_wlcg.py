"""WLCG CRIC: answers of core/rcsite/query/?json and core/service/query/?json, SE and PerfSonar.

It says where sites are and what they are called, but not where in a storage Sonar may write: so it
adds neither sites nor endpoints. Sites are called as their rcsite.
"""

from collections.abc import Mapping
from typing import Any

from sonar.models.aliases import AliasKind
from sonar.notation.addresses import is_url
from sonar.registry.topology.base_urls import hosts_of
from sonar.registry.topology.elements import Each, shaped_elements
from sonar.registry.topology.model import AliasFacts, SiteFacts, Topology, position
from sonar.registry.topology.reading import Shaped, Text, TopologyError
from sonar.registry.topology.several import of_one_site

NAME = "cric-wlcg"
ANSWERS = "responses from WLCG CRIC to core/rcsite/query/?json and core/service/query/?json"
PERFSONAR = "perfsonar"


class RcSite(Shaped):
    name: Text
    country_code: Text | None = None
    latitude: float | None = None
    longitude: float | None = None
    rc_tier_level: int | None = None
    netsites: list[Text] | dict[str, Any] | None = None


class ServiceProtocol(Shaped):
    endpoint: Text | None = None


class Service(Shaped):
    rcsite: Text
    endpoint: Text | None = None
    type: Text | None = None
    flavour: Text | None = None
    protocols: dict[str, ServiceProtocol] | None = None


def parse(documents: Mapping[str, dict[str, Any]]) -> Topology:
    """Return what these documents say, by the names of their files; raise TopologyError."""
    sites: dict[str, RcSite] = {}
    services: dict[str, Service] = {}
    unread: list[str] = []
    for name, document in documents.items():
        rows = [row for row in document.values() if isinstance(row, dict)]
        if any("rcsite" in row for row in rows):
            read, left_out = shaped_elements(Each[dict[str, Service]], document, name)
            services |= read
            unread += left_out
        elif any("rc_tier_level" in row or "netsites" in row for row in rows):
            read, left_out = shaped_elements(Each[dict[str, RcSite]], document, name)
            sites |= read
            unread += left_out
        else:
            sentence = "not a response to rcsite/query or service/query"
            raise TopologyError([f"{name}: {sentence}"])
    return _topology(sites, services, unread)


def _topology(
    sites: dict[str, RcSite], services: dict[str, Service], unread: list[str]
) -> Topology:
    names = sorted(
        {site.name for site in sites.values()} | {row.rcsite for row in services.values()}
    )
    aliases = [AliasFacts(kind=AliasKind.RCSITE, name=name, site=name) for name in names]
    left_out = [*unread]
    for kind, pairs in (
        (
            AliasKind.NETSITE,
            [(net, site.name) for site in sites.values() for net in _netsites(site)],
        ),
        (AliasKind.PERFSONAR_HOST, _hosts(services, perfsonar=True)),
        (AliasKind.SE_HOST, _hosts(services, perfsonar=False)),
    ):
        single, several = of_one_site(kind, pairs)
        aliases += single
        left_out += several
    facts = {name: SiteFacts(name=name) for name in names}
    facts |= {site.name: _site(site) for site in sites.values()}
    return Topology(
        source=NAME, adds=False, sites=list(facts.values()), aliases=aliases, left_out=left_out
    )


def _site(site: RcSite) -> SiteFacts:
    latitude, longitude = position(site.latitude, site.longitude)
    return SiteFacts(
        name=site.name,
        tier=site.rc_tier_level,
        country=site.country_code or None,
        latitude=latitude,
        longitude=longitude,
    )


def _netsites(site: RcSite) -> list[str]:
    return list(site.netsites or ())


def _hosts(services: dict[str, Service], *, perfsonar: bool) -> list[tuple[str, str]]:
    """Return the hosts of services, each with its rcsite."""
    pairs = []
    for service in services.values():
        words = f"{service.type or ''} {service.flavour or ''}".casefold()
        if (PERFSONAR in words) != perfsonar:
            continue
        urls = [service.endpoint, *(row.endpoint for row in (service.protocols or {}).values())]
        full = [url if is_url(url) else f"https://{url}" for url in urls if url]
        pairs += [(host, service.rcsite) for host in sorted(hosts_of(full))]
    return pairs
