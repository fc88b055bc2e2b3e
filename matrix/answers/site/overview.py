"""All sites: who they are, and how they stand in one size class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from matrix.answers.grid import Grid
from matrix.answers.site.ranking import ENDS, RankedSide, Standing, standings
from matrix.answers.site.reports import of_sites
from matrix.query.attributes import (
    OF_ENDPOINTS,
    SITE_FACTS,
    EndpointAttribute,
    search_text,
    texts_of,
)
from matrix.query.filters import Filter, alternatives
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
        of_site = (
            (attribute, attribute.of_site(self.site))
            for attribute in OF_ENDPOINTS.values()
            if attribute.site_columns
        )
        of_endpoints = (
            (attribute, place.value(attribute.key))
            for place in self.endpoints
            for attribute in OF_ENDPOINTS.values()
            if attribute.finds and attribute.is_own
        )
        return search_text([*of_site, *of_endpoints])

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Return what tables say of the site, each with the words for none."""
        return [
            (str(attribute.of_site(self.site)), f"no {attribute.title} registered")
            for attribute in SITE_FACTS.values()
        ]


def by_fact(attribute: EndpointAttribute) -> Callable[[SiteOverview], str | float]:
    """Return what sites are sorted by one of their facts by: a number, or text in its order."""

    def key(overview: SiteOverview) -> str | float:
        value = attribute.of_site(overview.site)
        return value if isinstance(value, int) else str(value).casefold()

    return key


# What the list can be sorted by. Text comes in its order, and NaN last whichever way.
KEYS: dict[str, Callable[[SiteOverview], str | float]] = {
    "name": lambda one: one.site.name.casefold(),
    **{key: by_fact(attribute) for key, attribute in SITE_FACTS.items()},
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
    own = [given for given in filters if given.parameter in OF_ENDPOINTS]
    return all(
        any(has(site, places, given) for given in some) != some[0].exclude
        for some in alternatives(own)
    )


def has(site: Site, places: Iterable[EndpointInfo], given: Filter) -> bool:
    attribute = OF_ENDPOINTS[given.attribute]
    if attribute.site_columns and given.value in texts_of(attribute.of_site(site)):
        return True
    return attribute.is_own and any(place.has(attribute.name, given.value) for place in places)


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
