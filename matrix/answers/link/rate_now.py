"""Whether the median of a link's newest successes says how fast it is now."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from sonar.notation.units import format_span


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
