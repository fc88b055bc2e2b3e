"""ATLAS CRIC: answers of site/query/?json and of ddmendpoint/query/?json, together or alone.

Each is an object by name. An endpoint is called as its RSE.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from sonar.models.aliases import AliasKind
from sonar.registry.tape import says_tape
from sonar.registry.topology.base_urls import base_url, best, hosts_of, unusable
from sonar.registry.topology.elements import Each, shaped_elements
from sonar.registry.topology.model import AliasFacts, EndpointFacts, SiteFacts, Topology, position
from sonar.registry.topology.reading import Shaped, Text, TopologyError
from sonar.registry.topology.several import of_hosts, of_one_site

NAME = "cric-atlas"
ANSWERS = "responses from ATLAS CRIC to site/query/?json, ddmendpoint/query/?json or both"
OUT_OF_USE = "DISABLED"
# The activities whose protocols move files between sites: those that write, the likeliest first.
WRITING = ("third_party_copy", "write_wan")
ACTIVITIES = (*WRITING, "read_wan")


class CricSite(Shaped):
    name: Text
    tier_level: Annotated[int, Field(ge=0)] | None = None
    cloud: Text | None = None
    country_code: Text | None = None
    latitude: float | None = None
    longitude: float | None = None
    rc_site: Text | None = None


class ObjectProtocol(Shaped):
    endpoint: Text
    path: Text | None = None


class DdmEndpoint(Shaped):
    name: Text
    site: Text
    id: int | Text | None = None
    token: Text | None = None
    type: Text | None = None
    state: Text | None = None
    is_tape: bool | None = None
    # What else may say that it is tape; free texts.
    rse_type: Any = None
    qos: Any = None
    access_latency: Any = None
    retention_policy: Any = None
    # By activity: a URL, a priority and a path below the URL.
    aprotocols: dict[str, list[Annotated[tuple[Text, int, Text], Field(strict=False)]]] | None = (
        None
    )
    arprotocols: dict[str, list[ObjectProtocol]] | None = None


def parse(documents: Mapping[str, dict[str, Any]]) -> Topology:
    """Return what these documents say, by the names of their files; raise TopologyError."""
    sites: dict[str, CricSite] = {}
    endpoints: dict[str, DdmEndpoint] = {}
    left_out: list[str] = []
    unread: list[str] = []
    for name, document in documents.items():
        if _has_endpoints(document):
            rows, problems = shaped_elements(Each[dict[str, DdmEndpoint]], document, name)
            endpoints |= rows
            unread += document.keys() - rows.keys()
        elif _has_sites(document):
            rows, problems = shaped_elements(Each[dict[str, CricSite]], document, name)
            sites |= rows
        else:
            sentence = "not a response to site/query or ddmendpoint/query"
            raise TopologyError([f"{name}: {sentence}"])
        left_out += problems
    topology = _topology(sites, endpoints)
    return topology.model_copy(
        update={"left_out": [*left_out, *topology.left_out], "unread": sorted(unread)}
    )


def _has_endpoints(document: dict[str, Any]) -> bool:
    return any(isinstance(row, dict) and "site" in row for row in document.values())


def _has_sites(document: dict[str, Any]) -> bool:
    rows = document.values()
    return any(isinstance(row, dict) and {"tier_level", "rc_site"} & row.keys() for row in rows)


def _topology(sites: dict[str, CricSite], endpoints: dict[str, DdmEndpoint]) -> Topology:
    facts: list[EndpointFacts] = []
    hosts: dict[str, set[str]] = {}
    for endpoint in endpoints.values():
        urls, written_to = _urls(endpoint, ACTIVITIES), _urls(endpoint, WRITING)
        reason = unusable(urls, is_tape=_is_tape(endpoint))
        if not reason and not best(written_to):
            reason = "the endpoint has no protocol for writing from other sites, only for reading"
        facts.append(
            EndpointFacts(
                name=endpoint.name,
                source_id="" if endpoint.id is None else str(endpoint.id),
                site=endpoint.site,
                base_url="" if reason else best(written_to),
                label=endpoint.type or endpoint.token,
                retired=None if endpoint.state is None else endpoint.state == OUT_OF_USE,
                unusable=reason,
            )
        )
        if not reason:
            hosts[endpoint.name] = hosts_of(urls)
    usable = [row for row in facts if not row.unusable]
    rcsites = [(site.rc_site, site.name) for site in sites.values() if site.rc_site]
    aliases, several = of_one_site(AliasKind.RCSITE, rcsites)
    of_endpoints, at_several = of_hosts(usable, hosts)
    rses = [AliasFacts(kind=AliasKind.RSE, name=each.name, endpoint=each.name) for each in facts]
    return Topology(
        source=NAME,
        sites=[_site(site) for site in sites.values()],
        endpoints=facts,
        aliases=[*aliases, *rses, *of_endpoints],
        left_out=[*several, *at_several],
    )


def _is_tape(endpoint: DdmEndpoint) -> bool:
    """Say whether any of its fields says so, whatever the others say."""
    others = (endpoint.rse_type, endpoint.qos, endpoint.access_latency, endpoint.retention_policy)
    texts = [text for text in others if isinstance(text, str)]
    return bool(endpoint.is_tape) or says_tape(endpoint.type, endpoint.token, endpoint.name, *texts)


def _site(site: CricSite) -> SiteFacts:
    latitude, longitude = position(site.latitude, site.longitude)
    return SiteFacts(
        name=site.name,
        cloud=site.cloud or None,
        tier=site.tier_level,
        country=site.country_code or None,
        latitude=latitude,
        longitude=longitude,
    )


def _urls(endpoint: DdmEndpoint, activities: Iterable[str]) -> list[str]:
    """Return the URLs of its protocols for these activities, the likeliest first."""
    urls: list[str] = []
    for activity in activities:
        protocols = (endpoint.aprotocols or {}).get(activity, [])
        urls += [
            base_url(url, prefix) for url, _, prefix in sorted(protocols, key=lambda row: row[1])
        ]
        stores = (endpoint.arprotocols or {}).get(activity, [])
        urls += [base_url(store.endpoint, store.path or "") for store in stores]
    return urls
