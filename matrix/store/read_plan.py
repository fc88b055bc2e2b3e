"""Which segments answer a window, and which hours of it must be read raw. Times in Unix ms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sonar.notation.windows import EARLIEST, Window, unix_ms

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# Of a day at the edge of a window, less than this is read by the hour rather than cut out of the
# day. It costs the same from four hours on; of a larger grid a day has more to look through.
WORTH_A_DAY = 6 * HOUR_MS
# Windows may reach to the year 9999, the end of its last day may not.
LATEST = datetime.max.replace(tzinfo=UTC)


class Span(NamedTuple):
    """From ``start`` until just before ``end``."""

    start: int
    end: int

    @classmethod
    def of(cls, window: Window) -> Span:
        """Return a window in milliseconds; one that is cut finer cannot be answered exactly."""
        if window.start.microsecond % 1000 or window.end.microsecond % 1000:
            raise ValueError("a time range must begin and end on a whole millisecond")
        return cls(unix_ms(window.start), unix_ms(window.end))

    def within(self, other: Span) -> Span:
        return Span(max(self.start, other.start), min(self.end, other.end))

    def by_day(self) -> Iterator[Span]:
        """Cut it at each midnight (UTC)."""
        for day in range(floor(self.start, DAY_MS), self.end, DAY_MS):
            yield self.within(Span(day, day + DAY_MS))


class Dirty(NamedTuple):
    """The starts of the days and the hours that carry a mark."""

    days: frozenset[int]
    hours: frozenset[int]


@dataclass(frozen=True)
class ReadPlan:
    """What to read for a window.

    ``days`` spans the day segments, all but those of ``split`` days; of these it takes the
    segments of ``hours``, and of dirty hours the raw rows in the spans of ``raw``.
    """

    days: Span
    split: frozenset[int]
    hours: list[int]
    raw: list[Span]


def plan(window: Span, dirty: Dirty) -> ReadPlan:
    """Choose the fewest and largest segments that are up to date."""
    # The segment of a day does not count if the day is marked, or one of its hours.
    split = dirty.days | {floor(hour, DAY_MS) for hour in dirty.hours} | short_edges(window)
    parts = [Span(day, day + DAY_MS).within(window) for day in sorted(split)]
    hours = [hour for at in parts for hour in range(floor(at.start, HOUR_MS), at.end, HOUR_MS)]
    raw = [hour_of(hour).within(window) for hour in hours if hour in dirty.hours]
    clean = [hour for hour in hours if hour not in dirty.hours]
    return ReadPlan(days_of(window), split, clean, list(merged(raw)))


def days_of(window: Span) -> Span:
    return Span(floor(window.start, DAY_MS), -floor(-window.end, DAY_MS))


def short_edges(window: Span) -> frozenset[int]:
    """Return which days at the edges of a window are not read whole, as so little is wanted.

    To cut a day segment costs less than to read as many hours, one by one, as are worth it.
    """
    days = days_of(window)
    parts = {day: Span(day, day + DAY_MS).within(window) for day in (days.start, days.end - DAY_MS)}
    return frozenset(day for day, part in parts.items() if part.end - part.start < WORTH_A_DAY)


def hour_of(start: int) -> Span:
    return Span(start, start + HOUR_MS)


def merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Join spans, given in order, where one begins as another ends."""
    current: Span | None = None
    for span in spans:
        if current and current.end == span.start:
            current = Span(current.start, span.end)
            continue
        if current:
            yield current
        current = span
    if current:
        yield current


def floor(moment: int, length: int) -> int:
    return moment // length * length


def moment(milliseconds: int) -> datetime:
    if milliseconds >= unix_ms(LATEST):
        return LATEST
    return EARLIEST + timedelta(milliseconds=milliseconds)
