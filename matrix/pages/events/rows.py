"""Events as pages list them: what, where, how it went, how long, by how much, and what is near."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.utils.text import capfirst

from matrix.answers.changes.near import NearbyNote, notes_near
from matrix.answers.events.event import Event
from matrix.answers.short_names import NO_NAMES
from matrix.plots.sparkline import CoursePicture, course_of, share_of
from matrix.store.changes import WrittenNear
from sonar.notation.units import factor_and_interval, format_count, format_factor
from sonar.notation.windows import format_day, short_time

LEVEL_WORDS = {
    "link": "link",
    "source": "sends",
    "destination": "receives",
    "endpoint": "both ways",
    "site": "site",
    "grid": "all links",
}
NOTHING = WrittenNear([], [])


@dataclass(frozen=True)
class EventRow:
    """An event as of ``now``, with names that are ``short`` and what was written ``near`` it."""

    event: Event
    now: datetime
    all_sizes: tuple[str, ...]
    short: Mapping[str, str]
    near: tuple[NearbyNote, ...]

    @property
    def where(self) -> str:
        where = self.event.where(self.short)
        return capfirst(where) if self.event.level == "grid" else where

    @property
    def full_where(self) -> str:
        """Return the whole names and the direction, for who points at it."""
        if self.event.level == "link":
            return "from {} to {}".format(*(end.name for end in self.event.ends))
        return f"{self.event.where()} {self.event.role}".strip()

    @property
    def level(self) -> str:
        return f"{LEVEL_WORDS[self.event.level]}{self.sizes}"

    @property
    def sizes(self) -> str:
        """Say which size classes it is of; nothing if all."""
        sizes = self.event.sizes
        missing = [size for size in self.all_sizes if size not in sizes]
        if not missing or len(self.all_sizes) == 1:
            return ""
        return (
            f", not {missing[0]}"
            if len(missing) == 1 < len(sizes)
            else (f", only {' and '.join(sizes)}")
        )

    @property
    def course(self) -> CoursePicture | None:
        return course_of(self.event)

    @property
    def lasts(self) -> str:
        """Say for how long it has lasted, or until when it did."""
        event = self.event
        if event.until is None:
            return f"now, for {long_words(self.now - event.since)}"
        if event.kind == "recovered":
            return f"failed for {long_words(event.until - event.since)}"
        same_day = event.until.date() == event.since.date()
        return f"until {f'{event.until:%H:%M}' if same_day else short_time(event.until)}"

    @property
    def factor(self) -> str:
        if self.event.kind == "failing":
            return "fails"
        if not self.event.factor:
            return ""
        value, low, high = self.event.factor
        return format_factor(value, low or None, high or None).partition(" ")[0]

    @property
    def interval(self) -> str:
        value, low, high = self.event.factor or (1.0, None, None)
        return factor_and_interval(value, low, high)[1] if low and high else ""

    @property
    def gauge(self) -> tuple[float, float, float] | None:
        """Return the places of factor, low and high in percent, where the middle is 1."""
        if not self.event.factor:
            return None
        value, low, high = self.event.factor
        return place(value), place(low or value), place(high or value)

    @property
    def certainty(self) -> str:
        tests = f"{format_count(self.event.tests)} test{'s' * (self.event.tests != 1)}"
        if self.event.kind in ("failing", "recovered"):
            return f"{tests} failed"
        return f"certain, {tests}" if self.event.is_certain else f"not certain: {tests}"

    @property
    def between(self) -> str:
        """Say when it began: between which tests, where that is known."""
        first, last = (short_time(at) for at in (self.event.earliest, self.event.latest))
        return f"began between {first} and {last} UTC" if first != last else f"began {last} UTC"

    @property
    def url(self) -> str:
        return self.event.url(self.now)

    @property
    def comparison_url(self) -> str:
        return self.event.comparison_url(self.now)


def rows_of(
    events: Sequence[Event],
    now: datetime,
    all_sizes: Sequence[str],
    short: Mapping[str, str] = NO_NAMES,
    near: WrittenNear = NOTHING,
) -> list[EventRow]:
    return [
        EventRow(event, now, tuple(all_sizes), short, notes_near(event, near)) for event in events
    ]


def by_day(rows: Iterable[EventRow]) -> Iterator[tuple[str, list[EventRow]]]:
    """Yield the rows of each UTC day with its name: `Today, Wed 25 Nov`."""
    for day, of_day in groupby(rows, lambda row: row.event.at.date()):
        listed = list(of_day)
        today = listed[0].now.date()
        name = {0: "Today, ", 1: "Yesterday, "}.get((today - day).days, "")
        yield f"{name}{day:%a} {format_day(listed[0].event.at, today.year)}", listed


def place(factor: float) -> float:
    return round(50 + 50 * share_of(factor), 1)


def long_words(span: timedelta) -> str:
    """Write how long something lasts to two units: `5 h 20 min`, `3 d 4 h`, `12 min`."""
    minutes = max(int(span.total_seconds() // 60), 0)
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{rest} min"
