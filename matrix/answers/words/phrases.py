"""When something happened, as sentences write it: short, in UTC, the same on every page."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from sonar.notation.units import format_count, format_span
from sonar.notation.windows import format_minute, short_time


def time_words(unix: float, moment: datetime) -> str:
    """Write a Unix time as seen from a moment: `19 Nov 20:15`, later `19 Nov 2026 20:15`."""
    return short_time(datetime.fromtimestamp(unix, UTC), moment.year)


def counted(count: int, noun: str) -> str:
    """Count things: `1 link`, `12 links`."""
    return f"{format_count(count)} {noun}{'s' * (count != 1)}"


def join(parts: Iterable[str]) -> str:
    """Join parts as a sentence does: `a`, `a and b`, `a, b and c`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def lower_first(text: str) -> str:
    """Begin a sentence as it stands within another one."""
    return text[:1].lower() + text[1:]


def sentences(*parts: str | Sequence[str]) -> str:
    flat = [part for each in parts for part in ([each] if isinstance(each, str) else each)]
    return " ".join(part for part in flat if part)


def why_no_rate(state: str, since: float, moment: datetime) -> str:
    """Say why a rate now would mislead: all tests since its successes failed; empty if it counts.

    ``since`` is when it began to fail, in Unix s.
    """
    if state == "failing":
        span = timedelta(seconds=0 if math.isnan(since) else moment.timestamp() - since)
        return f"failing: its last successes are more than {format_span(span)} old"
    if state == "failed":
        return "failed: its last successes are from before this window"
    return ""


def minute(seconds: float) -> str:
    """Write a Unix time as format_minute does."""
    return format_minute(datetime.fromtimestamp(seconds, UTC))
