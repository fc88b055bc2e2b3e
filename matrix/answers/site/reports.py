"""Sites: their row and column of the matrix of sites, their partners, and their single links."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix.answers.matrix import grid, standing
from matrix.answers.matrix.grid import Grid
from matrix.answers.site.ranking import RankedSide, Standing, standing_of
from matrix.query.addresses import link_url, matrix_url
from matrix.query.catalogue import STATISTICS
from matrix.query.filters import Filter, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.statistics.cells.standing import LEVELS, Standings
from matrix.statistics.cells.states import FAILED, NOT_APPLICABLE, STATES
from matrix.statistics.samples.run import Run
from matrix.store import registry, runs
from matrix.store.data_version import DataVersion, snapshot
from sonar.models import SizeClass
from sonar.notation.windows import Window

# So many links are named one by one; the table and the API have all.
MOST_NAMED = 10


@dataclass(frozen=True)
class ReportCell:
    """A cell of a matrix by itself. Rates are in MB/s, times in Unix s; NaN for none.

    ``level``, ``now``, ``usual`` and ``since`` are as CellArrays has them.
    """

    source: str
    destination: str
    mean: float
    std: float
    ok: int
    failed: int
    last: float
    state: str
    level: str = LEVELS[0]
    now: float = np.nan
    usual: float = np.nan
    since: float = np.nan


def cells_of(matrix: Grid, where: Flags) -> list[ReportCell]:
    """Take some cells out of a matrix, row by row."""
    cells = matrix.cells
    rows, columns = np.nonzero(where)
    sources = [matrix.sources[row].name for row in rows.tolist()]
    destinations = [matrix.destinations[column].name for column in columns.tolist()]
    states = [STATES[state] for state in cells.state[where].tolist()]
    numbers = (cells.mean, cells.std, cells.ok, cells.failed, cells.last)
    values = [array[where].tolist() for array in numbers]
    levels = [LEVELS[level] for level in cells.level[where].tolist()]
    present = [array[where].tolist() for array in (cells.now, cells.usual, cells.since)]
    taken = zip(sources, destinations, *values, states, levels, *present, strict=True)
    return [ReportCell(*cell) for cell in taken]


def at_end(matrix: Grid, end: str, site: str) -> Flags:
    """Say which cells have this site at this end."""
    groups = matrix.sources if end == "source" else matrix.destinations
    own = np.array([group.site == site for group in groups], dtype=bool)
    shape = matrix.cells.state.shape
    return np.broadcast_to(own[:, None] if end == "source" else own, shape)


@dataclass(frozen=True)
class Report:
    """What a site's results in a window say.

    ``sites`` are the matrices of sites by size class; ``links`` is that of the links of
    its endpoints, in the class asked for. ``all_endpoints`` are those of all sites, and
    ``standings_of_links`` those of all links between them, by place.
    """

    name: str
    query: MatrixQuery
    window: Window
    moment: datetime
    sites: dict[str, Grid]
    links: Grid
    all_endpoints: tuple[EndpointInfo, ...]
    standings_of_links: Standings

    @property
    def endpoints(self) -> list[EndpointInfo]:
        return [endpoint for endpoint in self.all_endpoints if endpoint.site == self.name]

    def standings(self, end: str) -> dict[str, Standing]:
        """Return how the site stands at this end, by size class."""
        tier = self.endpoints[0].tier if self.endpoints else -1
        return {
            size: standing_of(RankedSide.of(matrix, end), self.name, tier)
            for size, matrix in self.sites.items()
        }

    def cells(self, end: str, size: str = "") -> list[ReportCell]:
        """Return the site's row (as source) or column of the matrix of sites."""
        matrix = self.sites[size or self.query.size]
        own = at_end(matrix, end, self.name)
        return cells_of(matrix, own & (matrix.cells.state != NOT_APPLICABLE))

    def worst(self, end: str) -> list[ReportCell]:
        """Return the links of the site with the lowest mean, the lowest first."""
        measured = at_end(self.links, end, self.name) & (self.links.cells.ok > 0)
        means = np.where(measured, self.links.cells.mean, np.nan)
        lowest = np.sort(means[measured])[:MOST_NAMED]
        few = measured & (means <= lowest[-1]) if lowest.size else measured
        return sorted(cells_of(self.links, few), key=lambda cell: cell.mean)[:MOST_NAMED]

    def failing(self, end: str) -> list[ReportCell]:
        """Return the links of the site on which every test failed, the most tested first."""
        none_ok = at_end(self.links, end, self.name) & (self.links.cells.state == FAILED)
        return sorted(cells_of(self.links, none_ok), key=lambda cell: -cell.failed)


def build(name: str, query: MatrixQuery, now: datetime) -> Report:
    """Report on a site as of one moment; the query has no filters on links.

    What it compares with is left to site_now.

    The number of SQL queries depends on that of the size classes alone.
    """
    window = query.window_at(now)
    with snapshot():
        version = registry.read_versions()
        endpoints = registry.read_places(version)
        links = LinkIndex(endpoints)
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        results = {size: runs.read(size, window, query.filters) for size in sizes}
        standings = {size: standing.read(size, query.filters, window, now, links) for size in sizes}
        sites = {
            size: of_sites(query.replace(size=size), now, version, results[size], standings[size])
            for size in sizes
        }
        own = query.replace(filters=(*query.filters, Filter("site", name)), compare=None)
        judged = standings[query.size]
        own_links = grid.compute(own, now, version, results=results[query.size], standings=judged)
    return Report(name, query, window, own_links.moment, sites, own_links, endpoints, judged)


def of_sites(
    query: MatrixQuery,
    now: datetime,
    version: DataVersion,
    results: Sequence[Run] | None = None,
    standings: Standings | None = None,
) -> Grid:
    """Return the matrix of sites, with best single rates and medians as the extras of its cells."""
    of_sites = query.replace(rows="site", columns="site", compare=None)
    extras = ("max", STATISTICS["expected"].base)
    return grid.compute(of_sites, now, version, extras, results, standings=standings)


@dataclass(frozen=True)
class PartnerDirection:
    """One direction with a partner, and the page that has more of it."""

    cell: ReportCell
    url: str


@dataclass(frozen=True)
class Partner:
    """``sent`` is from the site to the partner, ``received`` from the partner to the site."""

    name: str
    sent: PartnerDirection | None
    received: PartnerDirection | None

    @property
    def directions(self) -> tuple[PartnerDirection | None, PartnerDirection | None]:
        return self.sent, self.received

    @property
    def ratio(self) -> float:
        """Return how many times faster sending to it is than receiving from it."""
        if self.sent is None or self.received is None or not self.received.cell.mean:
            return math.nan
        return self.sent.cell.mean / self.received.cell.mean


def partners_of(report: Report) -> list[Partner]:
    """Return all partners by name, in the size class asked for."""
    groups = {group.name: group for group in (*report.links.sources, *report.links.destinations)}
    # Of each site that links lead to or from here.
    endpoints: dict[str, list[str]] = {}
    for group in groups.values():
        endpoints.setdefault(group.site or "", []).append(group.name)
    sent, received = (
        {
            getattr(cell, other): PartnerDirection(cell, url_of(cell, endpoints, report.query))
            for cell in report.cells(end)
        }
        for end, other in (("source", "destination"), ("destination", "source"))
    )
    names = sorted(sent.keys() | received.keys(), key=str.casefold)
    return [Partner(name, sent.get(name), received.get(name)) for name in names]


def url_of(cell: ReportCell, endpoints: dict[str, list[str]], query: MatrixQuery) -> str:
    """Return the link between two sites, or the matrix of the links if there are several."""
    sources, destinations = endpoints.get(cell.source, []), endpoints.get(cell.destination, [])
    if len(sources) == len(destinations) == 1:
        return link_url(sources[0], destinations[0], query)
    filters = (
        Filter("source_site", cell.source),
        Filter("destination_site", cell.destination),
        *on_profiles(query.filters),
    )
    return matrix_url(query.replace(filters=filters))
