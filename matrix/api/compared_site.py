"""The links of a site against what a call compares them with."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from matrix.answers.comparison import beyond
from matrix.answers.site.comparison import EndComparison, beyond_words
from matrix.answers.site.reports import Report
from matrix.answers.site.site_now import SiteNow
from matrix.api.compared import of_factor, of_pair

Json = dict[str, Any]


def of_comparison(report: Report, site_is: SiteNow, now: datetime) -> Json:
    """Return what SiteComparison describes."""
    others = beyond.changes(report.query, now)
    ends = {
        f"as_{end}": of_end(report.name, comparison)
        | {
            "beyond": beyond_words(others, report.name, comparison),
            "links": list(links_of(site_is, end)),
        }
        for end, comparison in site_is.comparisons.items()
    }
    return {"description": report.query.other_words(), **ends}


def of_end(site: str, comparison: EndComparison) -> Json:
    together = comparison.together
    return {
        "kind": comparison.kind,
        "sentence": comparison.sentence(site),
        **of_factor(together),
        "compared": together.links,
        "ok": together.ok,
        "other_ok": together.other_ok,
        "slower": comparison.slower,
        "faster": comparison.faster,
    }


def links_of(site_is: SiteNow, end: str) -> Iterator[Json]:
    """Yield the links of an end in the order of the report, with both sides."""
    comparison = site_is.comparisons[end]
    rows = zip(site_is.links[end], comparison.pairs, comparison.changed.tolist(), strict=True)
    for link, pair, changed in rows:
        ends = {name: getattr(link, name) for name in ("source", "destination", "partner")}
        yield ends | of_pair(pair) | {"change": pair.kind if changed else ""}


def compared_links(site_is: SiteNow) -> Iterator[Json]:
    """Yield the links of both ends; one within the site is in both."""
    for end in site_is.comparisons:
        for row in links_of(site_is, end):
            yield {"end": end, **row}
