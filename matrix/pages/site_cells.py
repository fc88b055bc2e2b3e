"""The cells of the list of sites, column by column."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from matrix.answers.site.overview import SiteOverview
from matrix.pages.decimals import pads
from matrix.query.attributes import SITE_FACTS, SITE_LISTS
from matrix.templatetags.figures import NO_RESULT, age_words
from sonar.notation.units import DASH, format_count, format_factor, format_share, three_digits
from sonar.notation.windows import format_moment

# What a narrow screen has on the card of a site, each with what stands before it there.
ON_CARDS = {
    "trouble": "failing",
    "slower_source": "slower from it",
    "slower_destination": "slower to it",
    "ratio_source": "vs usual from it",
    "ratio_destination": "vs usual to it",
    "source": "MB/s from it",
    "destination": "MB/s to it",
    "last": "last result",
}
TEXTS = (*SITE_FACTS, *SITE_LISTS)


@dataclass(frozen=True)
class OverviewCell:
    """A text, what it says on hover, its look, what it is padded by, and its label on a card."""

    text: str
    title: str = ""
    look: str = "number"
    pad: str = ""
    label: str = ""

    @property
    def says_something(self) -> bool:
        return self.text not in ("", "0", DASH)


def columns_of(sites: Sequence[SiteOverview], now: datetime) -> dict[str, list[OverviewCell]]:
    """Return the cells of all columns but the name, in their order."""
    rows = [cells_of(site, now) for site in sites]
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}


def cells_of(site: SiteOverview, now: datetime) -> dict[str, OverviewCell]:
    source, destination = site.source, site.destination
    wan, no_usual = site.site.wan_gbit_s, "no link {} it has a usual rate to compare with"
    no_mean = "no measured link {} it in this window"
    cells = {
        "trouble": counted(site.failing, "failing"),
        "slower_source": counted(source.slower, "slower"),
        "slower_destination": counted(destination.slower, "slower"),
        "ratio_source": factor(source.to_usual, no_usual.format("from")),
        "ratio_destination": factor(destination.to_usual, no_usual.format("to")),
        **{
            key: OverviewCell(text or DASH, "" if text else none, "")
            for key, (text, none) in zip(SITE_FACTS, site.facts, strict=True)
        },
        **{
            key: OverviewCell(text, "", "list")
            for key, text in zip(SITE_LISTS, site.lists(SITE_LISTS), strict=True)
        },
        "endpoints": counted(site.in_use, title=site.endpoints_text),
        "wan": OverviewCell(f"{wan:g}")
        if wan
        else OverviewCell(DASH, "no nominal WAN capacity registered"),
        "source": rate(source.mean, no_mean.format("from")),
        "destination": rate(destination.mean, no_mean.format("to")),
        "success": success(site.success),
        "last": last(site.last, now),
    }
    return {name: on_card(name, cell) for name, cell in cells.items()}


def on_card(name: str, cell: OverviewCell) -> OverviewCell:
    if name not in ON_CARDS:
        return cell
    return dataclasses.replace(cell, look=f"{cell.look} carded", label=ON_CARDS[name])


def counted(number: int, trouble: str = "", title: str = "") -> OverviewCell:
    return OverviewCell(
        format_count(number), title, f"number {trouble}".strip() if number else "number"
    )


def factor(value: float, reason: str) -> OverviewCell:
    return OverviewCell(DASH, reason) if math.isnan(value) else OverviewCell(format_factor(value))


def rate(value: float, reason: str) -> OverviewCell:
    return OverviewCell(DASH, reason) if math.isnan(value) else OverviewCell(three_digits(value))


def success(share: float) -> OverviewCell:
    return OverviewCell(DASH, NO_RESULT) if math.isnan(share) else OverviewCell(format_share(share))


def last(started: float, now: datetime) -> OverviewCell:
    if math.isnan(started):
        return OverviewCell(DASH, NO_RESULT)
    moment = format_moment(datetime.fromtimestamp(started, UTC))
    return OverviewCell(age_words(started, now), moment)


def aligned(cells: Sequence[OverviewCell]) -> list[OverviewCell]:
    """Return the cells of a column with the points of its numbers in one line."""
    if "number" not in cells[0].look:
        return list(cells)
    padding = pads([cell.text for cell in cells])
    return [dataclasses.replace(cell, pad=pad) for cell, pad in zip(cells, padding, strict=True)]
