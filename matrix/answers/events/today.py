"""What happened today, in one sentence, and what goes on from before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time

from matrix.answers.events.event import KINDS, LEVELS, Event
from matrix.answers.short_names import NO_NAMES
from sonar.notation.units import format_count
from sonar.notation.windows import Window

# More are counted.
MOST = 3
# Of the worst kind first, and of what is of most links.
WEIGHT = {kind: at for at, kind in enumerate(("failing", "slower", "recovered", "faster"))}


def window_of(now: datetime) -> Window:
    """Return the UTC day so far; a window is not empty."""
    midnight = datetime.combine(now, time(), now.tzinfo)
    return Window(midnight, max(now, midnight.replace(microsecond=1)))


def sentence(events: Iterable[Event], now: datetime, short: Mapping[str, str] = NO_NAMES) -> str:
    """Say the certain events of today, the worst first: nothing uncertain is worth a headline."""
    day = window_of(now)
    of_day = [event for event in events if event.is_certain and day.start <= event.at]
    if not of_day:
        return "Today: nothing new so far"
    first = sorted(of_day, key=weight)
    said = [event.words(short) for event in first[:MOST]]
    rest = len(first) - len(said)
    more = f" and {format_count(rest)} more" if rest else ""
    return f"Today: {', '.join(said)}{more}"


def weight(event: Event) -> tuple[int, int, float]:
    """Return what sorts events by how much they matter."""
    factor = event.factor[0] if event.factor else 1.0
    return WEIGHT[event.kind], -LEVELS.index(event.level), factor


def going_on(events: Iterable[Event], start: datetime) -> str:
    """Count the certain events from before a time that last; nothing if there are none."""
    lasting = [each for each in events if each.is_certain and not each.until and each.at < start]
    counts = Counter(event.kind for event in lasting)
    parts = [f"{format_count(counts[kind])} {kind}" for kind in KINDS if counts[kind]]
    return f"Still going on from before: {', '.join(parts)}" if parts else ""


def by_kind(events: Sequence[Event]) -> dict[str, int]:
    counts = Counter(event.kind for event in events)
    return {kind: counts[kind] for kind in KINDS}
