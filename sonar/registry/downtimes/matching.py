"""Whom an announcement concerns: the endpoints at the hosts of its services.

Only services that are storage on disk count, and perfSONAR's for endpoints that test the network:
where a computing element, a cache or tape is down, disk at the same host still works. If the
announcement names endpoints of a service by their URLs, it concerns no other ones. A host that an
endpoint declares as one of its data hosts is one of several: that it is down is a warning there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sonar.models import Alias, Downtime, Endpoint
from sonar.models.aliases import HOSTS, AliasKind
from sonar.movers.catalogue import carries_files
from sonar.notation.addresses import PROTOCOLS, Place, is_url, name_of, place_of
from sonar.notation.data_hosts import data_hosts
from sonar.registry import aliases
from sonar.registry.aliases import Unknown
from sonar.registry.downtimes.announcement import AffectedService, Announcement

Unmatched = tuple[AffectedService, Announcement]
"""A service at a host where no endpoint is, and a downtime of it."""
OUTAGE, WARNING = Downtime.Severity.OUTAGE, Downtime.Severity.WARNING
STORAGE = re.compile(
    r"srm|gridftp|gsiftp|webdav|xroot|dcache|pelican|classic-se"
    r"|(?<![a-z])(eos|s3|swift|dpm|storm)(?![a-z])"
)
CACHE = re.compile(r"(?<!d)cache")
NETWORK = re.compile("perfsonar")
WEB = frozenset({"http", "https"})


@dataclass
class EndpointsByHost:
    """The endpoints in use, and who is at a host or has a resource; aliases count as well."""

    endpoints: list[Endpoint]
    by_host: dict[str, list[Endpoint]] = field(default_factory=dict)
    by_resource: dict[str, list[Endpoint]] = field(default_factory=dict)

    @classmethod
    def read(cls) -> EndpointsByHost:
        """Read them with their sites. Two SQL queries."""
        endpoints = aliases.endpoints_in_use()
        index = cls(endpoints, aliases.by_host(endpoints))
        for alias in Alias.objects.filter(kind__in=[*HOSTS, AliasKind.OSG_RESOURCE]):
            index._add(alias)
        return index

    def _add(self, alias: Alias) -> None:
        """Let an alias stand for its endpoint, or for all endpoints of its site."""
        names, name = self.by_host, name_of(alias.name)
        if alias.kind == AliasKind.OSG_RESOURCE:
            names, name = self.by_resource, alias.name
        endpoints = names.setdefault(name, [])
        endpoints += [
            endpoint
            for endpoint in self.endpoints
            if endpoint.pk == alias.endpoint_id or endpoint.site_id == alias.site_id
        ]

    def at(self, service: AffectedService) -> Iterator[tuple[Endpoint, bool]]:
        """Yield the endpoints that a service is part of, and whether it is all of them."""
        for endpoint in named_endpoints(self.by_host.get(service.host, []), service):
            yield endpoint, True
        if service.owner_kind == AliasKind.OSG_RESOURCE:
            for endpoint in self.by_resource.get(service.owner, ()):
                yield endpoint, True
        for endpoint in self.endpoints:
            if endpoint.data_hosts and has_data_host(endpoint, service.host):
                yield endpoint, False

    def of_sites(self) -> dict[int, set[int]]:
        """Return by site the ids of its endpoints."""
        by_site: dict[int, set[int]] = {}
        for endpoint in self.endpoints:
            by_site.setdefault(endpoint.site_id, set()).add(endpoint.pk)
        return by_site


def has_data_host(endpoint: Endpoint, host: str) -> bool:
    """Say whether an endpoint declares a host as one of its data hosts, at whatever port."""
    return any(declared.has(host) for declared in data_hosts(tuple(endpoint.data_hosts)))


def named_endpoints(endpoints: list[Endpoint], service: AffectedService) -> list[Endpoint]:
    """Return those of the endpoints at a host that a service's URL can mean; all without a URL.

    Those at another port or by another protocol are not meant; nor are those at another path, if
    the path of the URL is that of some of them: sites often give one that only their monitoring
    uses. The URL of SRM says nothing of the doors behind it.
    """
    if not is_url(service.url) or "srm" in service.kind.casefold():
        return endpoints
    try:
        named, has_port = place_of(service.url), urlsplit(service.url).port is not None
        places = [(endpoint, place_of(endpoint.base_url)) for endpoint in endpoints]
    except ValueError:  # a port that cannot be
        return endpoints
    if named.protocol not in {protocol.name for protocol in PROTOCOLS.values()}:
        return endpoints
    meant = [
        (endpoint, place)
        for endpoint, place in places
        if (place.protocol == named.protocol or {place.protocol, named.protocol} <= WEB)
        and (not has_port or place.port == named.port)
    ]
    at_path = [
        endpoint for endpoint, place in meant if Place(*place.server, named.path).overlaps(place)
    ]
    return at_path or [endpoint for endpoint, _ in meant]


def is_storage(service: AffectedService) -> bool:
    kind = service.kind.casefold()
    return STORAGE.search(kind) is not None and CACHE.search(kind) is None


def is_of_network(service: AffectedService) -> bool:
    return NETWORK.search(service.kind.casefold()) is not None


def is_of(service: AffectedService, endpoint: Endpoint) -> bool:
    """Say whether this kind of service is what an endpoint is tested by."""
    if not carries_files(endpoint.base_url):
        return is_of_network(service)
    return is_storage(service) and not service.is_tape


def is_of_tape_alone(announcement: Announcement) -> bool:
    """Say whether tape is all of the storage that an announcement is of."""
    of_tape = {service.is_tape for service in announcement.services if is_storage(service)}
    return of_tape == {True}


def severities(
    announcement: Announcement, endpoints: EndpointsByHost
) -> dict[int, Downtime.Severity]:
    """Return what an announcement means for each endpoint that it concerns, by its id."""
    concerned: dict[int, Downtime.Severity] = {}
    for service in announcement.services:
        for endpoint, is_all in endpoints.at(service):
            if not is_of(service, endpoint):
                continue
            severity = announcement.severity if is_all else WARNING
            if concerned.get(endpoint.pk) != OUTAGE:
                concerned[endpoint.pk] = severity
    return concerned


def rows_of(
    announcement: Announcement,
    endpoints: EndpointsByHost,
    origin: str,
    by_site: Mapping[int, set[int]],
) -> list[Downtime]:
    """Return the rows of a downtime: one for a site whose endpoints are all concerned alike."""
    concerned = severities(announcement, endpoints)
    rows = []
    for site, own in by_site.items():
        alike = {concerned.get(endpoint) for endpoint in own}
        if len(alike) == 1 and (severity := alike.pop()):
            rows.append(row_of(announcement, origin, severity, site_id=site))
            continue
        rows += [
            row_of(announcement, origin, concerned[endpoint], endpoint_id=endpoint)
            for endpoint in sorted(own & concerned.keys())
        ]
    return rows


def row_of(
    announcement: Announcement, origin: str, severity: Downtime.Severity, **subject: int
) -> Downtime:
    return Downtime(
        origin=origin,
        key=announcement.key,
        starts_at=announcement.starts_at,
        ends_at=announcement.ends_at,
        severity=severity,
        reason=announcement.reason,
        url=announcement.url,
        **subject,
    )


def unknown_names(unmatched: Sequence[Unmatched]) -> Iterator[Unknown]:
    """Yield hosts, and sites or resources, that stand for nothing. At most four SQL queries."""
    owners: dict[AliasKind, dict[str, str]] = {}
    for service, _ in unmatched:
        kind = AliasKind.PERFSONAR_HOST if is_of_network(service) else AliasKind.SE_HOST
        yield Unknown(kind, service.host, f"{service.kind} of {service.owner}")
        owners.setdefault(service.owner_kind, {})[service.owner] = service.host
    for kind, hosts in owners.items():
        known_names = aliases.find(kind, hosts.keys())
        for owner, host in hosts.items():
            if owner not in known_names:
                yield Unknown(kind, owner, f"with host {host}")


def without_endpoint(
    announcements: Iterable[Announcement], endpoints: EndpointsByHost
) -> Iterator[Unmatched]:
    """Yield the services of disk and network at hosts where no endpoint is, each host once."""
    hosts: set[str] = set()
    for announcement in announcements:
        for service in announcement.services:
            is_tested = is_of_network(service) or (is_storage(service) and not service.is_tape)
            is_new = service.host not in hosts and is_tested
            if is_new and next(endpoints.at(service), None) is None:
                hosts.add(service.host)
                yield service, announcement
