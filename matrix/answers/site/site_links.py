"""The links of a site at one end as they stand now, and the figures of all of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matrix.answers.site import history
from matrix.answers.site.reports import Report, ReportCell, at_end, cells_of, median
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.states import NOT_APPLICABLE
from sonar.notation.units import MB
from sonar.notation.windows import Window

# How links look, the worst first, as in the table: a failed test or two is less than being slower.
ORDER = ("failing", "silent", "slower", "failed", "", "untested", "down")


@dataclass(frozen=True)
class SiteLink(ReportCell):
    """A link as it stands; ``partner`` is the site at its other end.

    ``now`` is the median of its newest three successful tests, ``usual`` that of the 28 days before
    the window; ``since`` is when the condition began that it is a member of, ``streak`` how many of
    its newest tests failed. ``unconfirmed`` says that a condition that is not confirmed has it as a
    member. The rest is of the window.
    """

    partner: str
    partly: bool
    streak: int
    unconfirmed: bool

    @property
    def ratio(self) -> float:
        return self.now / self.usual if self.usual else math.nan

    @property
    def rate(self) -> float:
        """Return its rate now, or of too few tests for that their mean in the window."""
        return self.mean if math.isnan(self.now) else self.now

    @property
    def tests(self) -> int:
        return self.ok + self.failed

    @property
    def is_failing(self) -> bool:
        return self.state == "failing"

    @property
    def is_judged(self) -> bool:
        """Say whether its ratio counts: where all tests failed since, it is of the past."""
        return self.state not in ("failing", "failed") and not math.isnan(self.ratio)

    @property
    def rank(self) -> tuple[int, bool, float, float]:
        """Return what puts the worst first: by ORDER, ratio to usual, failed tests, rate."""
        is_state = self.state in ORDER and self.level != "silent"
        look = self.state if is_state else self.level
        rank = ORDER.index(look if look in ORDER else "")
        ratio = self.ratio
        if not math.isnan(ratio):
            return rank, False, ratio, 0.0
        return rank, True, -self.failed, math.inf if math.isnan(self.rate) else self.rate


def links_of(report: Report, end: str) -> list[SiteLink]:
    """Return the links of the site at this end that a mesh tests or that have results."""
    grid, cells = report.links, report.links.cells
    where = at_end(grid, end, report.name) & (cells.state != NOT_APPLICABLE)
    places = np.nonzero(where)
    partners = (grid.destinations, places[1]) if end == "source" else (grid.sources, places[0])
    place = {endpoint.name: at for at, endpoint in enumerate(report.all_endpoints)}
    # Of the links themselves: a cell that fails or is down is not judged, and has neither.
    ends = tuple(
        [place[groups[at].name] for at in of_end.tolist()]
        for groups, of_end in zip((grid.sources, grid.destinations), places, strict=True)
    )
    standings = report.standings_of_links
    links = cells_of(
        SiteLink,
        grid,
        where,
        partner=[partners[0][at].site or "" for at in partners[1].tolist()],
        partly=cells.partly[where].tolist(),
        streak=cells.streak[where].tolist(),
        unconfirmed=(standings.unconfirmed[ends] > 0).tolist(),
        now=(standings.now[ends] / MB).tolist(),
        usual=(standings.usual[ends] / MB).tolist(),
    )
    return sorted(links, key=lambda link: link.rank)


@dataclass(frozen=True)
class EndFigures:
    """The figures of one end, of which rates are medians of its links, in MB/s.

    ``rate`` is of what each link has, however few its tests are.
    """

    links: int
    sites: int
    now: float
    usual: float
    ratio: float
    rate: float
    failing: int
    slower: int
    faster: int
    tested: int
    ok: int
    failed: int

    @property
    def tests(self) -> int:
        return self.ok + self.failed

    @property
    def success(self) -> float:
        return self.ok / self.tests if self.tests else math.nan


def figures_of(links: Sequence[SiteLink]) -> EndFigures:
    judged = [link for link in links if link.is_judged]
    return EndFigures(
        links=len(links),
        sites=len({link.partner for link in links}),
        now=median([link.now for link in links]),
        usual=median([link.usual for link in links]),
        ratio=median([link.ratio for link in judged]),
        rate=median([link.rate for link in links]),
        failing=sum(link.is_failing for link in links),
        slower=sum(link.level == "slower" for link in links),
        faster=sum(link.level == "faster" for link in links),
        tested=sum(link.tests > 0 for link in links),
        ok=sum(link.ok for link in links),
        failed=sum(link.failed for link in links),
    )


def results_of(
    report: Report,
    ends: Mapping[str, Sequence[SiteLink]],
    query: MatrixQuery,
    window: Window,
    *,
    is_reverse: bool = False,
) -> dict[str, history.LinkResults]:
    """Read the results of the links of each end, or of their reverse. One SQL statement."""
    ids = {endpoint.name: endpoint.id for endpoint in report.all_endpoints}
    of_end = {
        end: [(ids[link.source], ids[link.destination]) for link in links]
        for end, links in ends.items()
    }
    if is_reverse:
        of_end = {end: [(back, out) for out, back in pairs] for end, pairs in of_end.items()}
    every = list(dict.fromkeys(pair for pairs in of_end.values() for pair in pairs))
    place = {pair: at for at, pair in enumerate(every)}
    whole = history.LinkResults.read(every, window, query.filters, query.size)
    results = {}
    for end, pairs in of_end.items():
        # Links are numbered by their place at this end; others have -1.
        numbers = np.full(len(every), -1)
        numbers[[place[pair] for pair in pairs]] = np.arange(len(pairs))
        own = replace(whole, link=numbers[whole.link])
        results[end] = own.taken(own.link >= 0)
    return results


def history_of(
    report: Report, ends: Mapping[str, Sequence[SiteLink]], sides: Sequence[history.WindowPair]
) -> dict[str, history.EndHistory]:
    """Read the links of each end over the window and these comparisons. One SQL statement."""
    window = report.window
    results = results_of(report, ends, report.query, history.span_of(window, sides))
    inside = [part.during(window.start, window.end) for part in results.values()]
    cut = history.cut_of(history.drawable(window, inside), inside)
    histories = {}
    for end, part in results.items():
        usual = np.array([link.usual for link in ends[end]], dtype=np.float64)
        series = history.series_of(part, usual, window, cut)
        histories[end] = history.EndHistory(part, usual, series, window)
    return histories
