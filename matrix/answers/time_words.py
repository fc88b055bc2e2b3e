"""When something happened, as sentences write it: short, in UTC, the same on every page."""

from __future__ import annotations

from datetime import UTC, datetime

from sonar.notation.windows import short_time


def time_words(unix: float, moment: datetime) -> str:
    """Write a Unix time as seen from a moment: `19 Nov 20:15`, later `19 Nov 2026 20:15`."""
    return short_time(datetime.fromtimestamp(unix, UTC), moment.year)
