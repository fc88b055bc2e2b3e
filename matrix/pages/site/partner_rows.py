"""The links of a site at one end as lines of a table, and as a strip of its matrix."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from matrix.answers.link.rate_now import why_no_rate
from matrix.answers.site.reports import Report
from matrix.answers.site.site_links import SiteLink
from matrix.answers.time_words import time_words
from matrix.pages.site.names import ShortNames
from matrix.query.addresses import link_url

# Of an end the page shows so many links before it is asked for all.
MOST_FIRST = 10
STATE_NAMES = {"not_applicable": "not applicable"}


@dataclass(frozen=True)
class Gauge:
    """A bar from 0 to what is now, and a tick at what is usual, in percent of the longest."""

    now: float | None
    usual: float | None


@dataclass(frozen=True)
class PartnerRow:
    """A link in the table of an end; sizes are in bytes, NaN for none.

    ``name`` is the partner, or the whole link where that does not tell it from others; ``kind`` is
    what colours the row, ``status`` says how the link is, and since when in UTC. ``why_no_rate`` is
    empty where its rate now counts. ``first`` are those that are worth a look, and on paper.
    """

    link: SiteLink
    name: str
    url: str
    kind: str
    status: str
    why_no_rate: str
    gauge: Gauge
    size_mean: float
    size_std: float
    first: bool


def partner_rows(
    report: Report,
    end: str,
    links: Sequence[SiteLink],
    sizes: Sequence[tuple[float, float]],
    names: ShortNames,
) -> list[PartnerRow]:
    """Return the worst first, as the links are."""
    reasons = [why_no_rate(link.state, link.since, report.moment) for link in links]
    rates = [
        (math.nan if reason else link.rate, link.usual)
        for link, reason in zip(links, reasons, strict=True)
    ]
    longest = max((rate for pair in rates for rate in pair if rate > 0), default=1)
    links_with = Counter(link.partner for link in links)
    any_tested = any(link.tests for link in links)
    return [
        PartnerRow(
            link,
            names.link(link, alone=links_with[link.partner] == 1),
            link_url(link.source, link.destination, report.query),
            kind_of(link),
            status_of(link, report.moment),
            reasons[at],
            Gauge(*(share_of(rate, longest) for rate in rates[at])),
            *sizes[at],
            first=at < MOST_FIRST and (link.tests > 0 or not any_tested),
        )
        for at, link in enumerate(links)
    ]


def kind_of(link: SiteLink) -> str:
    if link.state == "measured":
        return link.level if link.level in ("slower", "faster") else "measured"
    return link.state


def status_of(link: SiteLink, moment: datetime) -> str:
    """Say how a link is; a link that fails may have been slower, too, but that is not its news."""
    since = "" if math.isnan(link.since) else f" since {time_words(link.since, moment)}"
    if link.is_failing:
        return f"failing{since}, {link.streak} test{'s' * (link.streak != 1)}"
    if link.level in ("slower", "faster") and link.state != "down":
        stale = ", stale" if link.state == "stale" else ""
        return f"{link.level}{since}{stale}"
    if link.state == "measured":
        level = "as usual" if link.level == "usual" else "no usual yet"
        return f"{level}, {link.failed} of {link.ok + link.failed} failed" if link.partly else level
    return STATE_NAMES.get(link.state, link.state)


def share_of(rate: float, longest: float) -> float | None:
    return None if math.isnan(rate) else round(100 * rate / longest, 1)


@dataclass(frozen=True)
class StripCell:
    """One direction with a partner in the strips: its worst link stands for several."""

    rate: float
    why_no_rate: str
    kind: str
    words: str
    url: str


@dataclass(frozen=True)
class PartnerStrips:
    """Row and column of a site over the same partners, by name: a full and a short name of each.

    ``rows`` are what each strip is called and its cells, None where nothing is tested.
    """

    partners: list[tuple[str, str]]
    rows: list[tuple[str, list[StripCell | None]]]


def strips(
    sent: Iterable[PartnerRow], received: Iterable[PartnerRow], names: ShortNames
) -> PartnerStrips:
    cells = {"sent to": cells_by_partner(sent), "received from": cells_by_partner(received)}
    partners = sorted(set().union(*cells.values()), key=str.casefold)
    return PartnerStrips(
        [(name, names.site(name)) for name in partners],
        [(words, [there.get(name) for name in partners]) for words, there in cells.items()],
    )


def cells_by_partner(rows: Iterable[PartnerRow]) -> dict[str, StripCell]:
    cells: dict[str, StripCell] = {}
    for row in rows:
        link = row.link
        words = f"from {link.source} to {link.destination}: {row.status}"
        cell = StripCell(link.rate, row.why_no_rate, row.kind, words, row.url)
        cells.setdefault(link.partner, cell)
    return cells
