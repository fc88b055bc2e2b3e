"""When something happened, as sentences write it: short, in UTC, the same on every page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

# From so far away on, a time has its year.
OLD = timedelta(days=180)


def time_words(unix: float, moment: datetime) -> str:
    """Write a Unix time as seen from a moment: `19 Nov 20:15`, long ago `19 Nov 2026 20:15`."""
    then = datetime.fromtimestamp(unix, UTC)
    year = f" {then.year:04}" if abs(moment - then) > OLD else ""
    return f"{then.day} {then:%b}{year} {then:%H:%M}"
