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
    found: dict[str, list[Held]] = {}
    for one in due.select_related("size_class")[:OLDEST_DUE]:
        some = found.setdefault(one.skipped_because or NEXT_TICK, [])
        if len(some) < MOST_EXAMPLES:
            some.append(Held(one.source_id, one.destination_id, one.size_class.name, one.next_due))
    return found
