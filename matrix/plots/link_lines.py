"""What the picture of a link is drawn from: its directions, and what it is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

import numpy as np

from matrix.answers.link import series
from matrix.answers.link.directions import Direction
from matrix.answers.link.report import MOST_POINTS, ClassReport, LinkReport
from matrix.answers.link.samples import Results
from matrix.answers.link.series import TimeSeries, cut_for_table
from matrix.plots import Json, over_time
from matrix.plots.link import Line, UsualRange, figure, name_of
from matrix.plots.over_time import BACK, THERE, Look, Noted, TimeSpan, filled, other_look
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.standing import LEVELS
from sonar.notation.windows import Window, format_minute

# Levels that begin at a moment worth a line.
SHIFTED = LEVELS[2:]


@dataclass(frozen=True)
class DirectionLine:
    """One direction of the size class that is drawn, or what it is compared with, in ``words``."""

    source: str
    destination: str
    size: str
    results: Results
    series: TimeSeries
    look: Look = THERE
    words: str = ""

    @property
    def name(self) -> str:
        name = name_of(self.source, self.destination)
        return f"{name}, {escape(self.words)}" if self.words else name

    @property
    def direction(self) -> str:
        """Say the direction, and of what it is compared with what that is."""
        return ", ".join(filter(None, (f"{self.source} → {self.destination}", self.words)))

    @property
    def rates(self) -> Floats:
        return self.results.successes


def drawn_class(answer: LinkReport) -> ClassReport:
    """Return the size class of the question."""
    return next(part for part in answer.classes if part.size == answer.question.query.size)


def lines_of(answer: LinkReport, *, reverse: bool = False) -> list[DirectionLine]:
    """Return the lines of the picture, with the reverse direction if it is asked for."""
    return [*directions_of(answer)[: 1 + reverse], *other_lines(answer, answer.question.query.size)]


@dataclass(frozen=True)
class RatesPicture:
    """A figure over time, the ``window`` of its axis, and how many ``points`` it draws singly."""

    figure: Json
    window: Window
    points: int


def rates_over_time(
    answer: LinkReport, lines: Sequence[DirectionLine], spans: Sequence[TimeSpan]
) -> RatesPicture:
    """Draw the lines over the part of the window that has anything."""
    newest, shown = newest_of(lines), shown_window(answer, lines, spans)
    usual = usual_of(drawn_class(answer).there)
    drawn = figure(newest, shown, spans, usual, other_window(answer))
    return RatesPicture(drawn, shown, sum(len(line.points) for line in newest))


def spans_drawn(
    answer: LinkReport, notes: Sequence[Noted], changes: Sequence[TimeSpan]
) -> list[TimeSpan]:
    """Return the times that the picture names, notes and changes as downtimes are."""
    return [*spans_of(drawn_class(answer).there, answer, notes), *changes]


def shown_window(
    answer: LinkReport, lines: Sequence[DirectionLine], spans: Sequence[TimeSpan]
) -> Window:
    """Return the window of the picture: that of the answer, or the part of it that has anything."""
    started = np.concatenate([line.results.started for line in lines])
    if answer.comparison or not started.size:
        return answer.window
    first = datetime.fromtimestamp(int(started.min()) / 1000, UTC)
    return filled(answer.window, min([first, *(span.start for span in spans)]))


def newest_of(lines: Sequence[DirectionLine]) -> list[Line]:
    """Return what is drawn of each line: as points not too many, of each window as many."""
    axes = {line.look.axis for line in lines}
    most, since = MOST_POINTS // len(axes), dict.fromkeys(axes, 0)
    for axis in axes:
        started = np.concatenate([line.results.started for line in lines if line.look.axis == axis])
        if started.size > most:
            since[axis] = int(np.sort(started)[-most])
    return [
        Line(
            line.name,
            line.results,
            line.results.taken(line.results.started >= since[line.look.axis]),
            line.look,
        )
        for line in lines
    ]


def directions_of(answer: LinkReport) -> list[DirectionLine]:
    """Return the direction of the question, and then its reverse."""
    part = drawn_class(answer)
    there, back = part.buckets(cut_for_table(answer.window))
    source, destination = answer.question.source.name, answer.question.destination.name
    return [
        DirectionLine(source, destination, part.size, part.results, there),
        DirectionLine(destination, source, part.size, part.reverse, back, BACK),
    ]


def other_lines(answer: LinkReport, size: str) -> list[DirectionLine]:
    """Return what the class is compared with, if it is compared with anything."""
    comparison = answer.comparison
    if comparison is None:
        return []
    compared, (source, destination) = comparison.classes[size], comparison.ends
    results, window = compared.results, comparison.window
    buckets = series.in_buckets(results.started, results.rates, cut_for_table(window))
    look = other_look(comparison.words, has_own_times=other_window(answer) is not None)
    return [
        DirectionLine(
            source.name,
            destination.name,
            compared.other_size,
            results,
            buckets,
            look,
            comparison.words,
        )
    ]


def other_window(answer: LinkReport) -> Window | None:
    """Return the window that the link is compared with, if that is another one."""
    window = answer.comparison.window if answer.comparison else answer.window
    return None if window == answer.window else window


def usual_of(there: Direction) -> UsualRange | None:
    return None if np.isnan(there.usual) else UsualRange(there.usual, there.low, there.high)


def spans_of(there: Direction, answer: LinkReport, notes: Sequence[Noted]) -> list[TimeSpan]:
    """Return downtimes, notes, and since when the class fails or has another rate than usual."""
    spans = over_time.spans_of(answer.downtimes, notes, answer.window)
    kind = there.state if there.state == "failing" else there.level
    if kind in ("failing", *SHIFTED):
        since = datetime.fromtimestamp(there.since, UTC)
        words = f"{kind} since {format_minute(since)}"
        spans.append(TimeSpan(kind, since, None, words))
    return spans
