"""All sites: who they are, and how they stand in one size class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

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
        return sum(not place.retired for place in self.endpoints)

    @property
    def endpoints_text(self) -> str:
        return ", ".join(f"{one.name}{' (retired)' * one.retired}" for one in self.endpoints)

    @property
    def is_history(self) -> bool:
        """Say whether it had endpoints and all of them are retired."""
        return bool(self.endpoints) and not self.in_use

    @property
    def simulated(self) -> bool:
        return any(place.simulated for place in self.endpoints)

    @property
    def success(self) -> float:
        ok = self.source.ok + self.destination.ok
        tests = ok + self.source.failed + self.destination.failed
        return ok / tests if tests else math.nan

    @property
    def last(self) -> float:
        known = [one.last for one in (self.source, self.destination) if not math.isnan(one.last)]
        return max(known, default=math.nan)

    @property
    def text(self) -> str:
        """Return what a search looks into."""
        site = self.site
        words = [site.name, site.cloud, site.country, f"T{site.tier}", f"Tier {site.tier}"]
        return " ".join([*words, *(place.name for place in self.endpoints)]).casefold()


# What the list can be sorted by. Text comes in its order, and NaN last whichever way.
KEYS: dict[str, Callable[[SiteOverview], str | float]] = {
    "name": lambda one: one.site.name.casefold(),
    "cloud": lambda one: one.site.cloud.casefold(),
    "tier": lambda one: one.site.tier,
    "country": lambda one: one.site.country,
    "endpoints": lambda one: one.in_use,
    "wan": lambda one: one.site.wan_gbit_s or math.nan,
    "source": lambda one: one.source.mean,
    "destination": lambda one: one.destination.mean,
    "success": lambda one: one.success,
    "last": lambda one: one.last,
}


def build(query: MatrixQuery, now: datetime) -> tuple[Grid, list[SiteOverview]]:
    """Return the matrix of sites, and the sites that the filters let pass, by name."""
    with snapshot():
        versions = registry.read_versions()
        answered = of_sites(query, now, versions)
        sites = list(Site.objects.all())
        places = registry.read_places(versions)
    by_end = [by_name(RankedSide.of(answered, end)) for end in ENDS]
    members: dict[str, list[EndpointInfo]] = {}
    for place in places:
        members.setdefault(place.site, []).append(place)
    return answered, [
        SiteOverview(site, tuple(members.get(site.name, ())), *(end[site.name] for end in by_end))
        for site in sites
        if passes(site, members.get(site.name, ()), query.filters)
    ]


class Standings(dict[str, Standing]):
    """Standings by the name of the site; one without a row has a blank one."""

    def __missing__(self, name: str) -> Standing:
        return Standing()


def by_name(side: RankedSide) -> Standings:
    names = (group.name for group in side.groups)
    return Standings(zip(names, standings(side), strict=True))


def passes(site: Site, places: Iterable[EndpointInfo], filters: Iterable[Filter]) -> bool:
    """Apply to the site itself the filters that speak of either end of a link."""
    own = [one for one in filters if one.parameter in ATTRIBUTES]
    return all(
        any(has(site, places, one) for one in some) != some[0].exclude for some in alternatives(own)
    )


def has(site: Site, places: Iterable[EndpointInfo], one: Filter) -> bool:
    if one.attribute in ("label", "endpoint"):
        return any(place.has(one.attribute, one.value) for place in places)
    return str(site.name if one.attribute == "site" else getattr(site, one.attribute)) == one.value


def searched(listed: Iterable[SiteOverview], text: str) -> list[SiteOverview]:
    """Return the sites that have every word somewhere."""
    words = text.casefold().split()
    return [one for one in listed if all(word in one.text for word in words)]


def ordered(listed: Sequence[SiteOverview], ordering: str) -> list[SiteOverview]:
    """Sort by one of KEYS, with a minus before it the other way; without a value comes last."""
    key = KEYS[ordering.removeprefix("-")]
    known = [one for one in listed if is_known(key(one))]
    unknown = [one for one in listed if not is_known(key(one))]
    return sorted(known, key=key, reverse=ordering.startswith("-")) + unknown


def is_known(value: str | float) -> bool:
    return value != "" if isinstance(value, str) else not math.isnan(value)
