"""Times as people type them: `yesterday 20:15`, `mon 12:00`, `20 Nov 04:00`, `2 h ago`. UTC.

A time without a day, a weekday and a date without a year are the newest that are over. Pages write
what they read as ISO 8601 into their address, so that it means the same tomorrow; the API takes
nothing else.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta

from django.http import QueryDict

from matrix.query.comparison import BETWEEN, OF_AROUND
from sonar.notation.windows import format_time, parse_time

COMPARE = "compare"
MOMENTS = ("from", "to", OF_AROUND)
LONGEST = 100
UTC_BEHIND = re.compile(r"(?<=[\d\s])\s*(utc|z)$")
FILLING = re.compile(r",|\bat\b")
CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?", re.ASCII)
DAY, YEAR = re.compile(r"\d{1,2}", re.ASCII), re.compile(r"\d{4}", re.ASCII)
AGO = re.compile(r"(\d{1,5}) ?([a-z]+) ago", re.ASCII)
LENGTHS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "min", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("w", "week", "weeks"), timedelta(days=7)),
}
NEAR_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
SHORTEST_NAME = 3
A_DAY = timedelta(days=1)
# Two 29ths of February may be so many years apart.
MOST_YEARS = 9


def read_time(text: str, now: datetime) -> datetime:
    """Read ISO 8601 or words, to the second. Raise ValueError for anything else."""
    if len(text) > LONGEST:
        raise ValueError("the text is too long to be a time")
    bare = UTC_BEHIND.sub("", text.strip().casefold())
    for form in (text, bare):
        try:
            return parse_time(form)
        except ValueError:
            continue
    return _of_words(FILLING.sub(" ", bare).split(), now.astimezone(UTC).replace(microsecond=0))


def _of_words(words: Sequence[str], now: datetime) -> datetime:
    if words == ["now"]:
        return now
    if ago := AGO.fullmatch(" ".join(words)):
        if ago[2] not in LENGTHS:
            raise ValueError(f"{ago[2]!r} is not one of {', '.join(LENGTHS)}")
        return now - int(ago[1]) * LENGTHS[ago[2]]
    clocks = [clock for word in words if (clock := CLOCK.fullmatch(word))]
    days = [word for word in words if not CLOCK.fullmatch(word)]
    if len(clocks) > 1 or not words:
        raise ValueError("the text is not a time")
    hour, minute, second = (int(part or 0) for part in clocks[0].groups(0)) if clocks else (0, 0, 0)
    at = time(hour, minute, second)
    if len(days) == 1 and days[0] in NEAR_DAYS:
        return datetime.combine(now + NEAR_DAYS[days[0]] * A_DAY, at, UTC)
    if len(days) == 1 and "-" in days[0]:
        return datetime.combine(date.fromisoformat(days[0]), at, UTC)
    return _newest(days, at, now)


def _newest(words: Sequence[str], clock: time, now: datetime) -> datetime:
    """Return the newest time that is over of these days, or that of the only one."""
    if len(words) > 1 and YEAR.fullmatch(words[-1]):
        *words, year = words
        moments = [datetime.combine(day, clock, UTC) for day in _dates(words, [int(year)])]
    else:
        every = (datetime.combine(day, clock, UTC) for day in _days_before(words, now.date()))
        moments = [moment for moment in every if moment <= now][:1]
    # Before a date, a weekday says nothing but whether it is right: no other year is meant.
    for moment in moments:
        if len(words) < 3 or moment.weekday() == _place(words[0], WEEKDAYS):
            return moment
    raise ValueError("the text is not a day")


def _days_before(words: Sequence[str], today: date) -> Iterator[date]:
    """Yield the days that are meant, the newest first."""
    if not words:
        yield from (today, today - A_DAY)
    elif len(words) == 1:
        back = (today.weekday() - _place(words[0], WEEKDAYS)) % 7
        yield from (today - back * A_DAY, today - (back + 7) * A_DAY)
    else:
        yield from _dates(words, range(today.year, today.year - MOST_YEARS, -1))


def _dates(words: Sequence[str], years: Sequence[int]) -> Iterator[date]:
    """Yield `20 Nov`, `Nov 20` or `Fri 20 Nov` of these years, where there is such a day."""
    *weekday, first, second = words
    number, name = (first, second) if first.isdecimal() else (second, first)
    if len(weekday) > 1 or not DAY.fullmatch(number):
        raise ValueError("the text is not a date")
    month = _place(name, MONTHS) + 1
    for year in years:
        try:
            yield date(year, month, int(number))
        except ValueError:
            continue


def _place(word: str, names: Sequence[str]) -> int:
    """Return the place of a name, which may be cut behind its third letter; else ValueError."""
    for place, name in enumerate(names):
        if len(word) >= SHORTEST_NAME and name.startswith(word):
            return place
    raise ValueError(f"{word!r} is not one of {', '.join(names)}")


def in_iso(params: QueryDict, now: datetime) -> QueryDict:
    """Write the times of an address that are given in words as ISO 8601; nothing else changes."""
    whole = params.copy()
    for name in MOMENTS:
        if name in whole:
            whole.setlist(name, [_iso(text, now) for text in whole.getlist(name)])
    if COMPARE in whole:
        # It may be two times, or else name a window.
        whole.setlist(
            COMPARE,
            [
                BETWEEN.join(_iso(part, now) for part in text.split(BETWEEN))
                if BETWEEN in text
                else text
                for text in whole.getlist(COMPARE)
            ],
        )
    return whole


def _iso(text: str, now: datetime) -> str:
    """Return a time in words as ISO 8601; what is that already, or no time, as it is."""
    try:
        parse_time(text)
    except ValueError:
        with suppress(ValueError):
            return format_time(read_time(text, now))
    return text
