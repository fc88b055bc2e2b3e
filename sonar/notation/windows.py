"""Windows: half-open UTC intervals [start, end), by preset or by two bounds."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from django.utils import timezone

from sonar.notation.units import parse_duration

PRESETS = ("1h", "6h", "24h", "7d", "30d", "90d")
PRESET_WORDS = {
    "1h": "the last hour",
    "6h": "the last 6 hours",
    "24h": "the last 24 hours",
    "7d": "the last 7 days",
    "30d": "the last 30 days",
    "90d": "the last 90 days",
}


# The times that there can be, far from where a zone puts them before year 1 or after year 9999.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@dataclass(frozen=True)
class Window:
    """The results that started at or after ``start`` and before ``end``, both UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError("the time range ends before it begins: “from” must be before “to”")


def preset(name: str, now: datetime) -> Window:
    """Return the window of a preset that holds every result up to now.

    Its end is the next full minute, so that two questions in one minute have one answer.
    """
    end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return Window(end - parse_duration(name), end)


def unix_ms(moment: datetime) -> int:
    return (moment - EARLIEST) // timedelta(milliseconds=1)


def parse_time(text: str) -> datetime:
    """Read ISO 8601; a time without a zone is UTC. Raise ValueError with a sentence.

    Nothing but ValueError: what its zone puts before year 1 or after year 9999 is no time either.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: write ISO 8601 in UTC, for example 2026-11-20T04:00:00Z"
        ) from None
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 (UTC)") from None


def this_year() -> int:
    return timezone.now().year


def format_day(moment: datetime, year: int | None = None) -> str:
    """Write a day for people: 20 Nov, or 20 Nov 2025 if ``year`` is another, by default now's."""
    then = moment.astimezone(UTC)
    shown = "" if then.year == (this_year() if year is None else year) else f" {then.year:04}"
    return f"{then.day} {then:%b}{shown}"


def short_time(moment: datetime, year: int | None = None) -> str:
    """Write a time to the minute below a heading that says UTC: 20 Nov 04:00."""
    return f"{format_day(moment, year)} {moment.astimezone(UTC):%H:%M}"


def short_second(moment: datetime) -> str:
    """Write a time to the second below a heading that says UTC: 20 Nov 04:00:05."""
    return f"{format_day(moment)} {moment.astimezone(UTC):%H:%M:%S}"


def format_minute(moment: datetime) -> str:
    """Write a time for people, to the minute: 20 Nov 15:06 UTC."""
    return f"{short_time(moment)} UTC"


def format_moment(moment: datetime) -> str:
    """Write a time for people, to the second: 20 Nov 15:06:05 UTC."""
    return f"{short_second(moment)} UTC"


def format_typed(moment: datetime) -> str:
    """Write a time that somebody chose, with seconds only if it has any: 20 Nov 15:00 UTC."""
    return f"{short_second(moment).removesuffix(':00')} UTC"


def format_bound(moment: datetime) -> str:
    """Write a time for a field of a form: 2026-11-20 04:00, with seconds if it has any."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def format_window(window: Window) -> str:
    """Write the bounds of a window: 20 Nov 04:00 to 21 Nov 2026 04:00 UTC.

    They have a year, whichever it is: they are copied into documents, which last.
    """
    start, end = window.start.astimezone(UTC), window.end.astimezone(UTC)
    last = f"{format_day(end, 0)} {_clock(end)}"
    if start.date() == end.date():
        return f"{format_day(end, 0)} {_clock(start)} to {_clock(end)} UTC"
    return f"{format_day(start, end.year)} {_clock(start)} to {last} UTC"


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}".removesuffix(":00")


@lru_cache(maxsize=256)
def format_time(moment: datetime) -> str:
    """Write a time as ISO 8601 in UTC, to the second: 2026-11-20T04:00:00Z."""
    # strftime would write year 1 with one digit, which nothing reads.
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"
