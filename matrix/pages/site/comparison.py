"""The links of a site against what its page compares them with: sentences, tables, lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from matrix.answers.comparison import beyond
from matrix.answers.ratio_words import PairRatio
from matrix.answers.site.comparison import EndComparison, beyond_words
from matrix.answers.site.reports import Report
from matrix.answers.site.site_links import SiteLink, facts_of
from matrix.answers.site.site_now import SiteNow
from matrix.answers.site.verdict import KINDS, earliest
from matrix.pages.site.names import ShortNames
from matrix.pages.site.partner_rows import MOST_FIRST
from matrix.query.addresses import link_url
from matrix.query.matrix_query import MatrixQuery

ENDS = ("destination", "source")


@dataclass(frozen=True)
class ComparedLink:
    """A link in the table of an end; ``kind`` colours the row if it differs beyond chance.

    ``first`` are shown before all are asked for.
    """

    name: str
    source: str
    destination: str
    url: str
    kind: str
    pair: PairRatio
    first: bool = True


@dataclass(frozen=True)
class ComparedEnd:
    """An end of the links of a site while comparing."""

    comparison: EndComparison
    of: str
    rows: list[ComparedLink]

    @property
    def words(self) -> str:
        return self.comparison.words


def compared_end(
    report: Report,
    links: Sequence[SiteLink],
    comparison: EndComparison | None,
    names: ShortNames,
) -> ComparedEnd | None:
    """Return the links that differ beyond chance first, and of alike ones the slowest."""
    if comparison is None or report.query.compare is None:
        return None
    partners = [link.partner for link in links]
    rows = [
        ComparedLink(
            names.link(link, alone=partners.count(link.partner) == 1),
            link.source,
            link.destination,
            link_url(link.source, link.destination, report.query),
            pair.direction if changed else "",
            pair,
        )
        for link, pair, changed in zip(
            links, comparison.pairs, comparison.changed.tolist(), strict=True
        )
    ]
    rows.sort(key=lambda row: (not row.kind, not row.pair.kind, row.pair.ratio))
    rows = [replace(row, first=at < MOST_FIRST) for at, row in enumerate(rows)]
    return ComparedEnd(comparison, report.query.compare.of, rows)


def comparison_part(
    query: MatrixQuery,
    site: str,
    comparisons: Mapping[str, EndComparison],
    now: datetime,
    names: ShortNames,
) -> dict[str, Any] | None:
    """Return what the page says of both ends together, None if it compares with nothing."""
    if not comparisons:
        return None
    ends = [comparisons[end] for end in ENDS]
    changes = beyond.changes(query, now)
    return {
        "kind": min((end.kind for end in ends), key=KINDS.index),
        "words": ends[0].words,
        "sentences": [
            " ".join(
                filter(None, (end.sentence(names.site(site)), beyond_words(changes, site, end)))
            )
            for end in ends
        ],
    }


def changed_since(site_is: SiteNow) -> datetime | None:
    """Return when the first of the links changed that are slower than usual, or else faster."""
    facts = [facts_of(end, links) for end, links in site_is.links.items()]
    slower = earliest(each.slower.first for each in facts if each.slower)
    faster = earliest(each.faster.first for each in facts if each.faster)
    first = faster if math.isnan(slower) else slower
    return None if math.isnan(first) else datetime.fromtimestamp(first, UTC)
