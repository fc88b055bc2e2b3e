"""The size classes of a link: how each is now, in numbers both ways, and compared."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from matrix.answers.comparison import all_links
from matrix.answers.link.directions import Direction
from matrix.answers.link.report import LinkReport
from matrix.answers.link.verdict import since_words
from matrix.answers.words.phrases import why_no_rate
from matrix.pages.base import QueryPage
from matrix.query.catalogue import BAND_WORDS, HIGH, LOW, OF_LINK
from matrix.statistics.cells.states import STATE_WORDS
from sonar.notation.units import DASH, format_bytes, format_count, three_digits

# What the state or level of a class is called beside a rate, and in its place.
WORDS = {
    "slower": "slower than usual",
    "faster": "faster than usual",
    "usual": "as usual",
    "unknown": "usual rate not known yet",
    "untested": "no test in this window",
    "not_applicable": "no mesh tests it",
    "failing": "newest tests all failed",
    "failed": "all tests failed",
    "stale": "not tested recently",
    "down": "in a declared downtime",
}
FIGURES = {"failing": "fails", "failed": "failed", "down": "down"}
# What needs no more words than its figures have.
PLAIN = ("usual", "unknown", "failed")
# Headings and the names of what stands below them: both ends of the band in one column.
QUANTILE_COLUMNS = [
    (BAND_WORDS, [LOW.name, HIGH.name]) if statistic == LOW else (statistic.label, [statistic.name])
    for statistic in OF_LINK
    if statistic.quantile is not None and statistic != HIGH
]
CHANGED = ("slower", "faster")
# How a comparison reads in a word, and the verdict that colours it, where it is no change.
READS = {
    "perhaps": ("unknown", "perhaps {}"),
    "same": ("usual", "no significant difference"),
    "": ("unknown", "too few results"),
}


def size_rows(answer: LinkReport, url_of: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return a row for each size class, and for the reverse direction of the chosen one.

    ``url_of`` has the page with another class chosen. `size_bytes` is the median size of the files
    of a class, empty without a test.
    """
    chosen = answer.question.query.size
    rows = [
        size_row(part.there, answer)
        | {
            "name": part.size,
            "url": url_of(part.size),
            "size_bytes": format_bytes(float(np.median(sizes))) if sizes.size else "",
            "chosen": part.size == chosen,
        }
        for part in answer.classes
        for sizes in [part.tests.bytes]
    ]
    back = next(part.back for part in answer.classes if part.size == chosen)
    return [*rows, size_row(back, answer) | {"name": f"reverse, {chosen}"}]


def size_row(direction: Direction, answer: LinkReport) -> dict[str, Any]:
    """Return how a class is now: `kind` is the state or level that colours it, `title` its words.

    `figure` is the rate now in MB/s, or a word where there is none that counts; `against` compares
    it with what is usual, else counts what failed. `note` is what is unusual, and since when.
    """
    kind = direction.level if direction.state == "measured" else direction.state
    is_old = why_no_rate(direction.state, direction.since, answer.now_or_end)
    has_rate = not (is_old or math.isnan(direction.now))
    has_usual = not math.isnan(direction.usual)
    against = ""
    if has_rate and has_usual:
        against = direction.factor
    elif direction.tests:
        fails = direction.state in FIGURES
        count, word = (direction.failed, "failed") if fails else (direction.ok, "ok")
        against = f"{format_count(count)} of {format_count(direction.tests)} {word}"
    note = ""
    if kind not in PLAIN:
        last = f"last {format_count(direction.streak)} failed"
        note = last if kind == "failing" else WORDS[kind]
        if direction.streak:
            note += f" since {since_words([direction], answer.now_or_end)}"
    return {
        "kind": kind,
        "title": WORDS.get(kind, kind),
        "figure": three_digits(direction.now) if has_rate else FIGURES.get(kind, DASH),
        "usual": f"usual {three_digits(direction.usual)}" if has_usual else "",
        "against": against,
        "note": note,
    }


DirectionRow = tuple[Direction, str, str, str, list[tuple[str, list[float]]]]


def directions_of(answer: LinkReport) -> list[list[DirectionRow]]:
    """Return each class of this direction, then of the reverse.

    With its state in a word and on hover, its comparison, and its quantiles by their headings.
    """
    there = [(line.there, line.back) for line in answer.classes]
    return [
        [
            (
                direction,
                direction.standing_words,
                STATE_WORDS[direction.state],
                direction.against(reverse),
                [
                    (heading, [direction.quantiles[name] for name in names])
                    for heading, names in QUANTILE_COLUMNS
                ],
            )
            for direction, reverse in pairs
        ]
        for pairs in (there, [(back, ahead) for ahead, back in there])
    ]


def comparison_part(page: QueryPage, answer: LinkReport) -> dict[str, Any] | None:
    """Return what the template says of the comparison, None if there is none."""
    comparison, size = answer.comparison, page.query.size
    if comparison is None:
        return None
    pair = comparison.classes[size].pair
    return {
        "kind": READS.get(pair.kind, (pair.kind,))[0],
        "headline": comparison.headline(size),
        "sentence": comparison.sentence(size),
        "beyond": beyond_words(page, answer, has_changed=pair.kind in CHANGED),
        "of": comparison.of,
        "words": comparison.words,
        "rows": [
            (
                each.size,
                "" if each.size == size else page.asking(page.query.replace(size=each.size)).url(),
                each.pair,
                READS.get(each.pair.kind, ("", each.pair.kind))[1].format(each.pair.direction),
            )
            for each in comparison.classes.values()
        ],
    }


def beyond_words(page: QueryPage, answer: LinkReport, *, has_changed: bool) -> str:
    """Say whether other links changed as much; nothing where time is not what is compared."""
    changes = all_links.changes(page.query, answer.now)
    if changes is None:
        return ""
    own = all_links.link_net_change(changes, *(end.name for end in answer.question.ends))
    if own is None:
        return "Too few other links have results to say whether they changed as well."
    return own.sentence("it is", has_changed=has_changed)


def changed_since(answer: LinkReport) -> tuple[str, datetime] | None:
    """Return a class that is slower or faster than usual, and since when; None for no such class.

    The one that is drawn comes before others.
    """
    drawn = answer.question.query.size
    for part in sorted(answer.classes, key=lambda part: part.size != drawn):
        if part.there.level in CHANGED and not math.isnan(part.there.since):
            return part.size, datetime.fromtimestamp(part.there.since, UTC)
    return None
