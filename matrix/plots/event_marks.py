"""Marks of jumps in pictures over time."""

from __future__ import annotations

from collections.abc import Iterable

from matrix.answers.events.event import Event
from matrix.answers.events.happening import FAILING, Happening
from matrix.plots.bands import TimeSpan
from sonar.notation.units import format_factor


def marks_of(events: Iterable[Event], size: str, end: str = "") -> list[TimeSpan]:
    """Return marks of the jumps of a size class, of one end of a site's links or of all."""
    return [
        TimeSpan(part.kind, part.since, None, f"{mark_of(event)} {factor_words(part)}")
        for event in events
        if not end or event.level in (end, "endpoint", "site", "grid")
        for part in event.parts
        if part.size == size and part.kind != FAILING
    ]


def mark_of(event: Event) -> str:
    """Say in few words, for a picture, what it is of."""
    return "link" if event.level == "link" else f"{event.where()} {event.role}".strip()


def factor_words(part: Happening) -> str:
    return format_factor(part.factor, part.low, part.high) if part.factor else ""
