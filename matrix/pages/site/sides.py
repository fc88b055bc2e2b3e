"""A site at each end of its links: figures, a picture, and its links as rows and as a strip."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from matrix.answers.site.history import EndHistory
from matrix.answers.site.reports import Report
from matrix.answers.site.site_links import SiteLink, figures_of
from matrix.answers.site.site_now import SiteNow
from matrix.answers.site.verdict import end_kind
from matrix.answers.words.names import uncut_names_of
from matrix.answers.words.phrases import time_words, why_no_rate
from matrix.pages.site.written_rows import link_rows, strip_rows
from matrix.query.addresses import link_url
from matrix.statistics.cells.axes import AxisGroup, EndpointInfo
from matrix.statistics.cells.standing import FEWEST_SUCCESSES
from sonar.models import Site
from sonar.notation.units import format_factor

BUCKET_WORDS = {"5m": "5 minutes", "1h": "hour", "6h": "6 hours", "1d": "day"}
# What the site is in the matrix of sites, and where its links lead: from it or to it.
WORDS = {
    "destination": {"line": "column", "preposition": "to", "opposite": "from"},
    "source": {"line": "row", "preposition": "from", "opposite": "to"},
}
# Of an end the page shows so many links before it is asked for all.
MOST_FIRST = 10
SHIFTED = ("silent", "slower", "faster")


@dataclass(frozen=True)
class ShortNames:
    """What the page calls sites and endpoints, by their full names: without what many share."""

    sites: Mapping[str, str]
    endpoints: Mapping[str, str]

    @classmethod
    def of(cls, places: Sequence[EndpointInfo]) -> Self:
        members: dict[str, list[EndpointInfo]] = {}
        for place in places:
            members.setdefault(place.site, []).append(place)
        groups = [AxisGroup.of(name, of_site) for name, of_site in members.items()]
        return cls(uncut_names_of(groups), uncut_names_of(places))

    def site(self, name: str) -> str:
        return self.sites.get(name, name)

    def links(self, links: Sequence[SiteLink]) -> list[str]:
        """Name links by their partners, or by both ends where a partner has several."""
        counts = Counter(link.partner for link in links)
        return [
            self.site(link.partner)
            if counts[link.partner] == 1
            else f"{self.endpoints[link.source]} → {self.endpoints[link.destination]}"
            for link in links
        ]


def side_of(
    report: Report,
    site: Site,
    end: str,
    *,
    site_is: SiteNow,
    history: EndHistory,
    figure: dict[str, Any],
    names: ShortNames,
    is_of_rates: bool,
) -> dict[str, Any]:
    """Return all of a site as source, or as destination.

    `figure_label` says what the picture shows to those who do not see it, and `data_id` is the id
    of its JSON in the page. Where there is nothing to draw, `why_empty` says why. `left_out` is how
    many rows are not shown at first; `is_of_rates` says that nothing is usual yet. `lines` have how
    the site stands in each size class, and its share of the WAN.
    """
    links, words = site_is.links[end], WORDS[end]
    figures, series = figures_of(links), history.series
    why_empty = ""
    if not series.links.any():
        succeeded = " succeeded" if series.failed.any() else ""
        why_empty = f"No test{succeeded} in this time range."
        if series.ok.any():
            before = f"a baseline needs {FEWEST_SUCCESSES} successful tests before the time range."
            why_empty = f"No link has a baseline yet: {before}"
    rows = partner_rows(report, links, history.sizes(), names)
    median = "No link has a baseline to compare with."
    if not math.isnan(figures.ratio):
        median = f"The median link is now at {format_factor(figures.ratio)} its baseline."
    return {
        "end": end,
        "words": words,
        "figures": figures,
        "level": end_kind(site_is.verdict.conditions, report.name, end),
        "lines": [
            (size, size == report.query.size, standing, standing.of_capacity(site.wan_gbit_s))
            for size, standing in report.standings(end).items()
        ],
        "rows": rows,
        "written_rows": link_rows(rows, is_of_rates=is_of_rates),
        "left_out": sum(not row["first"] for row in rows),
        "bucket_words": BUCKET_WORDS[series.bucket],
        "is_of_rates": is_of_rates,
        "why_empty": why_empty,
        "figure": figure,
        "figure_label": (
            f"Rates{'' if is_of_rates else ' relative to baseline'} and failed tests of the links "
            f"{words['preposition']} {site.name} over time, for {report.query.size} files. {median}"
        ),
        "data_id": f"over-time-{end}-data",
    }


def partner_rows(
    report: Report,
    links: Sequence[SiteLink],
    sizes: Sequence[tuple[float, float]],
    names: ShortNames,
) -> list[dict[str, Any]]:
    """Return the links of an end as lines of a table, the worst first, as the links are.

    ``sizes`` are mean and standard deviation of their files in bytes, NaN for none. `kind` is what
    colours a row, `status` says how the link is, and since when in UTC. `why_no_rate` is empty
    where its rate now counts. Of its gauge, `now` and `usual` are in percent of the longest.
    `first` are those that are worth a look, and on paper.
    """
    reasons = [why_no_rate(link.state, link.since, report.moment) for link in links]
    rates = [
        (math.nan if reason else link.rate, link.usual)
        for link, reason in zip(links, reasons, strict=True)
    ]
    longest = max((rate for pair in rates for rate in pair if rate > 0), default=1)
    any_tested = any(link.tests for link in links)
    shares = [
        [None if math.isnan(rate) else round(100 * rate / longest, 1) for rate in pair]
        for pair in rates
    ]
    return [
        {
            "link": link,
            "name": name,
            "url": link_url(link.source, link.destination, report.query),
            "kind": link.level
            if link.level == "silent" or (link.level in SHIFTED and link.state == "measured")
            else link.state,
            "status": status_of(link, report.moment),
            "why_no_rate": reasons[at],
            "now": shares[at][0],
            "usual": shares[at][1],
            "size_mean": sizes[at][0],
            "size_std": sizes[at][1],
            "first": at < MOST_FIRST and (link.tests > 0 or not any_tested),
        }
        for at, (link, name) in enumerate(zip(links, names.links(links), strict=True))
    ]


def status_of(link: SiteLink, moment: datetime) -> str:
    """Say how a link is; a link that fails may have been slower, too, but that is not its news."""
    since = "" if math.isnan(link.since) else f" since {time_words(link.since, moment)}"
    if link.is_failing:
        streak = f", {link.streak} test{'s' * (link.streak != 1)}" if link.streak else ""
        return f"failing{since}{streak}"
    if link.level in SHIFTED and link.state != "down":
        stale = ", stale" if link.state == "stale" else ""
        return f"{link.level}{since}{stale}"
    if link.state == "measured":
        unknown = "unconfirmed" if link.unconfirmed else "no baseline yet"
        level = "as usual" if link.level == "usual" else unknown
        return f"{level}, {link.failed} of {link.ok + link.failed} failed" if link.partly else level
    return link.state


def strips(
    sent: Iterable[dict[str, Any]], received: Iterable[dict[str, Any]], names: ShortNames
) -> dict[str, Any]:
    """Return row and column of a site over the same partners, by name.

    `partners` are a full and a short name of each. `written_rows` have what each strip is called
    and its cells: the row of the worst link with a partner.
    """
    cells: dict[str, dict[str, dict[str, Any]]] = {"sent to": {}, "received from": {}}
    for by_partner, rows in zip(cells.values(), (sent, received), strict=True):
        for row in rows:
            link = row["link"]
            words = f"from {link.source} to {link.destination}: {row['status']}"
            by_partner.setdefault(link.partner, row | {"words": words})
    partners = sorted(set().union(*cells.values()), key=str.casefold)
    return {
        "partners": [(name, names.site(name)) for name in partners],
        "written_rows": strip_rows(
            (words, [there.get(name) for name in partners]) for words, there in cells.items()
        ),
    }
