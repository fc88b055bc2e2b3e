"""A site at each end of its links, as its page shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matrix.answers.site.history import EndHistory
from matrix.answers.site.ranking import Standing
from matrix.answers.site.reports import Report
from matrix.answers.site.site_links import EndFigures, SiteLink, figures_of
from matrix.pages.site.comparison import ComparedEnd
from matrix.pages.site.partner_rows import PartnerRow, partner_rows
from matrix.pages.site.together import Drift
from sonar.models import Site
from sonar.units import format_factor

# So many partners are on a printed page; the CSV has all.
MOST_PRINTED = 12
BUCKET_WORDS = {"5m": "5 minutes", "1h": "hour", "6h": "6 hours", "1d": "day"}


@dataclass(frozen=True)
class ClassLine:
    """How the site stands in one size class, in numbers that the template writes."""

    size: str
    chosen: bool
    standing: Standing
    of_capacity: float


@dataclass(frozen=True)
class SideWords:
    """What the site is in the matrix of sites, and where its links lead: from it or to it."""

    line: str
    preposition: str
    opposite: str
    partner: str


WORDS = {
    "destination": SideWords("column", "to", "from", "source"),
    "source": SideWords("row", "from", "to", "destination"),
}


@dataclass(frozen=True)
class SiteSide:
    """All of a site as source, or as destination.

    ``figure_label`` says what the picture shows to those who do not see it, and ``data_id`` is the
    id of its JSON in the page.
    ``not_printed`` is how many rows are left out on paper; ``compared`` is there if the question
    compares with something, ``drift`` if the window is long.
    """

    end: str
    words: SideWords
    figures: EndFigures
    lines: list[ClassLine]
    rows: list[PartnerRow]
    not_printed: int
    bucket_words: str
    figure: dict[str, Any]
    figure_label: str
    data_id: str
    compared: ComparedEnd | None = None
    drift: Drift | None = None


def side_of(
    report: Report,
    site: Site,
    end: str,
    *,
    links: Sequence[SiteLink],
    history: EndHistory,
    figure: dict[str, Any],
) -> SiteSide:
    figures, words = figures_of(links), WORDS[end]
    lines = [
        ClassLine(size, size == report.query.size, standing, standing.of_capacity(site.wan_gbit_s))
        for size, standing in report.standings(end).items()
    ]
    return SiteSide(
        end,
        words,
        figures,
        lines,
        rows=partner_rows(report, end, links, history.sizes(), MOST_PRINTED),
        not_printed=max(len(links) - MOST_PRINTED, 0),
        bucket_words=BUCKET_WORDS[history.series.bucket],
        figure=figure,
        figure_label=(
            f"Rates of the links {words.preposition} {site.name} relative to their "
            f"usual rate over time, and failed tests, with {report.query.size} files. "
            f"{said(figures)}"
        ),
        data_id=f"over-time-{end}-data",
    )


def said(figures: EndFigures) -> str:
    """Say for those who do not see a picture what it ends with."""
    if math.isnan(figures.ratio):
        return "No link has a usual rate to compare with."
    return f"The median link is now at {format_factor(figures.ratio)} its usual rate."
