"""Sites: their row and column of the matrix of sites, their rank, partners and single links."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import numpy as np

from matrix.answers.matrix import grid, standing
from matrix.answers.matrix.grid_cells import Grid
from matrix.query.addresses import link_url, matrix_url
from matrix.query.catalogue import STATISTICS
from matrix.query.filters import Filter, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.statistics.cells.standing import LEVELS, Standings
from matrix.statistics.cells.states import FAILING, NOT_APPLICABLE, STATES
from matrix.statistics.samples.reduce import averages, ratio
from matrix.statistics.samples.run import Run
from matrix.store import data_version, registry, runs
from matrix.store.data_version import DataVersion, snapshot
from sonar.models import SizeClass
from sonar.notation.units import MB
from sonar.notation.windows import Window

ENDS = ("source", "destination")
# So many links are named one by one; the table and the API have all.
MOST_NAMED = 10
NUMBERS = ("mean", "std", "ok", "failed", "last", "now", "usual", "since")


@dataclass(frozen=True)
class Standing:
    """A site at one end of its links in one size class. Rates in MB/s, NaN where there is none.

    ``mean`` is that of its ``cells`` measured cells, as the matrix of sites has it beside its
    row or column. ``rank`` counts from the fastest of the ``ranked`` sites of its tier that
    have one; ``peers_median`` is that of the others' means. ``failing`` and ``slower`` are how many
    of its links are, ``to_usual`` the median of what its cells are to their usual.
    """

    mean: float = np.nan
    cells: int = 0
    ok: int = 0
    failed: int = 0
    last: float = np.nan
    rank: int | None = None
    ranked: int = 0
    peers_median: float = np.nan
    fastest: float = np.nan
    fastest_partner: str = ""
    failing: int = 0
    slower: int = 0
    to_usual: float = np.nan

    @property
    def success(self) -> float:
        return float(ratio(np.int64(self.ok), np.int64(self.ok + self.failed)))

    @property
    def ratio(self) -> float:
        return float(ratio(np.float64(self.mean), np.float64(self.peers_median)))

    def of_capacity(self, wan_gbit_s: float | None) -> float:
        """Return which share of the nominal WAN capacity the fastest transfer took."""
        return self.fastest / capacity(wan_gbit_s) if wan_gbit_s else np.nan


def capacity(wan_gbit_s: float) -> float:
    return wan_gbit_s * 1e9 / 8 / MB


def standings(matrix: Grid, end: str, only: str = "", tier: int = -1) -> dict[str, Standing]:
    """Return standings by name at an end; ``only`` one, without a row, has peers of a ``tier``."""
    cells, groups, partners = matrix.cells, matrix.sources, matrix.destinations
    arrays: list[Any] = [cells.mean, cells.extras["max"], cells.ok, cells.failed, cells.last]
    arrays += [cells.failing_links, cells.slower_links, ratio(cells.now, cells.usual)]
    if end != "source":
        groups, partners, arrays = partners, groups, [array.T for array in arrays]
    mean, best, ok, failed, last, failing, slower, to_usual = arrays
    means, by_name = averages(mean).row, {}
    tiers = np.array([-1 if group.tier is None else group.tier for group in groups], dtype=np.int64)
    for row, group in enumerate(groups):
        if only not in ("", group.name):
            continue
        ranked = (tiers == tiers[row]) & ~np.isnan(means)
        peers = means[ranked & (np.arange(len(means)) != row)]
        # The best single rate, and with whom; what stays within the site is no WAN.
        is_own = np.array([partner.name == group.name for partner in partners], dtype=bool)
        rates = np.where(is_own, np.nan, best[row])
        at = None if np.isnan(rates).all() else int(np.nanargmax(rates))
        by_name[group.name] = Standing(
            mean=float(means[row]),
            cells=int((ok[row] > 0).sum()),
            ok=int(ok[row].sum()),
            failed=int(failed[row].sum()),
            last=float(np.fmax.reduce(last[row], initial=np.nan)),
            rank=None if np.isnan(means[row]) else int((peers > means[row]).sum()) + 1,
            ranked=int(ranked.sum()),
            peers_median=median(peers),
            fastest=np.nan if at is None else float(rates[at]),
            fastest_partner="" if at is None else partners[at].name,
            failing=int(failing[row].sum()),
            slower=int(slower[row].sum()),
            to_usual=median(to_usual[row]),
        )
    if only and only not in by_name:
        peers = means[(tiers == tier) & ~np.isnan(means)]
        by_name[only] = Standing(ranked=len(peers), peers_median=median(peers))
    return by_name


def median(values: Floats | Sequence[float]) -> float:
    """Return the median of the values that are numbers, NaN for none."""
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    return float(np.median(numbers)) if numbers.size else np.nan


@dataclass(frozen=True)
class ReportCell:
    """A cell of a matrix by itself. Rates are in MB/s, times in Unix s; NaN for none.

    ``level``, ``now``, ``usual`` and ``since`` are as CellStandings has them.
    """

    source: str
    destination: str
    mean: float
    std: float
    ok: int
    failed: int
    last: float
    state: str
    level: str
    now: float
    usual: float
    since: float


Cell = TypeVar("Cell", bound=ReportCell)


def cells_of(kind: type[Cell], matrix: Grid, where: Flags, **more: Sequence[object]) -> list[Cell]:
    """Take some cells out of a matrix, row by row; ``more`` is what they have besides, by name."""
    cells = matrix.cells
    rows, columns = np.nonzero(where)
    values: dict[str, Sequence[object]] = {
        "source": [matrix.sources[row].name for row in rows.tolist()],
        "destination": [matrix.destinations[column].name for column in columns.tolist()],
        "state": [STATES[state] for state in cells.state[where].tolist()],
        "level": [LEVELS[level] for level in cells.level[where].tolist()],
        **{name: getattr(cells, name)[where].tolist() for name in NUMBERS},
        **more,
    }
    return [
        kind(**dict(zip(values, cell, strict=True))) for cell in zip(*values.values(), strict=True)
    ]


def at_end(matrix: Grid, end: str, site: str) -> Flags:
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
        """Return how the site stands at this end, by size class; without a row it has peers."""
        tier = self.endpoints[0].tier if self.endpoints else -1
        return {
            size: standings(matrix, end, self.name, tier)[self.name]
            for size, matrix in self.sites.items()
        }

    def cells(self, end: str, size: str = "") -> list[ReportCell]:
        """Return the site's row (as source) or column of the matrix of sites."""
        matrix = self.sites[size or self.query.size]
        own = at_end(matrix, end, self.name)
        return cells_of(ReportCell, matrix, own & (matrix.cells.state != NOT_APPLICABLE))

    def worst(self, end: str) -> list[ReportCell]:
        """Return the links of the site with the lowest mean, the lowest first."""
        measured = at_end(self.links, end, self.name) & (self.links.cells.ok > 0)
        means = np.where(measured, self.links.cells.mean, np.nan)
        lowest = np.sort(means[measured])[:MOST_NAMED]
        few = measured & (means <= lowest[-1]) if lowest.size else measured
        cells = cells_of(ReportCell, self.links, few)
        return sorted(cells, key=lambda cell: cell.mean)[:MOST_NAMED]

    def failing(self, end: str) -> list[ReportCell]:
        own = at_end(self.links, end, self.name) & (self.links.cells.state == FAILING)
        return sorted(cells_of(ReportCell, self.links, own), key=lambda cell: -cell.failed)


def build(name: str, query: MatrixQuery, now: datetime) -> Report:
    """Report on a site as of one moment. SQL queries grow with the number of size classes alone."""
    window = query.window_at(now)
    with snapshot():
        version = data_version.read(query.size, standing.reach(window))
        endpoints = registry.read_places(version)
        links = LinkIndex(endpoints)
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        results = {size: runs.read(size, window, query.filters) for size in sizes}
        # What is kept for the version of the class asked for serves its diagnoses, too.
        versions = {query.size: version}
        marks = standing.read_marks(sizes, window, now, links)
        standings = {
            size: standing.read(
                *(size, query.filters, window, now, links),
                version=versions.get(size),
                marks=marks[size],
            )
            for size in sizes
        }
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
    extras = ("max", STATISTICS["predicted"].base)
    return grid.compute(of_sites, now, version, extras, results, standings=standings)


# One direction with a partner: its cell, and the page that has more of it.
PartnerDirection = tuple[ReportCell, str]


@dataclass(frozen=True)
class Partner:
    """``sent`` is from the site to the partner, ``received`` from the partner to the site."""

    name: str
    sent: PartnerDirection | None
    received: PartnerDirection | None

    @property
    def ratio(self) -> float:
        """Return how many times faster sending to it is than receiving from it."""
        if self.sent is None or self.received is None or not self.received[0].mean:
            return math.nan
        return self.sent[0].mean / self.received[0].mean


def partners_of(report: Report) -> list[Partner]:
    groups = {group.name: group for group in (*report.links.sources, *report.links.destinations)}
    # Of each site that links lead to or from here.
    endpoints: dict[str, list[str]] = {}
    for group in groups.values():
        endpoints.setdefault(group.site or "", []).append(group.name)

    def direction(cell: ReportCell) -> PartnerDirection:
        """Lead to the link between two sites, or to the matrix of links if there are several."""
        names = [endpoints.get(site, []) for site in (cell.source, cell.destination)]
        if [len(each) for each in names] == [1, 1]:
            return cell, link_url(names[0][0], names[1][0], report.query)
        sites = (("source_site", cell.source), ("destination_site", cell.destination))
        filters = (*(Filter(*site) for site in sites), *on_profiles(report.query.filters))
        return cell, matrix_url(report.query.replace(filters=filters))

    sent, received = (
        {getattr(cell, other): direction(cell) for cell in report.cells(end)}
        for end, other in (ENDS, ENDS[::-1])
    )
    names = sorted(sent.keys() | received.keys(), key=str.casefold)
    return [Partner(name, sent.get(name), received.get(name)) for name in names]
