"""Lines without axes, as an SVG without a script: beside a number, or before and since an event.

In pictures over time an event is a mark.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matrix.answers.events.event import FAILING, RECOVERED, Event
from matrix.answers.words.names import NO_NAMES
from matrix.plots.over_time import TimeSpan
from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.samples.quantiles import RunningMedian
from sonar.notation.units import format_factor
from sonar.notation.windows import Window

WIDTH, HEIGHT = 200, 40
# Room for the width of the line, and below it for marks of failures.
EDGE, FOOT = 3, 8
COURSE_WIDTH, COURSE_HEIGHT = 160, 36
# Rates reach so far up and down from that before, as a factor; crosses stand below them.
FURTHEST = 6.0
TOP, COURSE_FOOT = 4, 26
CROSSES = COURSE_HEIGHT - 5
# Of an outage that is over, the middle of the picture is the time without a success.
GAP = 0.12
CROSS = 2.5


@dataclass(frozen=True)
class Sparkline:
    """``lines`` are the points of polylines, ``failed`` places from left to right, in SVG units.

    ``usual`` is the height of the usual rate, empty where it is not known, ``began`` the place
    where something did.
    """

    lines: list[str]
    failed: list[float]
    usual: float | None
    began: float | None = None

    width = WIDTH
    height = HEIGHT
    foot = HEIGHT - FOOT + 2


def sparkline(median: RunningMedian, failed: Integers, usual: float, window: Window) -> Sparkline:
    """Draw a running median over a window, from zero up, and where tests failed (Unix ms)."""
    drawn = ~np.isnan(median.values)
    top = float(np.max(np.append(median.values[drawn], 0 if np.isnan(usual) else usual)) or 1)
    x, y = across(median.started, window), upward(median.values, top)
    parts = np.split(np.arange(len(x)), np.flatnonzero(~drawn))
    lines = [[at for at in part.tolist() if drawn[at]] for part in parts]
    return Sparkline(
        lines=[" ".join(f"{x[at]:.1f},{y[at]:.1f}" for at in line) for line in lines if line],
        failed=sorted({round(float(place)) for place in across(failed, window)}),
        usual=None if np.isnan(usual) else float(upward(np.array([usual]), top)[0].round(1)),
    )


def across(started: Integers, window: Window) -> Floats:
    start, length = window.start.timestamp() * 1000, (window.end - window.start).total_seconds()
    share = (started - start) / np.float64(length * 1000)
    places: Floats = EDGE + share * (WIDTH - 2 * EDGE)
    return places


def upward(values: Floats, top: float) -> Floats:
    room = HEIGHT - FOOT - EDGE
    return EDGE + room * (1 - values / top)


@dataclass(frozen=True)
class CoursePicture:
    """``before`` and ``since`` are polylines; ``crosses`` are the paths of failed tests."""

    before: list[str]
    since: list[str]
    crosses: str
    usual: float = (TOP + COURSE_FOOT) / 2
    width: int = COURSE_WIDTH
    height: int = COURSE_HEIGHT


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
        before=course_lines(course[:half], (0.0, middle)),
        since=course_lines(course[half:], (1 - middle, 1.0)),
        crosses=crossed(*crosses) if crosses else "",
    )


def course_lines(course: Sequence[float | None], across: tuple[float, float]) -> list[str]:
    """Return the points of a line over a part of the width; it leads on where tests are rare."""
    step = (across[1] - across[0]) / max(len(course), 1)
    middle, half = (TOP + COURSE_FOOT) / 2, (COURSE_FOOT - TOP) / 2
    points = [
        f"{COURSE_WIDTH * (across[0] + (at + 0.5) * step):.1f}"
        f",{middle - share_of(value) * half:.1f}"
        for at, value in enumerate(course)
        if value is not None
    ]
    # A point is drawn as a line without a length, which round ends show.
    return [" ".join(points if len(points) > 1 else points * 2)] if points else []


def share_of(factor: float) -> float:
    """Return where a factor is on a logarithmic axis: from -1 to 1, at most FURTHEST either way."""
    return math.log(min(max(factor, 1 / FURTHEST), FURTHEST)) / math.log(FURTHEST)


def crossed(start: float, end: float) -> str:
    """Return a path of crosses over a part of the width."""
    count = max(round((end - start) * 20), 1)
    places = [COURSE_WIDTH * (start + (at + 0.5) * (end - start) / count) for at in range(count)]
    side = 2 * CROSS
    cross = f"l{side} {side}m0-{side}l-{side} {side}"
    return "".join(f"M{x - CROSS:.1f} {CROSSES - CROSS}{cross}" for x in places)


def marks_of(
    events: Iterable[Event], size: str, end: str = "", short: Mapping[str, str] = NO_NAMES
) -> list[TimeSpan]:
    """Return marks of the jumps of a size class, of one end of a site's links or of all.

    The factor comes before a name, as long words are cut; names are ``short`` where there are such.
    """
    marks = []
    for event in events:
        if end and event.level not in (end, "endpoint", "site", "grid"):
            continue
        of = "" if event.level == "link" else f"{event.where(short)} {event.role}".strip()
        for part in event.parts:
            if part.size == size and part.kind != FAILING:
                factor = format_factor(part.factor, part.low, part.high) if part.factor else ""
                text = f"{factor} {of}" if of else f"link {factor}"
                marks.append(TimeSpan(part.kind, part.since, None, text))
    return marks
