"""A site at each end of its links, as its page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matrix.answers.site.ranking import ENDS, Standing
from matrix.answers.site.reports import Report, ReportCell
from matrix.plots import site as picture
from matrix.query.addresses import link_url
from sonar.models import Site

# So many links that fail are listed; the CSV has all.
MOST_FAILING = 20


@dataclass(frozen=True)
class ClassLine:
    """How the site stands in one size class, in numbers that the template writes."""

    size: str
    chosen: bool
    standing: Standing
    of_capacity: float


@dataclass(frozen=True)
class Linked:
    """A link in a list, with its page; ``name`` leaves out the end that all of the list share."""

    name: str
    cell: ReportCell
    url: str


@dataclass(frozen=True)
class SiteSide:
    """All of a site as source, or as destination."""

    end: str
    lines: list[ClassLine]
    figure: dict[str, Any] | None
    height_rem: float
    cells: int
    worst: list[Linked]
    failing: list[Linked]
    failing_more: int
    shows: str

    @property
    def data_id(self) -> str:
        """Return the id of the JSON of the figure in the page."""
        return f"bars-{self.end}-data"

    @property
    def line(self) -> str:
        """Say what the site is in the matrix of sites."""
        return "row" if self.end == "source" else "column"

    @property
    def way(self) -> str:
        """Say where its links lead, from it or to it."""
        return "from" if self.end == "source" else "to"

    @property
    def other_way(self) -> str:
        return "to" if self.end == "source" else "from"

    @property
    def figure_label(self) -> str:
        """Say what the picture shows to those who do not see it."""
        among = ", of those that fail and the slowest" if self.drawn < self.cells else ""
        return f"{self.shows}, the fastest first{among}. The table below has the numbers."

    @property
    def drawn(self) -> int:
        """Return how many of the cells are in the picture."""
        return min(self.cells, picture.MOST_BARS)


def end_of(report: Report, end: str, site: Site) -> SiteSide:
    standings = report.standings(end)
    lines = [
        ClassLine(size, size == report.query.size, one, one.of_capacity(site.wan_gbit_s))
        for size, one in standings.items()
    ]
    cells = report.cells(end)
    failing = report.failing(end)
    return SiteSide(
        end,
        lines,
        figure_of(report, end, cells, standings[report.query.size].mean),
        picture.height_rem(len(cells)),
        len(cells),
        linked(report.worst(end), end, report),
        linked(failing[:MOST_FAILING], end, report),
        max(len(failing) - MOST_FAILING, 0),
        shown(report, end, site),
    )


def shown(report: Report, end: str, site: Site) -> str:
    """Name the picture of a row or column."""
    there = (site.name, "each destination") if end == "source" else ("each source", site.name)
    return f"Mean rate of {report.query.size} files from {there[0]} to {there[1]}"


def figure_of(
    report: Report, end: str, cells: list[ReportCell], mean: float
) -> dict[str, Any] | None:
    if not cells:
        return None
    # One scale for both pictures: they are compared.
    bounds = picture.rates_between([cell for one in ENDS for cell in report.cells(one)])
    return picture.figure(cells, end, report.name, mean, bounds)


def linked(cells: list[ReportCell], end: str, report: Report) -> list[Linked]:
    query, alone = report.query, len(report.endpoints) == 1
    return [
        Linked(words(cell, end, alone), cell, link_url(cell.source, cell.destination, query))
        for cell in cells
    ]


def words(cell: ReportCell, end: str, alone: bool) -> str:
    """Name a link of a list from the site, or to it; its one endpoint goes without saying."""
    if alone:
        return f"to {cell.destination}" if end == "source" else f"from {cell.source}"
    return f"{cell.source} → {cell.destination}"
