"""The size classes of a link side by side: how each is now, and the way to its picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

import numpy as np

from matrix.answers.link.class_words import factor, since_words
from matrix.answers.link.directions import Direction
from matrix.answers.link.rate_now import why_no_rate
from matrix.answers.link.report import ClassReport, LinkReport
from sonar.notation.units import DASH, format_bytes, format_count, three_digits


@dataclass(frozen=True)
class SizeRow:
    """``kind`` is the state or level that colours it, ``title`` says that in words.

    ``size_bytes`` is the median size of its files, empty without a test. ``figure`` is the rate
    now in MB/s, or a word where there is none that counts; ``against`` compares it with what is
    usual, else counts what failed. ``note`` is what is unusual, empty where nothing is.
    """

    name: str
    size_bytes: str
    url: str
    chosen: bool
    kind: str
    title: str
    figure: str
    usual: str
    against: str
    note: str


def size_rows(answer: LinkReport, url_of: Callable[[str], str]) -> list[SizeRow]:
    """Return a row for each size class, and for the reverse direction of the chosen one.

    ``url_of`` has the page with another class chosen.
    """
    chosen = answer.question.query.size
    rows = [
        row_of(
            part.there,
            answer,
            name=part.size,
            url=url_of(part.size),
            size_bytes=bytes_words(part),
            chosen=part.size == chosen,
        )
        for part in answer.classes
    ]
    back = next(part.back for part in answer.classes if part.size == chosen)
    return [*rows, row_of(back, answer, name=f"reverse, {chosen}")]


def row_of(
    direction: Direction,
    answer: LinkReport,
    *,
    name: str,
    url: str = "",
    size_bytes: str = "",
    chosen: bool = False,
) -> SizeRow:
    kind = kind_of(direction)
    is_old = why_no_rate(direction.state, direction.since, answer.now_or_end)
    has_rate = not (is_old or isnan(direction.now))
    is_compared = has_rate and not isnan(direction.usual)
    return SizeRow(
        name=name,
        size_bytes=size_bytes,
        url=url,
        chosen=chosen,
        kind=kind,
        title=WORDS.get(kind, kind),
        figure=three_digits(direction.now) if has_rate else FIGURES.get(kind, DASH),
        usual="" if isnan(direction.usual) else f"usual {three_digits(direction.usual)}",
        against=factor(direction) if is_compared else counts(direction),
        note=note_of(direction, kind, answer),
    )


# What a kind is called beside a rate, and in its place.
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


def kind_of(direction: Direction) -> str:
    """Return the state, or the level where the state is nothing but measured."""
    return direction.level if direction.state == "measured" else direction.state


def bytes_words(part: ClassReport) -> str:
    """Write the median size of the files of a class: `10 MB`; nothing without a test."""
    sizes = part.tests.bytes
    return format_bytes(float(np.median(sizes))) if sizes.size else ""


def counts(direction: Direction) -> str:
    if not direction.tests:
        return ""
    if direction.state in FIGURES:
        return f"{format_count(direction.failed)} of {format_count(direction.tests)} failed"
    return f"{format_count(direction.ok)} of {format_count(direction.tests)} ok"


def note_of(direction: Direction, kind: str, answer: LinkReport) -> str:
    """Say what is unusual, and since when."""
    if kind in PLAIN:
        return ""
    since = f" since {since_words([direction], answer.now_or_end)}" if direction.streak else ""
    words = f"last {format_count(direction.streak)} failed" if kind == "failing" else WORDS[kind]
    return words + since
