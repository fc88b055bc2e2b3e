"""Lines without axes, as an SVG without a script; and events as marks in pictures over time."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from matrix.answers.events.event import FASTER, SLOWER, Event
from matrix.answers.words.names import NO_NAMES
from matrix.plots.over_time import TimeSpan
from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.samples.quantiles import RunningMedian
from sonar.notation.windows import Window

WIDTH, HEIGHT = 200, 40
# Room for the width of the line, and below it for marks of failures.
EDGE, FOOT = 3, 8
# A gauge reaches this far up and down from the rate before, as a factor.
FURTHEST = 6.0


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


def share_of(factor: float) -> float:
    """Return where a factor is on a logarithmic axis: from -1 to 1, at most FURTHEST either way."""
    return math.log(min(max(factor, 1 / FURTHEST), FURTHEST)) / math.log(FURTHEST)


def marks_of(
    events: Iterable[Event], size: str, end: str = "", short: Mapping[str, str] = NO_NAMES
) -> list[TimeSpan]:
    """Return marks of the confirmed jumps of a size class, of one end of a site's links or of all.

    The factor comes before a name, as long words are cut; names are ``short`` where there are such.
    """
    marks = []
    for event in events:
        if (
            event.type not in (SLOWER, FASTER)
            or size not in event.sizes
            or not event.is_significant
        ):
            continue
        if end and event.scope not in (end, "endpoint", "site", "grid"):
            continue
        of = "link" if event.scope == "link" else f"{event.where(short)} {event.role}".strip()
        words = (of, event.factor_words) if event.scope == "link" else (event.factor_words, of)
        marks.append(TimeSpan(event.type, event.since, None, " ".join(filter(None, words))))
    return marks
