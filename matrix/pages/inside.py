"""What happens inside transfers, as part of the pages of links and sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matrix.answers.inside import InsideTransfers
from matrix.answers.inside_words import SHAPE_WORDS, sentences_of, verb
from matrix.plots import rate_profile


@dataclass(frozen=True)
class InsidePart:
    """``sentences`` say what is seen, ``shapes`` have words, meaning and count of each shape."""

    sentences: list[str]
    shapes: list[tuple[str, str, int]]
    figure: dict[str, Any]
    key: str


def part_of(inside: InsideTransfers | None, key: str = "") -> InsidePart | None:
    """Return the part of a page; ``key`` tells several on one page apart."""
    if inside is None:
        return None
    shapes = [
        (verb(shape, count), SHAPE_WORDS[shape][1], count)
        for shape, count in inside.counts.items()
        if count
    ]
    return InsidePart(sentences_of(inside), shapes, rate_profile.share_figure(inside), key)
