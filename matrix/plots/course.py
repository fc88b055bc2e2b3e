"""How a rate went before and since an event: a line without axes, as an SVG without a script.

What happened stands in the middle, as there is as much time before it as since.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matrix.answers.events.event import RECOVERED, Event
from matrix.answers.events.happening import FAILING

WIDTH, HEIGHT = 160, 36
# Rates reach so far up and down from that before, as a factor; crosses stand below them.
FURTHEST = 6.0
TOP, FOOT = 4, 26
CROSSES = HEIGHT - 5
# Of an outage that is over, the middle of the picture is the time without a success.
GAP = 0.12
CROSS = 2.5


@dataclass(frozen=True)
class CoursePicture:
    """``before`` and ``since`` are polylines; ``crosses`` are the paths of failed tests."""

    before: list[str]
    since: list[str]
    crosses: str
    usual: float = (TOP + FOOT) / 2
    width: int = WIDTH
    height: int = HEIGHT


def course_of(event: Event) -> CoursePicture | None:
    """Draw the course of an event, None where nothing is known of it."""
    course = event.course
    if not course:
        return None
    half = len(course) // 2
    is_over = event.kind == RECOVERED
    middle = 0.5 - GAP if is_over else 0.5
    crosses = {FAILING: (0.5, 0.98), RECOVERED: (0.5 - GAP, 0.5 + GAP)}.get(event.kind)
    return CoursePicture(
        before=lines(course[:half], (0.0, middle)),
        since=lines(course[half:], (1 - middle, 1.0)),
        crosses=crossed(*crosses) if crosses else "",
    )


def lines(course: Sequence[float | None], across: tuple[float, float]) -> list[str]:
    """Return the points of a line over a part of the width; it leads on where tests are rare."""
    step = (across[1] - across[0]) / max(len(course), 1)
    points = [
        f"{WIDTH * (across[0] + (at + 0.5) * step):.1f},{upward(value):.1f}"
        for at, value in enumerate(course)
        if value is not None
    ]
    return [" ".join(twice(points))] if points else []


def twice(points: list[str]) -> list[str]:
    """Draw a point as a line without a length, which round ends show."""
    return points if len(points) > 1 else points * 2


def upward(value: float) -> float:
    return (TOP + FOOT) / 2 - share_of(value) * (FOOT - TOP) / 2


def share_of(factor: float) -> float:
    """Return where a factor is on a logarithmic axis: from -1 to 1, at most FURTHEST either way."""
    return math.log(min(max(factor, 1 / FURTHEST), FURTHEST)) / math.log(FURTHEST)


def crossed(start: float, end: float) -> str:
    """Return a path of crosses over a part of the width."""
    count = max(round((end - start) * 20), 1)
    places = [WIDTH * (start + (at + 0.5) * (end - start) / count) for at in range(count)]
    side = 2 * CROSS
    cross = f"l{side} {side}m0-{side}l-{side} {side}"
    return "".join(f"M{x - CROSS:.1f} {CROSSES - CROSS}{cross}" for x in places)
