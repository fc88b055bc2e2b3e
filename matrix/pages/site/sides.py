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
class LinkLine:
    """A link in a list, with its page; ``name`` leaves out the end that all of the list share."""

    name: str
    cell: ReportCell
    url: str


@dataclass(frozen=True)
class SideWords:
    """What the site is in the matrix of sites, and where its links lead: from it or to it."""

    line: str
    preposition: str
    opposite: str


WORDS = {
    "source": SideWords("row", "from", "to"),
    "destination": SideWords("column", "to", "from"),
}


@dataclass(frozen=True)
class SiteSide:
    """All of a site as source, or as destination.

    ``drawn`` is how many of its ``cells`` are in the picture, ``figure_label`` says what that
    shows to those who do not see it, and ``data_id`` is the id of its JSON in the page.
    """

    end: str
    words: SideWords
    lines: list[ClassLine]
    figure: dict[str, Any] | None
    height_rem: float
    cells: int
    worst: list[LinkLine]
    failing: list[LinkLine]
    failing_more: int
    drawn: int
    figure_label: str
    data_id: str


def side_of(report: Report, end: str, site: Site) -> SiteSide:
    query, standings = report.query, report.standings(end)
    lines = [
        ClassLine(size, size == query.size, standing, standing.of_capacity(site.wan_gbit_s))
        for size, standing in standings.items()
    ]
    cells = report.cells(end)
    failing = report.failing(end)
    ends = (site.name, "each destination") if end == "source" else ("each source", site.name)
    drawn = min(len(cells), picture.MOST_BARS)
    among = ", of those that fail and the slowest" if drawn < len(cells) else ""
    return SiteSide(
        end,
        WORDS[end],
        lines,
        figure_of(report, end, cells, standings[query.size].mean),
        height_rem=picture.height_rem(len(cells)),
        cells=len(cells),
        worst=link_lines(report.worst(end), end, report),
        failing=link_lines(failing[:MOST_FAILING], end, report),
        failing_more=max(len(failing) - MOST_FAILING, 0),
        drawn=drawn,
        figure_label=f"Mean rate of {query.size} files from {ends[0]} to {ends[1]}, "
        f"the fastest first{among}. The table below has the numbers.",
        data_id=f"bars-{end}-data",
    )


def figure_of(
    report: Report, end: str, cells: list[ReportCell], mean: float
) -> dict[str, Any] | None:
    if not cells:
        return None
    # One scale for both pictures: they are compared.
    bounds = picture.rates_between([cell for side in ENDS for cell in report.cells(side)])
    return picture.figure(cells, end, report.name, mean, bounds)


def link_lines(cells: list[ReportCell], end: str, report: Report) -> list[LinkLine]:
    """Name links from the site, or to it; its one endpoint goes without saying."""
    lines = []
    for cell in cells:
        name = f"{cell.source} → {cell.destination}"
        if len(report.endpoints) == 1:
            name = f"to {cell.destination}" if end == "source" else f"from {cell.source}"
        lines.append(LinkLine(name, cell, link_url(cell.source, cell.destination, report.query)))
    return lines
