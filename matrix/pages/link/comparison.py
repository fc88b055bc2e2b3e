"""What the page of a link says while it is compared with something: the answer, and the classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from matrix.answers.comparison import beyond
from matrix.answers.link.report import LinkReport
from matrix.answers.ratio_words import PairRatio
from matrix.pages.base import QueryPage

# What a pair is coloured by, as verdicts are.
KINDS = {
    "slower": "slower",
    "faster": "faster",
    "perhaps": "unknown",
    "same": "usual",
    "": "unknown",
}
CHANGED = ("slower", "faster")
READS = {
    "perhaps": "perhaps {direction}",
    "same": "no significant difference",
    "": "too few results",
}


@dataclass(frozen=True)
class ComparedRow:
    """A size class in the table of all that are compared."""

    size: str
    other_size: str
    url: str
    chosen: bool
    pair: PairRatio

    @property
    def reads(self) -> str:
        """Say in a word how the pair compares."""
        words = READS.get(self.pair.kind, self.pair.kind)
        return words.format(direction=self.pair.direction)


def comparison_part(page: QueryPage, answer: LinkReport) -> dict[str, Any] | None:
    """Return what the template says of the comparison, None if there is none."""
    comparison, size = answer.comparison, page.query.size
    if comparison is None:
        return None
    return {
        "kind": KINDS[comparison.classes[size].pair.kind],
        "headline": comparison.headline(size),
        "sentence": comparison.sentence(size),
        "beyond": beyond_words(page, answer, comparison.classes[size].pair),
        "of": comparison.of,
        "words": comparison.words,
        "window": comparison.window,
        "rows": [
            ComparedRow(
                compared.size,
                compared.other_size,
                page.asking(page.query.replace(size=compared.size)).url(),
                compared.size == size,
                compared.pair,
            )
            for compared in comparison.classes.values()
        ],
    }


def beyond_words(page: QueryPage, answer: LinkReport, pair: PairRatio) -> str:
    """Say whether other links changed as much; nothing where time is not what is compared."""
    changes = beyond.changes(page.query, answer.now)
    if changes is None:
        return ""
    own = beyond.of_link(changes, *(end.name for end in answer.question.ends))
    if own is None:
        return "Too few other links have results to say whether they changed as well."
    return own.sentence("it is", has_changed=pair.kind in CHANGED)


def changed_since(answer: LinkReport) -> tuple[str, datetime] | None:
    """Return a class that is slower or faster than usual, and since when; None for no such class.

    The one that is drawn comes before others.
    """
    drawn = answer.question.query.size
    for part in sorted(answer.classes, key=lambda part: part.size != drawn):
        if part.there.level in CHANGED and not math.isnan(part.there.since):
            return part.size, datetime.fromtimestamp(part.there.since, UTC)
    return None
