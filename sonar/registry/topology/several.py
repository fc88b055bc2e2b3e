"""Names that a source has for sites and hosts, where they stand for one thing only."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from sonar.models.aliases import AliasKind
from sonar.notation.addresses import host_of
from sonar.registry.topology.model import AliasFacts, EndpointFacts

MOST_NAMED = 5


def of_one_site(
    kind: AliasKind, pairs: Iterable[tuple[str, str]]
) -> tuple[list[AliasFacts], list[str]]:
    """Return the aliases of (name, site); and a sentence for each name that several sites have."""
    sites: defaultdict[str, set[str]] = defaultdict(set)
    for name, site in pairs:
        sites[name].add(site)
    aliases = [
        AliasFacts(kind=kind, name=name, site=next(iter(owners)))
        for name, owners in sites.items()
        if len(owners) == 1
    ]
    several = [
        f"{kind.label} {name}: refers to several sites: {_few(owners)}"
        for name, owners in sites.items()
        if len(owners) > 1
    ]
    return aliases, several


def of_hosts(
    endpoints: Iterable[EndpointFacts], hosts: Mapping[str, Iterable[str]]
) -> tuple[list[AliasFacts], list[str]]:
    """Return the aliases of the other hosts of endpoints, by their names.

    That of a base URL needs none. One of a single endpoint is its; others are their site's.
    """
    by_host: defaultdict[str, list[EndpointFacts]] = defaultdict(list)
    own = set()
    for endpoint in endpoints:
        own.add(host_of(endpoint.base_url))
        for host in sorted(hosts.get(endpoint.name, ())):
            by_host[host].append(endpoint)
    others = {host: users for host, users in by_host.items() if host not in own}
    single = [
        AliasFacts(kind=AliasKind.SE_HOST, name=host, endpoint=users[0].name)
        for host, users in others.items()
        if len(users) == 1
    ]
    shared = [
        (host, each.site) for host, users in others.items() if len(users) > 1 for each in users
    ]
    aliases, several = of_one_site(AliasKind.SE_HOST, shared)
    return [*single, *aliases], several


def _few(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - MOST_NAMED
    return ", ".join(ordered[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
