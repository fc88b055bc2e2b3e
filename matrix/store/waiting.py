"""Which scheduled tests wait the longest for each reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sonar.models import Schedule

# Due since the last tick: the planner has not looked at them yet.
NEXT_TICK = "next tick"
# So many of the oldest are looked at: a budget may hold back millions.
OLDEST_DUE = 1000
MOST_EXAMPLES = 3


@dataclass(frozen=True)
class Held:
    """A test of a link that is due since ``due``; the ends are ids."""

    source: int
    destination: int
    size: str
    due: datetime


def examples(now: datetime) -> Mapping[str, list[Held]]:
    """Return the longest waiting by reason, of those that are due longest. One SQL query."""
    due = Schedule.objects.filter(next_due__lte=now).order_by("next_due")
    by_reason: dict[str, list[Held]] = {}
    for row in due.select_related("size_class")[:OLDEST_DUE]:
        examples = by_reason.setdefault(row.skipped_because or NEXT_TICK, [])
        if len(examples) < MOST_EXAMPLES:
            size = row.size_class.name
            examples.append(Held(row.source_id, row.destination_id, size, row.next_due))
    return by_reason
