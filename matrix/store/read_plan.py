"""Which segments answer a window, and which hours of it must be read raw. Times in Unix ms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sonar.segments import unix_ms
from sonar.windows import Window

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
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
            raise ValueError("a window begins and ends with a whole millisecond")
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

    def whole_days(self) -> frozenset[int]:
        """Return the days whose segment does not count: marked, or with an hour that is."""
        return self.days | {floor(hour, DAY_MS) for hour in self.hours}


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
    """Choose the fewest and largest segments that are up to date.

    Cutting a day segment costs less than reading its hours if at least half of it is wanted.
    """
    days = Span(floor(window.start, DAY_MS), -floor(-window.end, DAY_MS))
    edges = (days.start, days.end - DAY_MS)
    short = {day for day in edges if 2 * covered(window, day) < DAY_MS}
    split = dirty.whole_days() | short
    hours = [hour for day in sorted(split) for hour in hours_of(day, window)]
    raw = [Span(hour, hour + HOUR_MS).within(window) for hour in hours if hour in dirty.hours]
    clean = [hour for hour in hours if hour not in dirty.hours]
    return ReadPlan(days, split, clean, list(merged(raw)))


def covered(window: Span, day: int) -> int:
    """Return how much of a day lies in the window."""
    part = Span(day, day + DAY_MS).within(window)
    return part.end - part.start


def hours_of(day: int, window: Span) -> range:
    """Return the hours of a day that have a part in the window."""
    part = Span(day, day + DAY_MS).within(window)
    return range(floor(part.start, HOUR_MS), part.end, HOUR_MS)


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
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
