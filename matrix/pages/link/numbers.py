"""Both directions of a link in numbers, as the table of its page has them."""

from __future__ import annotations

from matrix.answers.link.class_words import standing_words
from matrix.answers.link.directions import Direction
from matrix.answers.link.report import LinkReport
from matrix.query.catalogue import BAND_WORDS, HIGH, LOW, OF_LINK
from matrix.statistics.cells.states import STATE_WORDS

DirectionRow = tuple[Direction, str, str, str, list[tuple[str, list[float]]]]

# Headings and the names of what stands below them: both ends of the band in one column.
QUANTILE_COLUMNS = [
    (BAND_WORDS, [LOW.name, HIGH.name]) if statistic == LOW else (statistic.label, [statistic.name])
    for statistic in OF_LINK
    if statistic.quantile is not None and statistic != HIGH
]


def directions_of(answer: LinkReport) -> list[list[DirectionRow]]:
    """Return each class of this direction, then of the reverse.

    With its state in a word and on hover, its comparison, and its quantiles by their headings.
    """
    return [
        [
            (
                direction,
                standing_words(direction),
                STATE_WORDS[direction.state],
                direction.against(reverse),
                [
                    (heading, [direction.quantiles[name] for name in names])
                    for heading, names in QUANTILE_COLUMNS
                ],
            )
            for direction, reverse in pairs
        ]
        for pairs in (
            [(line.there, line.back) for line in answer.classes],
            [(line.back, line.there) for line in answer.classes],
        )
    ]
