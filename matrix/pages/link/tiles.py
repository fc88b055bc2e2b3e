"""The size classes of a link side by side: how each is now, and the way to its picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

from matrix.answers.link.class_words import factor, since_words
from matrix.answers.link.directions import Direction
from matrix.answers.link.rate_now import why_no_rate
from matrix.answers.link.report import ClassReport, LinkReport
from matrix.plots.direction_traces import Line
from matrix.plots.sparkline import Sparkline, sparkline
from sonar.units import DASH, format_count, three_digits


@dataclass(frozen=True)
class Tile:
    """``kind`` is the state or level that colours it, ``title`` says that in words.

    ``since`` is empty but for what fails, or is slower or faster than usual. ``figure`` is the
    rate now, or a word where there is none that counts; ``lines`` say how that compares with what
    is usual, how many tests came through, and how the reverse direction is.
    """

    size: str
    url: str
    chosen: bool
    kind: str
    title: str
    since: str
    figure: str
    unit: str
    lines: list[str]
    sparkline: Sparkline


def tiles_of(answer: LinkReport, url_of: Callable[[str], str]) -> list[Tile]:
    """Return a tile for each size class; ``url_of`` has the page with another one chosen."""
    return [
        tile_of(part, answer, url_of(part.size), chosen=part.size == answer.question.query.size)
        for part in answer.classes
    ]


def tile_of(part: ClassReport, answer: LinkReport, url: str, *, chosen: bool) -> Tile:
    there, results = part.there, part.results
    kind = kind_of(there)
    has_rate = has_rate_now(there, answer)
    failed = results.started[~results.ok]
    median = Line("", results, results).median
    return Tile(
        size=part.size,
        url=url,
        chosen=chosen,
        kind=kind,
        title=WORDS.get(kind, kind),
        since=f"since {since_words([there], answer.now_or_end)}" if there.streak else "",
        figure=three_digits(there.now) if has_rate else FIGURES.get(kind, DASH),
        unit="MB/s" if has_rate else "",
        lines=[text for text in lines_of(part, answer) if text],
        sparkline=sparkline(median, failed, there.usual, answer.window),
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
FIGURES = {"failing": "failing", "failed": "failed", "down": "down"}


def kind_of(there: Direction) -> str:
    """Return the state, or the level where the state is nothing but measured."""
    return there.level if there.state == "measured" else there.state


def has_rate_now(direction: Direction, answer: LinkReport) -> bool:
    is_old = why_no_rate(direction.state, direction.since, answer.now_or_end)
    return not (is_old or isnan(direction.now))


def lines_of(part: ClassReport, answer: LinkReport) -> list[str]:
    there, back = part.there, part.back
    return [
        against(there, has_rate=has_rate_now(there, answer)),
        counts(there),
        back_words(back, has_rate=has_rate_now(back, answer)),
    ]


def against(there: Direction, *, has_rate: bool) -> str:
    if isnan(there.usual):
        return ""
    usual = f"usual {three_digits(there.usual)}"
    if not has_rate:
        return usual
    return f"{usual} · {factor(there)}"


def counts(there: Direction) -> str:
    if not there.tests:
        return ""
    last = f", last {format_count(there.streak)} failed" if there.state == "failing" else ""
    return f"{format_count(there.ok)} of {format_count(there.tests)} ok{last}"


def back_words(back: Direction, *, has_rate: bool) -> str:
    """Say how the reverse direction is, in few words."""
    if not has_rate:
        return f"reverse: {FIGURES.get(back.state, DASH)}"
    level = f", {back.level}" if back.level in ("slower", "faster") else ""
    return f"reverse: {three_digits(back.now)} MB/s{level}"
