"""Windows: half-open UTC intervals [start, end), by preset or by two bounds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sonar.units import parse_duration

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
            raise ValueError("the window ends before it begins: from must be before to")


def preset(name: str, now: datetime) -> Window:
    """Return the window of a preset that holds every result up to now.

    Its end is the next full minute, so that two questions in one minute have one answer.
    """
    end = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return Window(end - parse_duration(name), end)


def parse_time(text: str) -> datetime:
    """Read ISO 8601; a time without a zone is UTC. Raise ValueError with a sentence.

    Nothing but ValueError: what its zone puts before year 1 or after year 9999 is no time either.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: write ISO 8601 in UTC, like 2026-11-20T04:00:00Z"
        ) from None
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is not in the years 1 to 9999 of UTC") from None


def format_moment(moment: datetime) -> str:
    """Write a time for people, to the second: 2026-11-20 04:00:00 UTC."""
    return f"{moment.astimezone(UTC).replace(microsecond=0, tzinfo=None)} UTC"


def format_minute(moment: datetime) -> str:
    """Write a time for people, to the minute: 2026-11-20 15:06 UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def format_bound(moment: datetime) -> str:
    """Write a bound of a window without its zone: 2026-11-20 04:00, with seconds if it has any."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def format_window(window: Window) -> str:
    """Write the bounds of a window: 2026-11-20 04:00 to 2026-11-21 04:00 UTC."""
    return f"{format_bound(window.start)} to {format_bound(window.end)} UTC"


def format_time(moment: datetime) -> str:
    """Write a time as ISO 8601 in UTC, to the second: 2026-11-20T04:00:00Z."""
    # strftime would write year 1 with one digit, which nothing reads.
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"
