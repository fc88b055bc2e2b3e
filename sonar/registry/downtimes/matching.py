"""Whom an announcement concerns: the endpoints at the hosts of its services.

Only services that are storage count, and perfSONAR's for endpoints that test the network: where a
computing element is down, storage at the same host still works. A host that an endpoint declares as
one of its data hosts is one of several: that it is down is a warning there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sonar.models import Alias, Downtime, Endpoint
from sonar.models.aliases import HOSTS, AliasKind
from sonar.movers.catalogue import carries_files
from sonar.notation.addresses import name_of
from sonar.notation.data_hosts import data_hosts
from sonar.registry import aliases
from sonar.registry.aliases import Unknown
from sonar.registry.downtimes.announcement import AffectedService, Announcement

Unmatched = tuple[AffectedService, Announcement]
"""A service at a host where no endpoint is, and a downtime of it."""
OUTAGE, WARNING = Downtime.Severity.OUTAGE, Downtime.Severity.WARNING
STORAGE = re.compile(
    r"srm|gridftp|gsiftp|webdav|xroot|dcache|pelican|classic-se|(?<![a-z])(eos|s3|swift)(?![a-z])"
)
NETWORK = re.compile("perfsonar")


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
        for endpoint in self.by_host.get(service.host, ()):
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


def is_of(service: AffectedService, endpoint: Endpoint) -> bool:
    """Say whether this kind of service is what an endpoint is tested by."""
    kinds = STORAGE if carries_files(endpoint.base_url) else NETWORK
    return kinds.search(service.kind.casefold()) is not None


def is_of_interest(service: AffectedService) -> bool:
    """Say whether any endpoint could be of this kind."""
    kind = service.kind.casefold()
    return STORAGE.search(kind) is not None or NETWORK.search(kind) is not None


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
                yield Unknown(kind, owner, f"it has {host}")


def is_of_network(service: AffectedService) -> bool:
    return NETWORK.search(service.kind.casefold()) is not None


def without_endpoint(
    announcements: Iterable[Announcement], endpoints: EndpointsByHost
) -> Iterator[Unmatched]:
    """Yield the storage services at hosts where no endpoint is, each host once."""
    hosts: set[str] = set()
    for announcement in announcements:
        for service in announcement.services:
            is_new = service.host not in hosts and is_of_interest(service)
            if is_new and next(endpoints.at(service), None) is None:
                hosts.add(service.host)
                yield service, announcement
