"""All sites: who they are, and how they stand in one size class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix.answers.grid import Grid
from matrix.answers.site.ranking import ENDS, RankedSide, Standing, standings
from matrix.answers.site.reports import of_sites
from matrix.query.filters import ATTRIBUTES, Filter, alternatives
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.axes import EndpointInfo
from matrix.store import registry
from matrix.store.snapshot import snapshot
from sonar.models import Site


@dataclass(frozen=True)
class SiteOverview:
    """A site with its endpoints, retired ones too."""

    site: Site
    endpoints: tuple[EndpointInfo, ...]
    source: Standing
    destination: Standing

    @property
    def in_use(self) -> int:
        return sum(not endpoint.retired for endpoint in self.endpoints)

    @property
    def endpoints_text(self) -> str:
        return ", ".join(
            f"{endpoint.name}{' (retired)' * endpoint.retired}" for endpoint in self.endpoints
        )

    @property
    def simulated(self) -> bool:
        return any(endpoint.simulated for endpoint in self.endpoints)

    @property
    def success(self) -> float:
        ok = self.source.ok + self.destination.ok
        tests = ok + self.source.failed + self.destination.failed
        return ok / tests if tests else math.nan

    @property
    def last(self) -> float:
        return float(np.fmax(self.source.last, self.destination.last))


# What the list can be sorted by. Text comes in its order, and NaN last whichever way.
KEYS: dict[str, Callable[[SiteOverview], str | float]] = {
    "name": lambda site: site.site.name.casefold(),
    "cloud": lambda site: site.site.cloud.casefold(),
    "tier": lambda site: site.site.tier,
    "country": lambda site: site.site.country,
    "endpoints": lambda site: site.in_use,
    "wan": lambda site: site.site.wan_gbit_s or math.nan,
    "source": lambda site: site.source.mean,
    "destination": lambda site: site.destination.mean,
    "success": lambda site: site.success,
    "last": lambda site: site.last,
}


def build(query: MatrixQuery, now: datetime) -> tuple[Grid, list[SiteOverview]]:
    """Return the matrix of sites, and the sites that the filters let pass, by name."""
    with snapshot():
        versions = registry.read_versions()
        grid = of_sites(query, now, versions)
        sites = list(Site.objects.all())
        endpoints = registry.read_places(versions)
    sides = []
    for end in ENDS:
        side = RankedSide.of(grid, end)
        names = (group.name for group in side.groups)
        sides.append(dict(zip(names, standings(side), strict=True)))
    members: dict[str, list[EndpointInfo]] = {}
    for endpoint in endpoints:
        members.setdefault(endpoint.site, []).append(endpoint)
    overviews = []
    for site in sites:
        own = members.get(site.name, ())
        if passes(site, own, query.filters):
            # A site without a row or a column has a blank standing there.
            blank = Standing()
            ends = (by_name.get(site.name, blank) for by_name in sides)
            overviews.append(SiteOverview(site, tuple(own), *ends))
    return grid, overviews


def passes(site: Site, endpoints: Iterable[EndpointInfo], filters: Iterable[Filter]) -> bool:
    """Apply to the site itself the filters that speak of either end of a link."""
    own = [condition for condition in filters if condition.parameter in ATTRIBUTES]
    return all(
        any(has(site, endpoints, condition) for condition in group) != group[0].exclude
        for group in alternatives(own)
    )


def has(site: Site, endpoints: Iterable[EndpointInfo], condition: Filter) -> bool:
    attribute, value = condition.attribute, condition.value
    if attribute in ("label", "endpoint"):
        return any(endpoint.has(attribute, value) for endpoint in endpoints)
    return str(site.name if attribute == "site" else getattr(site, attribute)) == value


def searched(sites: Iterable[SiteOverview], text: str) -> list[SiteOverview]:
    """Return the sites that have every word somewhere."""
    words = text.casefold().split()
    matching = []
    for line in sites:
        site = line.site
        names = [site.name, site.cloud, site.country, f"T{site.tier}", f"Tier {site.tier}"]
        names += [endpoint.name for endpoint in line.endpoints]
        searchable = " ".join(names).casefold()
        if all(word in searchable for word in words):
            matching.append(line)
    return matching


def ordered(sites: Iterable[SiteOverview], ordering: str) -> list[SiteOverview]:
    """Sort by one of KEYS, with a minus before it the other way; without a value comes last."""
    key = KEYS[ordering.removeprefix("-")]
    with_value: list[SiteOverview] = []
    without: list[SiteOverview] = []
    for site in sites:
        value = key(site)
        empty = value == "" if isinstance(value, str) else math.isnan(value)
        (without if empty else with_value).append(site)
    return sorted(with_value, key=key, reverse=ordering.startswith("-")) + without
