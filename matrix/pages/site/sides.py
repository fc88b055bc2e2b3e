"""A site at each end of its links, as its page shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matrix.answers.site.history import EndHistory, RatioSeries
from matrix.answers.site.ranking import Standing
from matrix.answers.site.reports import Report
from matrix.answers.site.site_links import EndFigures, SiteLink, figures_of
from matrix.pages.site.comparison import ComparedEnd
from matrix.pages.site.names import ShortNames
from matrix.pages.site.partner_rows import PartnerRow, partner_rows
from matrix.pages.site.together import Drift
from matrix.statistics.cells.standing import FEWEST_SUCCESSES
from sonar.models import Site
from sonar.notation.units import format_factor

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
    id of its JSON in the page. Where there is nothing to draw, ``why_empty`` says why.
    ``left_out`` is how many rows are not shown at first; ``compared`` is there if the question
    compares with something, ``drift`` if the window is long. ``is_of_rates`` says that nothing is
    usual yet.
    """

    end: str
    words: SideWords
    figures: EndFigures
    lines: list[ClassLine]
    rows: list[PartnerRow]
    left_out: int
    bucket_words: str
    is_of_rates: bool
    why_empty: str
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
    names: ShortNames,
    is_of_rates: bool,
) -> SiteSide:
    figures, words = figures_of(links), WORDS[end]
    lines = [
        ClassLine(size, size == report.query.size, standing, standing.of_capacity(site.wan_gbit_s))
        for size, standing in report.standings(end).items()
    ]
    rows = partner_rows(report, end, links, history.sizes(), names)
    return SiteSide(
        end,
        words,
        figures,
        lines,
        rows=rows,
        left_out=sum(not row.first for row in rows),
        bucket_words=BUCKET_WORDS[history.series.bucket],
        is_of_rates=is_of_rates,
        why_empty=why_empty(history.series),
        figure=figure,
        figure_label=(
            f"Rates of the links {words.preposition} {site.name}"
            f"{'' if is_of_rates else ' relative to their usual rate'} over time, and failed "
            f"tests, with {report.query.size} files. {said(figures)}"
        ),
        data_id=f"over-time-{end}-data",
    )


def why_empty(series: RatioSeries) -> str:
    """Say why there is no line to draw; nothing where there is."""
    if series.links.any():
        return ""
    if series.ok.any():
        return (
            f"No link has a usual rate yet: that takes {FEWEST_SUCCESSES} successful tests before."
        )
    return "No test succeeded in this window." if series.failed.any() else "No test in this window."


def said(figures: EndFigures) -> str:
    """Say for those who do not see a picture what it ends with."""
    if math.isnan(figures.ratio):
        return "No link has a usual rate to compare with."
    return f"The median link is now at {format_factor(figures.ratio)} its usual rate."
