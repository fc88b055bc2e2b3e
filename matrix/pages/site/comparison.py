"""The links of a site compared: one by one, all together, around a note, and by halves."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from matrix.answers.comparison import net_change
from matrix.answers.comparison.all_links import AROUND, factor_words, verdict
from matrix.answers.site.comparison import EndComparison, beyond_words
from matrix.answers.site.reports import Report
from matrix.answers.site.site_links import SiteLink, facts_of
from matrix.answers.site.site_now import ComparedEnds, NoteEffect, SiteNow
from matrix.answers.site.verdict import KINDS, VERBS, earliest
from matrix.pages.base import QueryPage
from matrix.pages.parts.notes import around_url
from matrix.pages.site.sides import MOST_FIRST, ShortNames
from matrix.query.addresses import link_url
from matrix.query.comparison import CUSTOM, Comparison
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.compare.together import Together
from sonar.notation.units import format_factor

ENDS = ("destination", "source")


def compared_end(
    report: Report, links: Sequence[SiteLink], comparison: EndComparison | None, names: ShortNames
) -> dict[str, Any] | None:
    """Return the links that differ beyond chance first, and of alike ones the slowest.

    `kind` colours those; `first` are shown before all are asked for.
    """
    if comparison is None or report.query.compare is None:
        return None
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "link": link,
            "url": link_url(link.source, link.destination, report.query),
            "kind": pair.direction if changed else "",
            "pair": pair,
        }
        for link, name, pair, changed in zip(
            links, names.links(links), comparison.pairs, comparison.changed.tolist(), strict=True
        )
    ]
    rows.sort(key=lambda row: (not row["kind"], not row["pair"].kind, row["pair"].ratio))
    return {
        "words": comparison.words,
        "of": report.query.compare.of,
        "rows": [row | {"first": at < MOST_FIRST} for at, row in enumerate(rows)],
    }


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
    changes = net_change.changes(query, now)
    said = [(end.sentence(names.site(site)), beyond_words(changes, site, end)) for end in ends]
    return {
        "kind": min((end.kind for end in ends), key=KINDS.index),
        "words": ends[0].words,
        "sentences": [" ".join(filter(None, sentences)) for sentences in said],
    }


def changed_since(site_is: SiteNow) -> datetime | None:
    """Return when the first of the links changed that are slower than usual, or else faster."""
    facts = [facts_of(end, links) for end, links in site_is.links.items()]
    slower = earliest(each.slower.first for each in facts if each.slower)
    faster = earliest(each.faster.first for each in facts if each.faster)
    first = faster if math.isnan(slower) else slower
    return None if math.isnan(first) else datetime.fromtimestamp(first, UTC)


def effect_lines(
    page: QueryPage, effects: Sequence[NoteEffect], now: datetime
) -> list[dict[str, Any]]:
    """Return each note, the page that compares before it with after it, and what that says by end.

    Of an end stand there what colours it, the factor (empty for no tests), it in words, and the
    tests after it and before.
    """
    return [
        {
            "note": effect.note,
            "url": around_url(page, effect.note.starts_at, now),
            "ends": [effect_of(effect.ends[end]) for end in ENDS],
        }
        for effect in effects
    ]


def effect_of(together: Together) -> tuple[str, str, str, int, int]:
    counts = together.ok, together.other_ok
    if not together.links:
        return "", "", "", *counts
    bounds = () if np.isnan(together.low) else (together.low, together.high)
    factor = format_factor(together.ratio, *bounds)
    return together.kind, factor, verdict(together), *counts


def drift_of(page: QueryPage, drift: ComparedEnds | None, end: str) -> tuple[str, str] | None:
    """Say whether an end has drifted in the window; None for a short one, or without tests.

    With the sentence comes the page that compares the second half of the window with the first.
    """
    if drift is None or not drift.ends[end].links:
        return None
    factor = factor_words(drift.ends[end], AROUND)
    sentence = f"Since the middle of this window it has {VERBS[end].then} at {factor}."
    compare = Comparison(CUSTOM, drift.sides.other.start, drift.sides.other.end)
    after = page.query.replace(compare=None).during(drift.sides.own)
    return sentence, page.asking(after.replace(compare=compare)).url()
