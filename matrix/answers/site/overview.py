"""All sites: who they are, how they stand in one size class, and what is asked of them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import numpy as np
from django.http import Http404, QueryDict

from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.site.reports import ENDS, Standing, of_sites, standings
from matrix.query.attributes import SITE_FACTS, search_text
from matrix.query.comparison import OF_A_LINK
from matrix.query.filters import LINK_FILTERS, PROFILE_FILTERS, Filter, alternatives
from matrix.query.forms import BadQueryError, check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import registry
from matrix.store.data_version import snapshot
from sonar.models import Site
from sonar.notation.endpoint_attributes import OF_ENDPOINTS, EndpointAttribute, texts_of
from sonar.notation.enumeration import either

# More links than a site has.
MANY = 1e6
PARAMETERS = ("size", "window", "from", "to", *PROFILE_FILTERS)
OWN = ("search", "ordering")
DEFAULT_ORDERING = "name"
LONGEST_SEARCH = 200


@dataclass(frozen=True)
class SiteOverview:
    """A site with all its endpoints; ``within`` counts links between them that fail."""

    site: Site
    endpoints: tuple[EndpointInfo, ...]
    source: Standing
    destination: Standing
    within: int = 0

    @property
    def in_use(self) -> int:
        return sum(not endpoint.retired for endpoint in self.endpoints)

    @property
    def simulated(self) -> bool:
        return any(endpoint.simulated for endpoint in self.endpoints)

    @property
    def failing(self) -> int:
        return self.source.failing + self.destination.failing - self.within

    @property
    def trouble(self) -> float:
        """Return what puts first the site that has most links failing, then most slower ones."""
        return self.failing + (self.source.slower + self.destination.slower) / MANY

    @property
    def success(self) -> float:
        ok = self.source.ok + self.destination.ok
        tests = ok + self.source.failed + self.destination.failed
        return ok / tests if tests else math.nan

    @property
    def last(self) -> float:
        return float(np.fmax(self.source.last, self.destination.last))

    @property
    def text(self) -> str:
        every = OF_ENDPOINTS.values()
        own = [each for each in every if each.finds and each.is_own]
        of_site = [(each, each.of_site(self.site)) for each in every if each.site_columns]
        of_endpoints = [(each, place.value(each.key)) for place in self.endpoints for each in own]
        return search_text([*of_site, *of_endpoints])


def by_fact(attribute: EndpointAttribute, overview: SiteOverview) -> str | float:
    """Return what a site is sorted by one of its facts by: a number, or text in its order."""
    value = attribute.of_site(overview.site)
    return value if isinstance(value, int) else str(value).casefold()


# What the list can be sorted by. Text comes in its order, and NaN last whichever way.
KEYS: dict[str, Callable[[SiteOverview], str | float]] = {
    "name": lambda site: site.site.name.casefold(),
    **{key: partial(by_fact, attribute) for key, attribute in SITE_FACTS.items()},
    "endpoints": lambda site: site.in_use,
    "wan": lambda site: site.site.wan_gbit_s or math.nan,
    "source": lambda site: site.source.mean,
    "destination": lambda site: site.destination.mean,
    "success": lambda site: site.success,
    "last": lambda site: site.last,
    "trouble": lambda site: site.trouble,
    "failing": lambda site: site.failing,
    "slower_source": lambda site: site.source.slower,
    "slower_destination": lambda site: site.destination.slower,
    "ratio_source": lambda site: site.source.to_usual,
    "ratio_destination": lambda site: site.destination.to_usual,
}


def build(query: MatrixQuery, now: datetime) -> tuple[Grid, list[SiteOverview]]:
    """Return the matrix of sites, and the sites that the filters let pass, by name."""
    with snapshot():
        versions = registry.read_versions()
        grid = of_sites(query, now, versions)
        sites = list(Site.objects.listed())
        endpoints = registry.read_places(versions)
    sides = [standings(grid, end) for end in ENDS]
    members: dict[str, list[EndpointInfo]] = {}
    for endpoint in endpoints:
        members.setdefault(endpoint.site, []).append(endpoint)
    # Links that fail within each site that has any between its own endpoints.
    columns = {group.name: column for column, group in enumerate(grid.destinations)}
    within = {
        group.name: int(grid.cells.failing_links[row, columns[group.name]])
        for row, group in enumerate(grid.sources)
        if group.name in columns
    }
    overviews = []
    for site in sites:
        own = members.get(site.name, ())
        if passes(site, own, query.filters):
            # A site without a row or a column has a blank standing there.
            blank = Standing()
            source, destination = (by_name.get(site.name, blank) for by_name in sides)
            failing = within.get(site.name, 0)
            overviews.append(SiteOverview(site, tuple(own), source, destination, failing))
    return grid, overviews


def passes(site: Site, endpoints: Iterable[EndpointInfo], filters: Iterable[Filter]) -> bool:
    """Apply to the site itself the filters that speak of either end of a link."""

    def has(condition: Filter) -> bool:
        attribute, value = OF_ENDPOINTS[condition.attribute], condition.value
        if attribute.site_columns and value in texts_of(attribute.of_site(site)):
            return True
        return attribute.is_own and any(place.has(attribute.name, value) for place in endpoints)

    return all(
        any(map(has, group)) != group[0].exclude for group in alternatives(filters, OF_ENDPOINTS)
    )


def searched(sites: Iterable[SiteOverview], text: str) -> list[SiteOverview]:
    words = text.casefold().split()
    texts = ((site, site.text) for site in sites)
    return [site for site, searchable in texts if all(word in searchable for word in words)]


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


def compared_question(params: QueryDict, also: Sequence[str] = ()) -> MatrixQuery:
    """Read the parameters of a report on one site that may compare it with something."""
    check_names(params, (*PARAMETERS, *OF_A_LINK, *also))
    return MatrixQuery.from_params(params, also=also)


def registered(name: str, *, lock: bool = False) -> Site:
    """Return the site, locked if asked; raise Http404 with a sentence if there is none."""
    rows = Site.objects.select_for_update(no_key=True) if lock else Site.objects.all()
    site = rows.filter(name=name).first()
    if site is None:
        raise Http404(f"No site “{name}” is registered.")
    return site


def sites_question(
    params: QueryDict, also: Sequence[str] = (), ordering: str = DEFAULT_ORDERING
) -> tuple[MatrixQuery, str, str]:
    """Return the question, what to search for, and by what to sort: by ``ordering`` if not said."""
    check_names(params, (*PARAMETERS, *LINK_FILTERS, *OWN, *also))
    query = MatrixQuery.from_params(params, also=(*OWN, *also))
    search, order = (params.get(name, "").strip() for name in OWN)
    sentences: dict[str, list[str]] = {}
    if len(search) > LONGEST_SEARCH or "\0" in search:
        sentences["search"] = [f"“search” must be at most {LONGEST_SEARCH} printable characters."]
    if order and order.removeprefix("-") not in KEYS:
        allowed = either(list(KEYS))
        sentences["ordering"] = [
            f"ordering “{order}” is not known: use {allowed}. A leading “-” gives descending order."
        ]
    if sentences:
        raise BadQueryError(sentences)
    return query, search, order or ordering
